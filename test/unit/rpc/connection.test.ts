import { expect, test } from 'vitest'
import { Connection } from '../../../src/rpc/connection.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import type { Channel, Outgoing } from '../../../src/transport/channel/channel.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { join } from '../../../src/wire/message/payload.ts'
import { resultOf } from '../../../src/era/server/result-of.ts'

test('what a channel takes no more is a violation for a notification, and rejects a request', async () => {
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: () => {
      throw new Failure('exited', 'not running', { executed: 'no' })
    },
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  using sweeper = new Sweeper()
  const connection = new Connection(channel, sweeper)
  const violations: string[] = []
  connection.serve({ request: () => undefined, notification: () => undefined, violation: (reason) => violations.push(reason) })
  await connection.open()

  connection.respond('1', [Buffer.from('{}')])
  connection.refuse('2', -1, 'no')
  connection.notify('notifications/initialized')
  expect(violations).toEqual(Array(3).fill('a message could not be sent'))

  const request = { read: () => undefined, idleMs: 1_000, totalMs: 1_000, cancel: () => undefined }
  await expect(connection.request({ ...request, build: (id) => ({ id, parts: [] }) })).rejects.toMatchObject({
    kind: 'exited',
    executed: 'no',
  })
})

/** A connection over a channel that keeps what is sent, and says whether it was closed. */
const connected = async () => {
  const sent: string[] = []
  const state = { isClosed: false }
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: ({ parts }: Outgoing) => sent.push(join(parts).toString()) > 0,
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => {
      state.isClosed = true
      return Promise.resolve()
    },
  }
  const sweeper = new Sweeper()
  const connection = new Connection(channel, sweeper)
  const reports: { reason: string; error: unknown }[] = []
  const failing = (): never => {
    throw new Error('unexpected')
  }
  connection.serve({
    request: failing,
    notification: failing,
    violation: (reason, _sample, error) => void reports.push({ reason, error }),
  })
  await connection.open()
  const ask = (read: (message: ReturnType<typeof readServerMessage>) => unknown = resultOf): Promise<unknown> =>
    connection.request({
      build: (id) => ({ id, parts: [Buffer.from(`request ${id}`)] }),
      read,
      idleMs: 60_000,
      totalMs: 60_000,
      cancel: () => undefined,
    })
  const receive = (text: string): void => connection.receive(readServerMessage(Buffer.from(text)))
  return { sent, state, reports, ask, receive, [Symbol.dispose]: () => sweeper[Symbol.dispose]() }
}

test('B271 F-31 a message that cannot be handled costs itself: the connection and the other requests go on', async () => {
  using peer = await connected()
  const [first, second] = [peer.ask(), peer.ask()]
  peer.receive('{"jsonrpc":"2.0","method":"notifications/x"}')
  peer.receive('{"jsonrpc":"2.0","id":"s","method":"roots/list"}')
  expect(peer.sent.at(-1)).toBe('{"jsonrpc":"2.0","id":"s","error":{"code":-32603,"message":"internal error"}}')
  expect(peer.reports).toMatchObject([{ error: expect.any(Error) as Error }, { error: expect.any(Error) as Error }])
  peer.receive('{"jsonrpc":"2.0","id":1,"result":{}}')
  peer.receive('{"jsonrpc":"2.0","id":2,"result":{}}')
  await expect(first).resolves.toBeDefined()
  await expect(second).resolves.toBeDefined()
  expect(peer.state.isClosed).toBe(false)
})

test('B271 an answer with a value that is no JSON fails its own request, and says that the answer was unreadable', async () => {
  using peer = await connected()
  const [first, second] = [peer.ask(), peer.ask()]
  const long = `"${'x'.repeat(60)}\\q"`
  peer.receive(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":${long}}}`)
  peer.receive('{"jsonrpc":"2.0","id":2,"result":{}}')
  await expect(first).rejects.toMatchObject({ kind: 'bad_response' })
  await expect(second).resolves.toBeDefined()
})

test('B288 answers whose ids are the text of ours are matched, and so is progress', async () => {
  using peer = await connected()
  const [first, second] = [peer.ask(), peer.ask()]
  peer.receive('{"jsonrpc":"2.0","id":"2","result":{"n":2}}')
  peer.receive('{"jsonrpc":"2.0","id":"1","result":{"n":1}}')
  await expect(Promise.all([first, second])).resolves.toMatchObject([{}, {}])
})

test('B143 answers that come late or twice, however many, are dropped: the connection goes on', async () => {
  using peer = await connected()
  for (let id = 1; id <= 20; id++) {
    const asked = peer.ask()
    peer.receive(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
    await asked
  }
  for (let id = 1; id <= 20; id++) peer.receive(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
  expect(peer.reports).toHaveLength(20)
  const next = peer.ask()
  peer.receive('{"jsonrpc":"2.0","id":21,"result":{}}')
  await expect(next).resolves.toBeDefined()
  expect(peer.state.isClosed).toBe(false)
})

test('T-19 a server that answers what it was never sent is cut off with that reason', async () => {
  using peer = await connected()
  const pending = peer.ask()
  for (let id = 100; id < 110; id++) peer.receive(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
  await expect(pending).rejects.toMatchObject({ kind: 'protocol', message: expect.stringContaining('never sent') as string })
  expect(peer.state.isClosed).toBe(true)
})

test('B256 F-05 a peer that says much by itself is read on in the next turn of the event loop', async () => {
  const seen: string[] = []
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: () => true,
    pause: () => {
      seen.push('paused')
      return () => void seen.push('resumed')
    },
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  using sweeper = new Sweeper()
  const connection = new Connection(channel, sweeper)
  let received = 0
  connection.serve({ request: () => undefined, notification: () => void received++, violation: () => undefined })
  await connection.open()
  const say = (count: number): void => {
    const text = Buffer.from('{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
    for (let at = 0; at < count; at++) connection.receive(readServerMessage(text))
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  say(63)
  await turn()
  expect(seen).toEqual([])
  say(500)
  // What was read before the pause took hold is not lost.
  expect([received, seen]).toEqual([563, ['paused']])
  await turn()
  expect(seen).toEqual(['paused', 'resumed'])
})

test('F-30 while the event loop is late such a peer waits for the next sweep', async () => {
  const seen: string[] = []
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: () => true,
    pause: () => () => void seen.push('resumed'),
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  const clock = { ms: 0 }
  using sweeper = new Sweeper({ clock: () => clock.ms, periodMs: 20 })
  const swept = (): Promise<void> =>
    new Promise((resolve) => {
      const item = { sweep: () => (sweeper.unwatch(item), resolve()) }
      sweeper.watch(item)
    })
  sweeper.watch({ sweep: () => undefined })
  const connection = new Connection(channel, sweeper)
  connection.serve({ request: () => undefined, notification: () => undefined, violation: () => undefined })
  await connection.open()
  clock.ms = 500
  await swept()
  for (let at = 0; at < 100; at++) connection.unparsable('no message', 'x')
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual([])
  await swept()
  await swept()
  expect(seen).toEqual(['resumed'])
})
