import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { BodyPool } from '../../../src/transport/body-pool.ts'
import { HostPipe } from '../../../src/transport/pipe/stdio-host.ts'
import type { HostPipeOptions } from '../../../src/transport/pipe/stdio-host.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'
import { readEnds } from '../../../src/wire/message/message-ends.ts'

const pipe = (options: Partial<HostPipeOptions> = {}, output: Writable = new PassThrough()) => {
  const input = new PassThrough()
  const lines: string[] = []
  const overflows: (string | undefined)[] = []
  const host = new HostPipe(input, output, options)
  const ended = new Promise<Failure | undefined>((resolve) =>
    host.open({
      line: (bytes) => lines.push(String(bytes)),
      overflow: (head, tail) => overflows.push(readEnds(head, tail).id),
      ended: resolve,
    }),
  )
  return { input, output, host, lines, overflows, ended }
}

/** Takes nothing, as a host that does not read. */
const stuck = (): Writable => new Writable({ write: () => {} })

test('B226 messages of one tick leave in one write, one line each', async () => {
  const writes: string[] = []
  const output = new Writable({
    write(chunk: Buffer, _, done) {
      writes.push(String(chunk))
      done()
    },
  })
  const { host } = pipe({}, output)
  host.write([Buffer.from('{"a":'), Buffer.from('\n1}')])
  host.write([Buffer.from('{"b":2}')])
  await host.close()
  expect(writes).toEqual(['{"a": 1}\n{"b":2}\n'])
})

test('lines arrive, also the last one without newline, and then the end', async () => {
  const { input, lines, ended } = pipe()
  input.end('{"a":1}\r\n\n{"b":2}')
  expect(await ended).toBeUndefined()
  expect(lines).toEqual(['{"a":1}', '{"b":2}'])
})

test('a line over the limit is not kept; its id is found at either end, and the pipe goes on', async () => {
  const { input, lines, overflows, ended } = pipe({ maxLineBytes: 100 })
  const text = 'x'.repeat(1000)
  input.write(`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":"${text}"}}\n`)
  input.write(`{"method":"m","params":{"x":"${text}"},"jsonrpc":"2.0","id":0}\n`)
  input.end('{"c":3}\n')
  expect(await ended).toBeUndefined()
  expect(overflows).toEqual(['"a"', '0'])
  expect(lines).toEqual(['{"c":3}'])
})

test('F-21 a host that reads nothing is given up', async () => {
  const { host, ended } = pipe({ stallMs: 50 }, stuck())
  host.write([Buffer.from('{}')])
  expect(await ended).toMatchObject({ kind: 'lost', message: /read nothing for 0.05 s/ })
})

const script = (name: string): string => fileURLToPath(new URL(`../../support/children/${name}.ts`, import.meta.url))

test('F-21 a host on a pipe that reads one big answer slowly is not given up', async () => {
  const reader = spawn(process.execPath, [script('slow-reader')], { stdio: ['pipe', 'pipe', 'inherit'] })
  const { host, ended } = pipe({ stallMs: 1_000 }, reader.stdin)
  // On a busy machine its start takes longer than a stall.
  host.write([Buffer.from('{"id":0}')])
  await once(reader.stdout, 'data')
  host.write([Buffer.from(`{"id":1,"text":"${'x'.repeat(8 * 1024 * 1024)}"}`)])
  const first = await Promise.race([once(reader.stdout, 'data'), ended])
  expect(String(first)).toBe('{"jsonrpc":"2.0","id":1,"result":{}}\n')
  await host.close()
  await once(reader, 'exit')
})

test('F-21 a host on a pipe that stops reading in the middle of an answer is given up', async () => {
  const reader = spawn(process.execPath, [script('slow-reader'), '1'], { stdio: ['pipe', 'ignore', 'inherit'] })
  const { host, ended } = pipe({ stallMs: 1_000, closeMs: 20 }, reader.stdin)
  host.write([Buffer.from(`{"id":1,"text":"${'x'.repeat(8 * 1024 * 1024)}"}`)])
  expect(await ended).toMatchObject({ kind: 'lost', message: /read nothing for 1 s/ })
  await host.close()
  reader.kill()
  await once(reader, 'exit')
})

