/** Calls as they are watched: the feed of the listener, and the commands of a person at a terminal. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { hashLine, makeToken } from '../../../src/auth/inbound/static-tokens.ts'
import { openAdmin } from '../../support/admin.ts'
import type { Admin } from '../../support/admin.ts'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { describeWith } from '../../support/programs.ts'

const serving = async (more = ''): Promise<Cli> => {
  const cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  one: ${cli.fake()}\n${more}`)
  await cli.up()
  return cli
}

const BOUND = 'admin: { bind: "127.0.0.1:0" }\n'

interface Message {
  readonly type: string
  readonly calls?: readonly Record<string, unknown>[]
}

/** Reads a feed; `next` resolves with its next message that `wanted` takes. */
const openFeed = async ({ origin, token }: Admin, query = '') => {
  const messages: Message[] = []
  const waiting = new Set<() => void>()
  const asked = request(`${origin}/api/feed${query}`, { headers: { Authorization: `Bearer ${token}` }, agent: false })
  asked.on('error', () => undefined)
  asked.end()
  const [response] = (await once(asked, 'response')) as [
    NodeJS.ReadableStream & { headers: Record<string, string>; statusCode: number },
  ]
  response.on('error', () => undefined)
  const lines = createInterface({ input: response }).on('error', () => undefined)
  lines.on('line', (line) => {
    if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)) as Message)
    for (const look of waiting) look()
  })
  return {
    response,
    messages,
    next: (wanted: (message: Message) => boolean): Promise<Message> =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = messages.find(wanted)
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
    [Symbol.dispose]: () => asked.destroy(),
  }
}

const rowOf = ({ calls = [] }: Message, name: string): Record<string, unknown> | undefined =>
  calls.find((row) => row['name'] === name)

describe('the feed', () => {
  test('tells of a call when it begins and when it ends, and of none that the filter leaves out', async () => {
    await using cli = await serving(BOUND)
    const admin = await openAdmin(cli)
    using feed = await openFeed(admin, '?filter=tool:one__wait')
    expect(feed.response.headers['content-type']).toBe('text/event-stream')
    await feed.next(({ type }) => type === 'hello')
    const until = cli.path('go')
    const called = cli.here('call', 'one__wait', `until=${until}`)
    const open = await feed.next((one) => rowOf(one, 'one__wait') !== undefined)
    expect(rowOf(open, 'one__wait')).toMatchObject({ state: 'open', outcome: null })
    await cli.here('call', 'one__echo', 'text=x')
    await cli.write('go', '')
    await called
    const done = await feed.next((one) => rowOf(one, 'one__wait')?.['state'] === 'done')
    expect(rowOf(done, 'one__wait')).toMatchObject({ outcome: 'ok', server: 'one' })
    expect(feed.messages.every((one) => rowOf(one, 'one__echo') === undefined)).toBe(true)
  })

  test('begins with what is kept since an id, and ends a reader too many with 503', async () => {
    await using cli = await serving(`${BOUND}ui: { capture: { readers: 1 } }\n`)
    const admin = await openAdmin(cli)
    await cli.here('call', 'one__echo', 'text=x')
    using feed = await openFeed(admin, '?after=0')
    await feed.next((one) => rowOf(one, 'one__echo') !== undefined)
    using second = await openFeed(admin)
    expect(second.response.statusCode).toBe(503)
    expect((await admin.ask('GET', '/metrics')).text).toContain(
      'trunkline_limit_reached_total{option="ui.capture.readers",server=""} 1',
    )
  })
})

describe('T-04 the feed of a reader', () => {
  test('who signs out ends', async () => {
    await using cli = await serving(BOUND)
    const admin = await openAdmin(cli)
    using feed = await openFeed(admin)
    await feed.next(({ type }) => type === 'hello')
    const closed = once(feed.response, 'close')
    expect((await admin.ask('DELETE', '/api/session')).status).toBe(200)
    await closed
  })

  test('whose token a reload takes away ends, and no other one', async () => {
    const [kept, taken] = [makeToken(), makeToken()]
    const authOf = (...tokens: string[]): string =>
      `auth:\n  tokens:\n${tokens.map((token, at) => `    - { id: op${at}, hash: "${hashLine(token)}", operator: true }\n`).join('')}`
    await using cli = await serving(`${BOUND}reload: { watch: false }\n${authOf(kept, taken)}`)
    const { origin, tokenFile } = await openAdmin(cli)
    const feedOf = (token: string) => openFeed({ origin, tokenFile, token, ask: () => Promise.reject(new Error('unused')) })
    using first = await feedOf(kept)
    using second = await feedOf(taken)
    for (const feed of [first, second]) await feed.next(({ type }) => type === 'hello')
    await cli.write('trunkline.yaml', `servers:\n  one: ${cli.fake()}\n${BOUND}reload: { watch: false }\n${authOf(kept)}`)
    const closed = once(second.response, 'close')
    expect((await cli.here('reload')).code).toBe(0)
    await closed
    await cli.here('call', 'one__echo', 'text=x')
    await first.next((one) => rowOf(one, 'one__echo') !== undefined)
  })
})

