import { createReadStream, mkdtempSync, rmSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ChildProcessChannel } from '../../../src/transport/process/child-process.ts'
import type { ChildProcessOptions } from '../../../src/transport/process/child-process.ts'
import { createLauncher } from '../../../src/transport/process/launcher.ts'
import { collector } from '../../support/garbage-collector.ts'
import { isAlive } from '../../support/pids.ts'
import { record, request } from '../../support/recorded-channel.ts'
import type { Recorded } from '../../support/recorded-channel.ts'

const MIB = 1024 * 1024
const collect = collector()

/** Bytes that something in this process still refers to. */
const kept = async (): Promise<number> => {
  await new Promise(setImmediate)
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const child = (name: string): string => fileURLToPath(new URL(`../../support/children/${name}.ts`, import.meta.url))
const open: ChildProcessChannel[] = []
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pipes-'))
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((channel) => channel.close()))
  await rm(folder, { recursive: true, force: true })
})

type Given = Partial<ChildProcessOptions> & { command?: string; args?: string[]; env?: Record<string, string>; isBound?: boolean }

const SHORT_STOP = { eofMs: 1000, termMs: 200, killMs: 5000 }

const channelTo = ({
  command = process.execPath,
  args = [child('scripted')],
  env = {},
  isBound = true,
  ...given
}: Given = {}) => {
  const path = isBound ? process.env['PATH'] : undefined
  const launcher = createLauncher({ stop: SHORT_STOP, ...(path === undefined ? {} : { path }) })
  const channel = new ChildProcessChannel({ launch: { command, args, env, cwd: folder }, launcher, ...given })
  open.push(channel)
  return channel
}

const start = async (given: Given = {}): Promise<{ channel: ChildProcessChannel; seen: Recorded; pid: number }> => {
  const channel = channelTo(given)
  const seen = await record(channel)
  return { channel, seen, pid: channel.process!.pid }
}

const node = (script: string): Given => ({ args: ['-e', script] })
const hex = (...bytes: (string | number[])[]): string =>
  Buffer.concat(bytes.map((part) => Buffer.from(part as string))).toString('hex')

