/** The commands that watch a running process, where the process, the terminal or the file of a recording fails. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { logs } from '../../../src/commands/running/logs.ts'
import { replayCall } from '../../../src/commands/running/replay.ts'
import { tail } from '../../../src/commands/running/tail.ts'
import { top } from '../../../src/commands/running/top.ts'
import type { Invocation } from '../../../src/commands/terminal/io.ts'
import { Redactor } from '../../../src/redactor.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

type Answers = Readonly<Record<string, (response: ServerResponse) => void>>

/** The invocation of a command, for a process that answers so; `written` is called with each text on stdout. */
const watching = async (answers: Answers, written: (text: string) => Error | null | void = () => undefined) => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-watching-'))
  const server = createServer((request, response) => (answers[request.url?.split('?', 1)[0] ?? ''] ?? unknown)(response))
  const path = join(folder, 'x.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const stdout = Object.assign(
    new Writable({ autoDestroy: false, write: (chunk, _encoding, done) => done(written(String(chunk)) ?? null) }),
    { isTTY: true },
  )
  // As `program.ts` does.
  stdout.on('error', () => undefined)
  const remarks: string[] = []
  const interrupt = new AbortController()
  const invocation = {
    socket: { path, folder, uid: process.getuid?.() },
    json: false,
    command: (...words: string[]) => words.join(' '),
    context: { env: { TERM: 'xterm' } },
    io: {
      stdout,
      stderr: new Writable({ write: (chunk, _encoding, done) => done(void remarks.push(String(chunk))) }),
      interrupted: interrupt.signal,
      redactor: new Redactor(),
    },
  }
  // Cast: only these are read.
  return { invocation: invocation as unknown as Invocation, folder, interrupt, server, remarks }
}

const json =
  (value: object, status = 200) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
const unknown = json({ error: { code: 'not_found', message: 'no such path' } }, 404)
const STATS = { windowMs: 300_000, servers: [], tools: [], errors: [] }
const ROW = {
  id: 1,
  at: '2026-11-22T20:15:03.123Z',
  state: 'done',
  outcome: 'ok',
  error: null,
  method: 'tools/call',
  name: 'a__x',
  server: 'a',
  host: null,
  toolset: null,
  endpoint: null,
  rules: [],
  tokensOut: 1,
  ms: { total: 1, host: 0, gateway: 0, downstream: 1 },
}
/** A feed that goes on, and sends the row at intervals. */
const feed = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  const timer = setInterval(() => response.write(`${JSON.stringify({ type: 'calls', calls: [ROW] })}\n`), 10)
  response.once('close', () => clearInterval(timer))
}

test('top says why it may not follow calls, while it waits for figures', async () => {
  const refused = json({ error: { code: 'busy', message: 'ui.capture.readers (16) reached' } }, 503)
  const { invocation } = await watching({
    '/feed': refused,
    '/stats': (response) => void setTimeout(() => json(STATS)(response), 200),
  })
  await expect(top(invocation, {})).rejects.toMatchObject({ exitCode: 4, message: 'ui.capture.readers (16) reached' })
})

test('top says that the process has ended', async () => {
  const { invocation, server } = await watching(
    { '/feed': (response) => void response.writeHead(200).write('\n'), '/stats': json(STATS) },
    () => {
      server.close()
      server.closeAllConnections()
    },
  )
  await expect(top(invocation, {})).rejects.toMatchObject({ exitCode: 4, message: 'the process has ended' })
})

test('top ends where it is interrupted', async () => {
  const { invocation, interrupt } = await watching(
    { '/feed': (response) => void response.writeHead(200).write('\n'), '/stats': json(STATS) },
    () => interrupt.abort(),
  )
  expect(await top(invocation, {})).toBe(0)
})

test('logs --follow ends where the reader of its output has closed it', async () => {
  const line = { number: 1, atMs: 0, server: 'a', from: 'stderr', text: 'said' }
  const { invocation } = await watching(
    { '/status': json({ servers: [{ key: 'a' }] }), '/logs': json({ lines: [line], latest: 1 }) },
    () => new Error('EPIPE'),
  )
  expect(await logs(invocation, [], { follow: true })).toBe(0)
})

test('replay --edit shows numbers as they were sent, and without _meta', async () => {
  const text =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__x","arguments":{"id":12345678901234567890,"n":1.0},"_meta":{"x":1}}}'
  const { invocation, folder } = await watching({
    '/calls/1': json({ ...ROW, request: { text, bytes: text.length } }),
    '/replay': json({ kind: 'result', call: 2, isError: false, result: {} }),
  })
  const shown = join(folder, 'shown.json')
  const program = `fs.copyFileSync(process.argv.at(-1), '${shown}')`
  const env = { EDITOR: `'${process.execPath}' -e "${program}"` }
  // Cast: the others are not read.
  const edited = { ...invocation, context: { env } } as unknown as Invocation
  expect(await replayCall(edited, '1', { edit: true, yes: true })).toBe(0)
  expect(readFileSync(shown, 'utf8').replaceAll(/\s/g, '')).toBe(
    '{"name":"a__x","arguments":{"id":12345678901234567890,"n":1.0}}',
  )
})

test('replay --edit reads what an editor saves with a byte order mark', async () => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__x","arguments":{}}}'
  const { invocation } = await watching({
    '/calls/1': json({ ...ROW, request: { text, bytes: text.length } }),
    '/replay': json({ kind: 'result', call: 2, isError: false, result: {} }),
  })
  const program = `fs.writeFileSync(process.argv.at(-1), String.fromCharCode(0xfeff) + fs.readFileSync(process.argv.at(-1)))`
  // Cast: the others are not read.
  const edited = { ...invocation, context: { env: { EDITOR: `'${process.execPath}' -e "${program}"` } } } as unknown as Invocation
  expect(await replayCall(edited, '1', { edit: true, yes: true })).toBe(0)
})