/** The first rows that `tail` shows. */
const tailing = async (cli: Cli, rows: number, make: () => Promise<unknown>, ...args: string[]) => {
  const tail = cli.spawn(['tail', '--json', ...args])
  const lines: Record<string, unknown>[] = []
  createInterface({ input: tail.child.stdout! }).on('line', (line) => lines.push(JSON.parse(line) as Record<string, unknown>))
  // Calls are captured from the moment in which the process is asked; until then they leave no row.
  while (lines.length < rows) await make()
  tail.signal('SIGINT')
  expect(await tail.ended).toBe(0)
  return lines.slice(0, rows)
}

describe('the commands', () => {
  test('tail shows the calls that the filter takes, without a listener', async () => {
    await using cli = await serving()
    const make = async (): Promise<void> => {
      await cli.here('call', 'one__echo', 'text=x')
      await cli.here('call', 'one__fail')
    }
    const [row] = await tailing(cli, 1, make, 'err', 'server:one')
    expect(row).toMatchObject({ name: 'one__fail', outcome: 'tool_error', state: 'done' })
    expect(await tailing(cli, 1, make, '--errors', '--server', 'one')).toMatchObject([{ server: 'one', name: row?.name }])
    const wrong = await cli.run(['tail', 'sever:one'])
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('nothing is called "sever:"')])
  })

  test('a recording is a server: the same tools, the same answers, and nothing else', async () => {
    await using cli = await serving()
    const file = cli.path('calls.ndjson')
    await tailing(cli, 1, () => cli.here('call', 'one__echo', 'text=recorded'), '--record', file)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const played = await cli.run(
      ['mock', file],
      INITIALIZE +
        message(1, 'tools/list') +
        message(2, 'tools/call', { name: 'one__echo', arguments: { text: 'recorded' } }) +
        message(3, 'tools/call', { name: 'one__echo', arguments: { text: 'another' } }) +
        message(4, 'tools/call', { name: 'one__add', arguments: {} }),
    )
    const answers = played.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number; result?: object; error?: object })
    expect(answers[1]?.result).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'one__echo' })]) as unknown,
    })
    expect(answers[2]?.result).toMatchObject({ content: [{ type: 'text', text: 'recorded' }] })
    expect(answers[3]?.result).toMatchObject({ content: [{ type: 'text', text: 'recorded' }] })
    expect(answers[4]?.error).toMatchObject({ code: -32602, message: expect.stringContaining('was not recorded') as string })
    const strict = await cli.run(
      ['mock', file, '--strict'],
      INITIALIZE + message(1, 'tools/call', { name: 'one__echo', arguments: { text: 'another' } }),
    )
    expect([strict.code, strict.stdout]).toEqual([6, expect.stringContaining('call 1 of the recording is tools/call')])
    const other = await cli.run(['mock', cli.path('trunkline.yaml')])
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('line 1: expected a JSON object')])
  })

  test('replay asks before a tool that may write, sends it edited, and names the original', async () => {
    await using cli = await serving(`${BOUND}ui: { capture: { bodies: all } }\n`)
    const admin = await openAdmin(cli)
    await cli.here('call', 'one__echo', 'text=first')
    const { calls } = (await admin.ask('GET', '/api/calls')).json as { calls: { id: number }[] }
    const id = String(calls[0]?.id)
    const asked = await cli.here('replay', id)
    expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining('may do more than read')])
    const again = await cli.here('replay', id, '--yes')
    expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { content: [{ text: 'first' }] }])
    // An empty variable names no editor.
    cli.env['VISUAL'] = ''
    const program = `const [file] = process.argv.slice(-1); fs.writeFileSync(file, String(fs.readFileSync(file)).replace('first', 'second'))`
    cli.env['EDITOR'] = `'${process.execPath}' -e "${program}"`
    const edited = await cli.here('replay', id, '--edit', '--yes')
    expect(JSON.parse(edited.stdout)).toMatchObject({ content: [{ text: 'second' }] })
    const { calls: all } = (await admin.ask('GET', '/api/calls')).json as { calls: { replayOf: number | null; id: number }[] }
    expect(all.map(({ replayOf }) => replayOf)).toEqual([Number(id), Number(id), null])
    expect((await admin.ask('POST', '/api/replay', { id: Number(id) })).json).toMatchObject({ error: { code: 'read_only' } })
    expect((await cli.here('replay', '999999')).code).toBe(1)
  })

  test('F-22 Ctrl-C in the editor of replay is for the editor: what was edited is sent', async () => {
    await using cli = await serving(`${BOUND}ui: { capture: { bodies: all } }\n`)
    const admin = await openAdmin(cli)
    await cli.here('call', 'one__echo', 'text=first')
    const { calls } = (await admin.ask('GET', '/api/calls')).json as { calls: { id: number }[] }
    const program = `const [file] = process.argv.slice(-1); fs.writeFileSync(file, String(fs.readFileSync(file)).replace('first', 'second'))`
    // As a terminal does, which sends the signal to all processes of the job; the parent of the shell is the command.
    cli.env['EDITOR'] = `kill -INT $PPID; kill -INT $PPID; '${process.execPath}' -e "${program}"`
    const { code, stdout, stderr } = await cli.run(['replay', String(calls[0]?.id), '--edit', '--yes'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('sending')])
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text: 'second' }] })
  })

  test('over the API a replay is confirmed, and its answer is the server’s, byte for byte', async () => {
    await using cli = await serving(`${BOUND}ui: { write: true, capture: { bodies: all } }\n`)
    const { ask } = await openAdmin(cli)
    await cli.here('call', 'one__echo', 'text=x')
    const { calls } = (await ask('GET', '/api/calls')).json as { calls: { id: number }[] }
    const id = calls[0]?.id
    expect(await ask('POST', '/api/replay', { id })).toMatchObject({ status: 409, json: { error: { code: 'confirm' } } })
    const params = { name: 'one__echo', arguments: { text: '1.0' } }
    const { json } = await ask('POST', '/api/replay', { id, params, confirm: true })
    expect(json).toMatchObject({
      kind: 'result',
      isError: false,
      result: { content: [{ text: '1.0' }] },
      call: expect.any(Number) as number,
    })
    for (const body of [{}, { id: 'x' }, { id, params: [], confirm: true }, { id, params: {}, confirm: true }])
      expect((await ask('POST', '/api/replay', body)).status, JSON.stringify(body)).toBe(400)
  })

  test('report is a text without secrets that shows both messages', async () => {
    await using cli = await serving(BOUND)
    const admin = await openAdmin(cli)
    await cli.here('call', 'one__refuse')
    const { calls } = (await admin.ask('GET', '/api/calls')).json as { calls: { id: number }[] }
    const { code, stdout } = await cli.here('report', String(calls[0]?.id))
    expect(code).toBe(0)
    expect(stdout).toContain('# tools/call refuse: error')
    expect(stdout).toMatch(/\| protocol \| 2025-11-25 over stdio \|/)
    expect(stdout).toMatch(/```json\n\{"jsonrpc":"2.0","id":\d+,"method":"tools\/call"/)
    expect(stdout).not.toContain(cli.folder)
  })

  test('a report as JSON has no personal folder either', async () => {
    await using cli = await serving(BOUND)
    const admin = await openAdmin(cli)
    await cli.here('call', 'one__fail', `text=file://${cli.path('home')}/a.txt`)
    const { calls } = (await admin.ask('GET', '/api/calls')).json as { calls: { id: number }[] }
    const { stdout } = await cli.here('report', String(calls[0]?.id), '--json')
    expect(JSON.parse(stdout)).toMatchObject({ name: 'one__fail' })
    expect(stdout).toContain('file://~/a.txt')
    expect(stdout).not.toContain(cli.path('home'))
  })

  test('top counts calls and errors of each server', async () => {
    await using cli = await serving(BOUND)
    await openAdmin(cli)
    await cli.here('call', 'one__echo', 'text=x')
    await cli.here('call', 'one__fail')
    const { stdout } = await cli.here('top', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      servers: [{ server: 'one', state: 'healthy', calls: 2, errors: 1, p50: expect.any(Number) as number }],
      tools: expect.arrayContaining([expect.objectContaining({ tool: 'one__fail', errors: 1 })]) as unknown,
    })
    expect((await cli.here('top', '--once')).stdout).toMatch(/^SERVER +STATE[^]*\none +healthy +2 +1 /)
  })
})