describe('messages', () => {
  test('B226 a pretty-printed message arrives as one line', async () => {
    const { channel, seen } = await start()
    channel.send({ parts: [Buffer.from('{\r\n"jsonrpc":"2.0","id":1,\n"method":"echo","params":{"a":1.0}}')], id: 1 })
    await seen.until(() => seen.settled.includes(1))
    expect(String(seen.messages[0]?.bytes)).toBe('{"jsonrpc":"2.0","id":1,"result":{"params":{"a":1}}}')
  })

  test('what is sent in one tick arrives in order, small and large', async () => {
    const { channel, seen } = await start()
    const sizes = [10, 100_000, 10, 700_000, 10]
    for (const [index, size] of sizes.entries())
      channel.send({ parts: request(index, 'echo', { text: 'x'.repeat(size) }), id: index })
    await seen.until(() => seen.settled.length === sizes.length)
    expect(seen.settled).toEqual([0, 1, 2, 3, 4])
    expect(seen.messages.map((message) => message.bytes.length > 600_000)).toEqual([false, false, false, true, false])
  })

  test('a line with a batch is delivered message by message', async () => {
    const { seen } = await start()
    const note = (name: string): string => `{"jsonrpc":"2.0","method":"${name}"}`
    await seen.call('print', { hex: hex(`[${note('a')}, ${note('b')},3]\n`) })
    expect(seen.messages.map((message) => message.method)).toEqual(['a', 'b', ''])
    expect(seen.unparsable.map(({ sample }) => sample)).toEqual(['3'])
  })

  test('F-05 B227 banners, binary, half JSON and bad UTF-8 between valid frames: all valid ones arrive', async () => {
    const { seen } = await start()
    const note = (name: string): string => `{"jsonrpc":"2.0","method":"${name}"}\n`
    const noise = [
      hex('Server running on stdio\n', note('a'), [0, 255, 254, 10], note('b'), '{"jsonrpc":"2.0","id":\n', note('c')),
      hex(
        '{"jsonrpc":"2.0","method":"',
        [0xc3, 0x28],
        '"}\n',
        note('d'),
        '[1,\n',
        '"text"\n',
        '\r\n\n',
        note('e'),
        '\u001B[31mred\n',
      ),
    ]
    await seen.call('print', { hex: noise.join('') })
    expect(seen.messages.slice(0, -1).map((message) => message.method)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(seen.unparsable).toHaveLength(7)
    expect(seen.unparsable[0]?.sample).toBe('Server running on stdio')
  })

  test('F-05 of a long line of noise the first 200 characters are told', async () => {
    const { seen } = await start()
    await seen.call('print', { hex: hex(`${'é'.repeat(5000)}\n`) })
    expect(seen.unparsable.map(({ sample }) => sample)).toEqual(['é'.repeat(200)])
  })

  test('F-05 what only a lenient reader takes for JSON is noise, and ends nothing', async () => {
    const { channel, seen } = await start()
    channel.send({ parts: request(70, 'ignored'), id: 70 })
    await seen.call('print', { hex: hex(`{"jsonrpc":"2.0","id":70,"result":3,"x":"${'\t'.repeat(100)}"}\n`) })
    expect(seen.unparsable).toHaveLength(1)
    expect(seen.lost).toEqual([])
  })

  test('F-05 noise ends it where a hundred lines come within ten seconds, and not before', async () => {
    const { channel, seen } = await start()
    const noise = (lines: number): Promise<unknown> => seen.call('print', { hex: hex('noise\n'.repeat(lines)) })
    await noise(99)
    const nowMs = performance.now.bind(performance)
    using _later = vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + 10_000)
    await noise(99)
    noise(1).catch(() => undefined)
    expect(await channel.closed).toMatchObject({ kind: 'lost' })
    expect(seen.unparsable).toHaveLength(199)
  })

  test('an answer to a request that is no answer ends it as bad_response', async () => {
    const { channel, seen } = await start()
    channel.send({ parts: request(70, 'ignored'), id: 70 })
    await seen.call('print', { hex: hex('{"jsonrpc":"2.0","id":70,"result":3}\n{"jsonrpc":"2.0","id":71,"result":3}\n') })
    expect(seen.lost.map(({ id, failure }) => [id, failure.kind])).toEqual([[70, 'bad_response']])
  })
})

describe('answers over the limit', () => {
  test.each(['first', 'last'] as const)(
    'F-06 an endless line whose id stands %s ends that call alone; memory stays flat',
    async (id) => {
      const { channel, seen } = await start({ maxMessageBytes: MIB })
      channel.send({ parts: request(99, 'ignored'), id: 99 })
      const before = process.memoryUsage.rss()
      await expect(seen.call('big', { bytes: 64 * MIB, id })).rejects.toMatchObject({ kind: 'too_large', facts: { amount: 1 } })
      expect(process.memoryUsage.rss() - before).toBeLessThan(64 * MIB)
      expect(await seen.call('echo')).toEqual({ params: {} })
      expect(seen.lost).toHaveLength(1)
      expect(seen.unparsable).toHaveLength(1)
    },
  )

  test('F-06 where the id cannot be found all requests of the time are lost, later ones are not', async () => {
    const { channel, seen } = await start({ maxMessageBytes: MIB, unclaimedMs: 100 })
    channel.send({ parts: request(99, 'ignored'), id: 99 })
    await expect(seen.call('big', { bytes: 2 * MIB, id: 'hidden' })).rejects.toMatchObject({ kind: 'too_large' })
    expect(seen.lost.map(({ id }) => id)).toEqual([99, 1])
    expect(await seen.call('echo')).toEqual({ params: {} })
  })

  test('F-06 a notification over the limit costs no call', async () => {
    const { seen } = await start({ maxMessageBytes: 1000, unclaimedMs: 0 })
    await seen.call('print', { hex: hex(`{"jsonrpc":"2.0","method":"m","params":{"x":"${'x'.repeat(2000)}"}}\n`) })
    expect(seen.lost).toEqual([])
    expect(seen.unparsable).toHaveLength(1)
  })
})