test('tail ends where the reader of its output has closed it', async () => {
  const { invocation } = await watching({ '/feed': feed }, (text) => (text.includes('a__x') ? new Error('EPIPE') : null))
  expect(await tail(invocation, [], {})).toBe(0)
})

test('tail reads no further while its output is slow, and shows every row in the end', async () => {
  const ROWS = 20_000
  const row = `${JSON.stringify({ type: 'calls', calls: [ROW] })}\n`
  let isAllSent = false
  const { invocation } = await watching({
    '/feed': (response) => {
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      response.end(row.repeat(ROWS), () => (isAllSent = true))
    },
  })
  let printed = 0
  let wasAllSent: boolean | undefined
  const stdout = new Writable({
    highWaterMark: 1,
    write: (chunk, _encoding, done) => {
      printed += String(chunk).split('a__x').length - 1
      if (printed === 2_000) wasAllSent = isAllSent
      // One row in each turn of the event loop, in which a socket is read once.
      setImmediate(done)
    },
  })
  const slow = { ...invocation, io: { ...invocation.io, stdout } }
  await expect(tail(slow, [], {})).rejects.toThrow('the process has ended')
  expect({ printed, wasAllSent }).toEqual({ printed: ROWS, wasAllSent: false })
})

test('tail says that its recording cannot be written any more', async () => {
  const { invocation, folder } = await watching({ '/feed': feed, '/tools': json({ tools: [] }), '/calls/1': json(ROW) })
  const name = join(folder, 'calls.ndjson')
  const other = await open(join(folder, 'other'), 'w')
  // Cast: the class of handles is not exported.
  const handles = Object.getPrototypeOf(other) as FileHandle
  await other.close()
  let times = 0
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  const original = Reflect.get(handles, 'appendFile') as unknown as (...args: unknown[]) => unknown
  vi.spyOn(handles, 'appendFile').mockImplementation(function (this: FileHandle, ...args: unknown[]) {
    // The first is the head of the file.
    if (++times > 2) return Promise.reject(full)
    return Reflect.apply(original, this, args) as never
  })
  await expect(tail(invocation, [], { record: name })).rejects.toMatchObject({
    exitCode: 1,
    message: `${name} cannot be written: ENOSPC: no space left on device, write`,
  })
  expect(readFileSync(name, 'utf8').split('\n')).toHaveLength(3)
})

/** A feed with one row. */
const oneRow = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  response.write(`${JSON.stringify({ type: 'calls', calls: [ROW] })}\n`)
}

test('what tail shows when the user interrupts it is recorded, also where the process answers later', async () => {
  const body = { bytes: 2, text: '{}' }
  const { invocation, folder, interrupt, remarks } = await watching({
    '/feed': oneRow,
    '/tools': json({ tools: [] }),
    '/calls/1': (response) => {
      interrupt.abort()
      setTimeout(() => json({ ...ROW, request: body, response: body })(response), 50)
    },
  })
  const name = join(folder, 'calls.ndjson')
  expect(await tail(invocation, [], { record: name })).toBe(0)
  expect(readFileSync(name, 'utf8').trimEnd().split('\n')).toHaveLength(2)
  expect(remarks.join('')).toBe(`${name} has 1 call\n`)
})

test('tail counts the recorded calls that mock cannot serve', async () => {
  const { invocation, folder, interrupt, remarks } = await watching({
    '/feed': oneRow,
    '/tools': json({ tools: [] }),
    '/calls/1': (response) => {
      interrupt.abort()
      json(ROW)(response)
    },
  })
  expect(await tail(invocation, [], { record: join(folder, 'calls.ndjson') })).toBe(0)
  expect(remarks.join('')).toContain('has 1 call, of which mock cannot serve 1: without an answer, or too large to keep')
})

test('tail counts what it showed and could not record, and waits for no process that does not answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const { invocation, folder, interrupt, remarks } = await watching({
    '/feed': oneRow,
    '/tools': json({ tools: [] }),
    '/calls/1': () => {
      interrupt.abort()
      vi.advanceTimersByTime(5_000)
    },
  })
  const name = join(folder, 'calls.ndjson')
  expect(await tail(invocation, [], { record: name })).toBe(0)
  expect(remarks.join('')).toContain(
    'has 0 calls; 1 call shown could not be written: the running process did not return its messages',
  )
})

test.each<[string, Answers]>([
  [
    'its filter is refused',
    { '/feed': json({ error: { code: 'filter', message: 'unknown term', at: 0 } }, 400), '/tools': json({ tools: [] }) },
  ],
  ['the tools cannot be read', { '/feed': oneRow, '/tools': json({}, 500) }],
])('tail leaves no empty recording where %s: the same command can be given again', async (_, answers) => {
  const { invocation, folder } = await watching(answers)
  const name = join(folder, 'calls.ndjson')
  await expect(tail(invocation, [], { record: name })).rejects.toThrow()
  expect(existsSync(name)).toBe(false)
})

test('top says why it cannot read the figures', async () => {
  const { invocation } = await watching({
    '/feed': (response) => void response.writeHead(200).write('\n'),
    '/stats': json({}, 500),
  })
  await expect(top(invocation, {})).rejects.toThrow('the running process answered 500')
})