test('a recording is not written over', async () => {
  await using cli = await serving()
  await cli.write('kept.ndjson', 'mine')
  const { code, stderr } = await cli.run(['tail', '--record', cli.path('kept.ndjson')])
  expect([code, stderr]).toEqual([1, expect.stringContaining('it already exists')])
  expect(readFileSync(cli.path('kept.ndjson'), 'utf8')).toBe('mine')
})

describeWith(['prlimit'], 'a full disk', () => {
  test('F-26 a recording that the disk has no room for ends at the first call that is cut', async () => {
    await using cli = await serving()
    const file = cli.path('calls.ndjson')
    const size = (): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
    const tail = cli.spawn(['tail', '--record', file])
    await expect.poll(size).toBeGreaterThan(0)
    const before = size()
    const call = (): Promise<unknown> => cli.here('call', 'one__echo', 'text=recorded')
    // Recorded once the feed is open.
    await expect.poll(async () => (await call(), size())).toBeGreaterThan(before)
    // Room for a part of the next call.
    execFileSync('prlimit', [`--pid=${tail.pid}`, `--fsize=${size() + 100}`])
    await call()
    expect(await tail.ended).toBe(1)
    expect(tail.lines.at(-1)).toContain(`${file} cannot be written: EFBIG`)
  })
})