describe('start and exit', () => {
  test.each([true, false])('F-08 a missing command is spawn_failed with ENOENT (bound to our life: %s)', async (isBound) => {
    const channel = channelTo({ command: 'no-such-command', env: { PATH: '/usr/bin:/bin' }, isBound })
    await expect(record(channel)).rejects.toMatchObject({
      kind: 'spawn_failed',
      executed: 'no',
      retryable: false,
      message: expect.stringMatching(/^spawn no-such-command: ENOENT: not found; install it, or write its full path/) as string,
    })
    expect(await channel.closed).toMatchObject({ kind: 'spawn_failed' })
  })

  test('F-08 a file that may not be run is spawn_failed with EACCES', async () => {
    await writeFile(join(folder, 'server'), '#!/bin/sh\n', { mode: 0o644 })
    await expect(record(channelTo({ command: './server' }))).rejects.toMatchObject({
      message: expect.stringMatching(/^spawn \.\/server: EACCES: no permission to run it/) as string,
    })
    await expect(record(channelTo({ command: 'server', env: { PATH: folder } }))).rejects.toMatchObject({ kind: 'spawn_failed' })
  })

  test('F-08 a missing working directory is spawn_failed', async () => {
    const launch = { command: process.execPath, args: [], env: {}, cwd: join(folder, 'gone') }
    await expect(record(channelTo({ launch }))).rejects.toMatchObject({ kind: 'spawn_failed', message: /working directory/ })
  })

  test.each([true, false])(
    'F-08 a script whose interpreter is missing is spawn_failed (bound to our life: %s)',
    async (isBound) => {
      const file = join(folder, 'server')
      await writeFile(file, '#!/no/such/interpreter\n')
      await chmod(file, 0o755)
      const channel = channelTo({ command: file, isBound })
      const opened = record(channel).catch(() => undefined)
      expect(await channel.closed).toMatchObject({ kind: 'spawn_failed', executed: 'no' })
      await opened
    },
  )

  test.each([0, 1])('F-08 exit %i at once is told with the last lines of stderr', async (code) => {
    const { channel } = await start(node(`console.error('no API key'); process.exitCode = ${code}`))
    expect(await channel.closed).toMatchObject({
      kind: 'exited',
      message: `${process.execPath} exited with code ${code}: no API key`,
    })
    expect(channel.process?.exit).toEqual({ code, signal: null })
    expect(channel.process?.stderrTail(20)).toEqual(['no API key'])
  })

  test('B228 what a child says on stderr is told and is no failure', async () => {
    const lines: string[] = []
    const { channel, seen } = await start({ onStderr: (line) => lines.push(line) })
    await seen.call('note', { text: 'ERROR: all is well' })
    expect(await seen.call('echo')).toEqual({ params: {} })
    expect(lines).toEqual(['ERROR: all is well'])
    expect(channel.process?.stderrTail(1)).toEqual(lines)
  })

  test('B227 what a child prints on stdout beside its messages is told with stderr, but for broken messages', async () => {
    const lines: string[] = []
    const { channel, seen } = await start({ onStderr: (line) => lines.push(line) })
    await seen.call('print', { hex: hex(' :: Spring Boot ::\n{"jsonrpc":"2.0","id":\n[main] INFO started\n') })
    expect(lines).toEqual([' :: Spring Boot ::', '[main] INFO started'])
    expect(channel.process?.stderrTail(2)).toEqual(lines)
  })

  test('F-01 after kill -9 with 100 requests unanswered the channel ends as exited', async () => {
    const { channel, pid } = await start()
    for (let id = 1; id <= 100; id++) channel.send({ parts: request(id, 'ignored'), id })
    process.kill(pid, 'SIGKILL')
    expect(await channel.closed).toMatchObject({ kind: 'exited', executed: 'unknown', message: /SIGKILL/ })
    expect(() => channel.send({ parts: request(101, 'echo'), id: 101 })).toThrow(/not running/)
  })

  test('F-09 answers written before the exit are delivered before the channel ends', async () => {
    const { channel, seen } = await start()
    const order: string[] = []
    void channel.closed.then(() => order.push('closed'))
    for (let id = 1; id <= 20; id++) channel.send({ parts: request(id, 'echo', { text: 'x'.repeat(20_000) }), id })
    channel.send({ parts: request(21, 'exit', { code: 3 }), id: 21 })
    expect(await channel.closed).toMatchObject({ message: /code 3/ })
    expect(seen.settled).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
  })

  test('F-01 a process outside of the group that holds the pipe does not keep the channel from ending', async () => {
    const { channel, seen } = await start({ drainMs: 50 })
    const { pid } = (await seen.call('held')) as { pid: number }
    try {
      channel.send({ parts: request(90, 'exit', { code: 0 }), id: 90 })
      expect(await channel.closed).toMatchObject({ kind: 'exited' })
      expect(isAlive(pid)).toBe(true)
    } finally {
      process.kill(pid, 'SIGKILL')
    }
  })

  test('F-09 what is sent after the exit, while the answers of before are read, was not executed', async () => {
    const { channel, seen } = await start({ drainMs: 1_000 })
    const { pid } = (await seen.call('held')) as { pid: number }
    try {
      channel.send({ parts: request(90, 'exit', { code: 0 }), id: 90 })
      while (channel.process?.exit === undefined) await new Promise(setImmediate)
      channel.send({ parts: request(91, 'echo'), id: 91 })
      await channel.closed
      expect(seen.lost).toMatchObject([{ id: 91, failure: { kind: 'exited', executed: 'no' } }])
    } finally {
      process.kill(pid, 'SIGKILL')
    }
  })

  test('F-09 F-21 what was written before the exit is delivered although its host does not read', async () => {
    const { channel, seen } = await start()
    const line = `{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"${'x'.repeat(100)}"}}\n`
    // Its host does not read: the server is paused now, and with each message. The pipe has room for all of them.
    channel.pause(undefined)
    void seen.until(() => {
      channel.pause(undefined)
      return false
    })
    channel.send({ parts: request(1, 'print', { hex: Buffer.from(line.repeat(600)).toString('hex') }), id: 1 })
    channel.send({ parts: request(2, 'exit', { code: 0 }), id: 2 })
    await channel.closed
    expect(seen.settled).toEqual([1, 2])
  })

  test('F-12 a child that closes its stdin but lives on is given up and ended', async () => {
    const { channel, seen, pid } = await start({ exitMs: 50 })
    await seen.call('closeStdin')
    channel.send({ parts: request(80, 'echo'), id: 80 })
    expect(await channel.closed).toMatchObject({ kind: 'lost', message: /closed its stdin/ })
    await channel.close()
    expect(isAlive(pid)).toBe(false)
  })
})