test('F-21 what waits for a host is bounded, but a single message may have any size', async () => {
  const { host, output, ended } = pipe({ maxQueuedBytes: 1024 * 1024 }, stuck())
  host.write([Buffer.alloc(2 * 1024 * 1024, 'x')])
  host.write([Buffer.alloc(10, 'x')])
  expect(await ended).toMatchObject({ message: /does not read: 1 MiB/ })
  expect(output.writableLength).toBeLessThan(3 * 1024 * 1024)
})

/** A pipe that reports what its host takes, with `count` answers of 1 MiB in a queue of as much. */
const filled = (count: number) => {
  const handle = { bytesWritten: 0, writeQueueSize: 0 }
  const output = Object.assign(stuck(), { _handle: handle })
  const bodies = new BodyPool()
  const opened = pipe({ maxQueuedBytes: 1024 * 1024, stallMs: 10_000, bodies }, output)
  const send = (): void => opened.host.write([Buffer.alloc(1024 * 1024, 'x')])
  for (let at = 0; at < count; at++) send()
  return { ...opened, handle, bodies, send }
}

test('F-21 a host on a pipe that reads gets more answers than may wait for others, within the memory of all messages', async () => {
  const { bodies, send, handle, ended } = filled(20)
  expect(bodies.held.bytes).toBeGreaterThan(19 * 1024 * 1024)
  bodies.held.max = 11 * 1024 * 1024
  send()
  handle.bytesWritten += 100
  send()
  send()
  expect(await ended).toMatchObject({ message: /does not read: 1 MiB/ })
})

test('F-21 a host on a pipe that has taken nothing for a while is given up when its queue is full', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { send, handle, ended } = filled(20)
  const ends: unknown[] = []
  void ended.then((failure) => ends.push(failure))
  vi.advanceTimersByTime(2_000)
  handle.bytesWritten += 100
  send()
  vi.advanceTimersByTime(2_000)
  send()
  await Promise.resolve()
  expect(ends).toEqual([])
  vi.advanceTimersByTime(500)
  send()
  vi.useRealTimers()
  expect(await ended).toMatchObject({ message: /does not read: 1 MiB/ })
})

test('F-21 the memory of what waits for a host on a pipe is free when the pipe is closed', async () => {
  const { host, bodies } = filled(5)
  expect(bodies.held.bytes).toBeGreaterThan(0)
  await host.close()
  expect(bodies.held.bytes).toBe(0)
})

test('a broken pipe ends it once, with the reason', async () => {
  const output = new PassThrough()
  const { host, input, ended } = pipe({}, output)
  output.destroy(new Error('EPIPE'))
  input.end()
  expect(await ended).toMatchObject({ kind: 'lost', message: 'writing to the host: EPIPE' })
  host.write([Buffer.from('{}')])
  await host.close()
  expect(output.destroyed).toBe(true)
})

test('F-21 a host that was given up is not heard any more', async () => {
  const output = new PassThrough()
  const { input, ended, lines, overflows } = pipe({ maxLineBytes: 100 }, output)
  output.destroy(new Error('EPIPE'))
  await ended
  input.write(`{"a":1}\n${'x'.repeat(200)}\n`)
  await new Promise((resolve) => setImmediate(resolve))
  expect([lines, overflows]).toEqual([[], []])
})

test('close hands over what was written before and reports no end', async () => {
  const output = new PassThrough()
  const { host, input, lines } = pipe({}, output)
  host.write([Buffer.from('{"last":1}')])
  const [text] = await Promise.all([Readable.from(output).toArray(), host.close()])
  expect(String(text)).toBe('{"last":1}\n')
  expect(input.destroyed).toBe(true)
  expect(lines).toEqual([])
})

test('close waits for a host that reads nothing only so long', async () => {
  const { host } = pipe({ closeMs: 20 }, stuck())
  host.write([Buffer.from('{}')])
  await expect(host.close()).resolves.toBeUndefined()
})

test('over the stdin and stdout of a process, all answers written before the end arrive, and the process can end', async () => {
  const gateway = spawn(process.execPath, [script('piped-gateway')], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(gateway, 'exit')
  const line = `{"text":"${'x'.repeat(100_000)}"}\n`
  gateway.stdin.end(line.repeat(40))
  const text = Buffer.concat(await gateway.stdout.toArray()).toString()
  expect(text === line.repeat(40)).toBe(true)
  expect(await exited).toEqual([0, null])
})