describe('stop', () => {
  test('B229 a child that heeds the end of stdin is not signalled', async () => {
    const { channel, seen } = await start()
    await seen.call('echo')
    await channel.close()
    expect(channel.process?.exit).toEqual({ code: 0, signal: null })
    expect(await channel.closed).toBeUndefined()
  })

  test('B229 answers that come while the child ends are still delivered', async () => {
    const { channel, seen } = await start()
    await seen.call('echo')
    channel.send({ parts: request(60, 'echo'), id: 60 })
    await channel.close()
    expect(seen.settled).toContain(60)
  })

  test('B229 after the end of stdin comes SIGTERM', async () => {
    const { channel, seen } = await start({ args: ['-e', 'setInterval(() => {}, 1000); console.log("up")'] })
    await seen.until(() => seen.unparsable.length === 1)
    await channel.close()
    expect(channel.process?.exit).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('F-10 of a stubborn tree of three generations none is left', async () => {
    const { channel, seen } = await start({ args: [child('stubborn'), '3'] })
    await seen.until(() => seen.messages.length === 3)
    const pids = seen.messages.map((message) => message.params?.value('pid') as number)
    expect(pids.map(isAlive)).toEqual([true, true, true])
    await channel.close()
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
    expect(channel.process?.exit).toEqual({ code: null, signal: 'SIGKILL' })
  })

  test('F-10 what a crashed child leaves in its group goes with it', async () => {
    const { channel, seen, pid } = await start({ args: [child('stubborn'), '2'] })
    await seen.until(() => seen.messages.length === 2)
    const pids = seen.messages.map((message) => message.params?.value('pid') as number)
    process.kill(pid, 'SIGKILL')
    await channel.closed
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
  })

  test('a channel closed while it opens leaves no process', async () => {
    const channel = channelTo()
    const opened = record(channel)
    const closed = channel.close()
    await opened
    await closed
    expect(isAlive(channel.process!.pid)).toBe(false)
    expect(await channel.closed).toBeUndefined()
  })

  test('a channel that was never opened closes, and opens no more', async () => {
    const channel = channelTo()
    await channel.close()
    expect(await channel.closed).toBeUndefined()
    await expect(record(channel)).rejects.toMatchObject({ kind: 'exited' })
    expect(channel.process).toBeUndefined()
  })
})

describe('floods and stalls', () => {
  test('F-11 a flood on stderr holds up no call, little of it is kept, 100 lines a second are told', async () => {
    let told = 0
    let skipped = 0
    const onStderr = (_: string, before: number): void => {
      told++
      skipped += before
    }
    const { channel, seen } = await start({ onStderr })
    const began = performance.now()
    // What is compiled and reserved for the first flood is not counted.
    await seen.call('stderr', { bytes: 8 * MIB })
    const before = await kept()
    const flood = seen.call('stderr', { bytes: 64 * MIB })
    expect(await seen.call('echo')).toEqual({ params: {} })
    await flood
    const tail = channel.process!.stderrTail(Infinity)
    expect(tail.length).toBeGreaterThan(100)
    expect(tail.join('').length).toBeLessThanOrEqual(64 * 1024)
    await expect.poll(async () => (await kept()) - before).toBeLessThan(4 * MIB)
    expect(told).toBeGreaterThanOrEqual(100)
    expect(told).toBeLessThanOrEqual(100 * (1 + (performance.now() - began) / 1000))
    expect(skipped).toBeLessThan((72 * MIB) / 100)
  })

  test('F-12 a stopped child: slow, then overloaded, then given up', async () => {
    const { channel, seen, pid } = await start({ queueWaitMs: 50, stallMs: 1_000 })
    await seen.call('echo')
    process.kill(pid, 'SIGSTOP')
    const verdicts: boolean[] = []
    const text = 'x'.repeat(MIB / 2)
    for (let id = 100; id < 120; id++) verdicts.push(channel.send({ parts: request(id, 'echo', { text }), id }))
    expect(verdicts[0]).toBe(true)
    expect(verdicts.at(-1)).toBe(false)
    await seen.until(() => seen.lost.at(-1)?.id === 119)
    const firstLost = seen.lost[0]?.id ?? 0
    expect(firstLost).toBeGreaterThanOrEqual(107)
    expect(firstLost).toBeLessThan(109)
    expect(seen.lost.map(({ id }) => id)).toEqual(Array.from({ length: 120 - firstLost }, (_, at) => firstLost + at))
    for (const { failure } of seen.lost)
      expect(failure).toMatchObject({ kind: 'overloaded', executed: 'no', facts: { limit: 'limits.write_queue' } })
    expect(await channel.closed).toMatchObject({ kind: 'lost', message: /read nothing for 1 s/ })
    await channel.close()
    expect(isAlive(pid)).toBe(false)
  })

  test('F-12 a child that reads one big message slowly is not given up', async () => {
    const { channel, seen } = await start({ args: [child('slow-reader')], stallMs: 1_000 })
    channel.send({ parts: request(1, 'm', { text: 'x'.repeat(8 * MIB) }), id: 1 })
    channel.send({ parts: request(2, 'm'), id: 2 })
    const failure = await Promise.race([channel.closed, seen.until(() => seen.settled.length === 2)])
    expect(failure).toBeUndefined()
    expect(seen.settled).toEqual([1, 2])
  })

  test('F-12 requests beyond the write queue wait in order, and none is lost', async () => {
    const { channel, seen } = await start()
    const text = 'x'.repeat(600_000)
    const ids = Array.from({ length: 40 }, (_, at) => 100 + at)
    for (const id of ids) channel.send({ parts: request(id, 'echo', { text }), id })
    channel.abandon(120)
    await seen.until(() => seen.settled.length === 39)
    expect(seen.settled).toEqual(ids.filter((id) => id !== 120))
    expect(seen.lost).toEqual([])
  })

  test('F-12 requests that still wait when the child exits were not executed', async () => {
    const { channel, seen, pid } = await start()
    await seen.call('echo')
    process.kill(pid, 'SIGSTOP')
    const text = 'x'.repeat(MIB)
    for (let id = 100; id < 110; id++) channel.send({ parts: request(id, 'echo', { text }), id })
    process.kill(pid, 'SIGKILL')
    await channel.closed
    expect(seen.lost.map(({ id }) => id)).toEqual([103, 104, 105, 106, 107, 108, 109])
    for (const { failure } of seen.lost) expect(failure).toMatchObject({ kind: 'exited', executed: 'no' })
  })
})

describe('what a child is given', () => {
  test('T-12 arguments reach the child as they are, whatever a shell would make of them', async () => {
    const words = [
      '$(touch pwned)',
      '`touch pwned`',
      '; touch pwned',
      '&& touch pwned',
      '| tee pwned',
      '*',
      '~',
      '"',
      "'",
      '%PATH%',
      '${HOME}',
      '--',
      '',
    ]
    const { seen } = await start({ args: [child('scripted'), ...words] })
    expect((await seen.call('info'))['argv']).toEqual(words)
    await expect(readFile(join(folder, 'pwned'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('T-12 a command with blanks and shell characters is a file name, never a command line', async () => {
    const command = join(folder, 'touch pwned; true')
    await writeFile(
      command,
      `#!${process.execPath}\nprocess.stdin.resume()\nconsole.log(JSON.stringify({jsonrpc:'2.0',method:'up'}))\n`,
    )
    await chmod(command, 0o755)
    const { seen } = await start({ command, args: [] })
    await seen.until(() => seen.messages.length === 1)
    await expect(readFile(join(folder, 'pwned'))).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(record(channelTo({ command: 'sh -c true', env: { PATH: '/bin' } }))).rejects.toMatchObject({
      kind: 'spawn_failed',
    })
  })

  test.each([true, false])(
    'T-13 the environment of a child is exactly the one given (bound to our life: %s)',
    async (isBound) => {
      process.env['TRUNKLINE_SENTINEL'] = 'secret'
      try {
        const { seen, pid } = await start({ env: { ONLY: 'this', EMPTY: '' }, isBound })
        const info = await seen.call('info')
        expect(info).toMatchObject({ env: { ONLY: 'this', EMPTY: '' }, pid })
        expect(Object.keys(info['env'] as object).sort()).toEqual(['EMPTY', 'ONLY'])
      } finally {
        delete process.env['TRUNKLINE_SENTINEL']
      }
    },
  )

  test('T-13 a frozen environment serves, also where Node adds a variable to it', async () => {
    process.env['NODE_V8_COVERAGE'] = mkdtempSync(join(tmpdir(), 'coverage-'))
    try {
      const { seen } = await start({ env: Object.freeze({ ONLY: 'this' }) })
      expect(await seen.call('info')).toMatchObject({ env: { ONLY: 'this' } })
    } finally {
      rmSync(process.env['NODE_V8_COVERAGE'], { recursive: true })
      delete process.env['NODE_V8_COVERAGE']
    }
  })

  test('no descriptor of ours but the three pipes reaches a child', async () => {
    await using file = createReadStream(fileURLToPath(import.meta.url))
    await new Promise((resolve) => file.once('open', resolve))
    const script = `const fs = require('fs'); const open = fs.readdirSync('/proc/self/fd').map((fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd) } catch { return '' } }); console.log(JSON.stringify({ jsonrpc: '2.0', method: 'fds', params: { open } }))`
    const { seen, channel } = await start(node(script))
    await channel.closed
    expect(seen.messages[0]?.params?.value('open')).not.toContain(fileURLToPath(import.meta.url))
  })
})
