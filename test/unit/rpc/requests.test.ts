/** Requests on a connection: their time, their cancellation, the calls that they carry, and what is paused. Time is vitest's. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Call } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { cancelledParams, Connection } from '../../../src/rpc/connection.ts'
import type { ConnectionEvents, Request } from '../../../src/rpc/connection.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import type { Channel } from '../../../src/transport/channel/channel.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { META } from '../../../src/wire/protocol/meta.ts'
import { callOf } from '../../support/calls.ts'

beforeEach(() => void vi.useFakeTimers())

/** A connection, what happened to its channel in order, and what its requests became by their names. */
const connect = async (facts: Partial<Channel> = {}, events: Partial<ConnectionEvents> = {}) => {
  const done: unknown[] = []
  const ended: Record<string, unknown> = {}
  const closed = Promise.withResolvers<Failure | undefined>()
  const channel: Channel = {
    kind: 'pipe',
    open: () => Promise.resolve(),
    send: ({ id }) => done.push(['send', id]) > 0,
    abandon: (id) => void done.push(['abandon', id]),
    closed: closed.promise,
    close: () => Promise.resolve(void done.push(['close'])),
    ...facts,
  }
  const sweeper = new Sweeper()
  onTestFinished(() => sweeper[Symbol.dispose]())
  const connection = new Connection(channel, sweeper)
  connection.serve({ request: () => undefined, notification: () => undefined, violation: () => undefined, ...events })
  await connection.open()
  const ask = (name: string, more: Partial<Request<unknown>> = {}): void => {
    const request: Request<unknown> = {
      build: (id) => ({ id, parts: [] }),
      read: () => 'answered',
      idleMs: 1_000,
      totalMs: 5_000,
      cancel: (...args) => void done.push(['cancel', ...args]),
      ...more,
    }
    connection.request(request).then(
      (value) => (ended[name] = value),
      (error: unknown) => (ended[name] = error),
    )
  }
  const receive = (message: object, during?: number): void =>
    connection.receive(readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))), during)
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
  return { connection, closed, done, ended, ask, receive, pass }
}
const progressOf = (progressToken: number): object => ({ method: 'notifications/progress', params: { progressToken } })

describe('a request that takes too long', () => {
  test('F-02 is not silent while more of its answer is received, and lasts too long all the same', async () => {
    const { ask, ended, pass, connection } = await connect()
    for (const name of ['one', 'two']) ask(name)
    for (let ms = 900; ms < 5_000; ms += 900) {
      await pass(900)
      expect(ended['one']).toBeUndefined()
      connection.more(1)
    }
    expect(ended['two']).toMatchObject({ kind: 'timeout', facts: { limit: 'timeouts.idle' } })
    await pass(900)
    expect(ended['one']).toMatchObject({ kind: 'timeout', facts: { limit: 'timeouts.total' } })
  })

  test.each<[what: string, more: Partial<Request<unknown>>, limitMs: number, limit: string, amount: number]>([
    ['is silent', {}, 1_000, 'timeouts.idle', 1],
    ['lasts', { idleMs: Infinity }, 5_000, 'timeouts.total', 5],
    ['is silent, with an option of its own', { limit: 'timeouts.start' }, 1_000, 'timeouts.start', 1],
    [
      'lasts, with an option of its own',
      { idleMs: Infinity, totalMs: 2_600, limit: 'timeouts.start' },
      2_600,
      'timeouts.start',
      3,
    ],
  ])('as it %s is cancelled at the server, and fails with its limit', async (_, more, limitMs, limit, amount) => {
    const { ask, ended, done, pass, connection } = await connect()
    await pass(7_000)
    ask('one', more)
    await pass(limitMs - 100)
    expect(ended).toEqual({})
    await pass(100)
    expect(ended['one']).toMatchObject({
      kind: 'timeout',
      message: `no answer within ${limitMs} ms (${limit})`,
      facts: { amount, limit },
    })
    expect(done).toEqual([
      ['send', 1],
      ['cancel', 1, `no answer within ${limitMs} ms`, undefined],
      ['abandon', 1],
    ])
    expect([connection.inFlight, vi.getTimerCount()]).toEqual([0, 0])
  })

  test('is not silent while it tells its progress, or anything on its own stream; what others tell does not count', async () => {
    const { ask, ended, receive, pass } = await connect()
    const progress = vi.fn()
    ask('told', { progress })
    ask('streamed')
    ask('silent')
    await pass(900)
    receive(progressOf(1))
    receive({ method: 'notifications/message', params: {} }, 2)
    await pass(100)
    expect(Object.keys(ended)).toEqual(['silent'])
    expect(progress).toHaveBeenCalledOnce()
    await pass(800)
    expect(Object.keys(ended)).toEqual(['silent'])
    await pass(100)
    expect(Object.keys(ended).sort()).toEqual(['silent', 'streamed', 'told'])
  })

  test('has time while its host is asked, and anew afterwards', async () => {
    const { ask, ended, pass, connection } = await connect()
    const call = callOf()
    ask('one', { call })
    const [first, second] = [connection.pause(call), connection.pause(call)]
    // Of a call that is not here.
    connection.pause(callOf())()
    await pass(2_000)
    first()
    await pass(1_500)
    second()
    await pass(900)
    expect(ended).toEqual({})
    await pass(100)
    expect(ended['one']).toMatchObject({ kind: 'timeout', facts: { limit: 'timeouts.idle' } })
  })
})

describe('a request that its host cancels', () => {
  test('is cancelled at the server with the notice of the host, once', async () => {
    const { ask, ended, done, pass, receive } = await connect()
    const signal = new Cancellation()
    const notice = Payload.of({ requestId: 'h', reason: 'no longer needed' })
    ask('one', { signal })
    signal.abort(notice)
    await pass(0)
    expect(ended['one']).toMatchObject({ kind: 'cancelled', message: 'cancelled by the host' })
    receive({ id: 1, result: {} })
    expect(done).toEqual([
      ['send', 1],
      ['cancel', 1, 'cancelled by the host', notice],
      ['abandon', 1],
    ])
  })

  test('before the server has received it is withdrawn, and the server not told', async () => {
    const { ask, ended, done, pass } = await connect({ withdraw: () => true })
    const signal = new Cancellation()
    ask('one', { signal })
    signal.abort()
    await pass(0)
    expect([ended['one'], done]).toEqual([expect.objectContaining({ kind: 'cancelled' }), [['send', 1]]])
  })

  test('that was sent all the same is cancelled', async () => {
    const { ask, done } = await connect({ withdraw: () => false })
    const signal = new Cancellation()
    ask('one', { signal })
    signal.abort()
    expect(done.slice(1)).toEqual([
      ['cancel', 1, 'cancelled by the host', undefined],
      ['abandon', 1],
    ])
  })

  test('before it begins is not sent', async () => {
    const { ask, ended, done, pass } = await connect()
    const signal = new Cancellation()
    signal.abort()
    ask('one', { signal })
    await pass(0)
    expect([ended['one'], done]).toEqual([expect.objectContaining({ kind: 'cancelled', executed: 'no' }), []])
  })

  test('after its answer does not reach the server', async () => {
    const { ask, ended, done, receive, pass } = await connect()
    const signal = new Cancellation()
    ask('one', { signal })
    receive({ id: 1, result: {} })
    signal.abort()
    await pass(0)
    expect([ended, done]).toEqual([{ one: 'answered' }, [['send', 1]]])
  })
})

test('a server is told the reason of a cancellation, or what the host said, under the id that it knows', () => {
  const text = (params: ReturnType<typeof cancelledParams>): unknown => JSON.parse(join(params).toString())
  expect(text(cancelledParams(7, 'a "reason"', undefined))).toEqual({ requestId: 7, reason: 'a "reason"' })
  const notice = Payload.of({ requestId: 'h', reason: 'mine', _meta: { [META.version]: '2026-07-28', 'com.example/x': 2 } })
  expect(text(cancelledParams(7, 'ours', notice))).toEqual({ requestId: 7, reason: 'mine', _meta: { 'com.example/x': 2 } })
  expect(text(cancelledParams(8, 'ours', notice))).toMatchObject({ requestId: 8 })
})

describe('the calls under way', () => {
  test('are told oldest first; a message without a sender belongs to one that is alone', async () => {
    const { ask, connection, receive } = await connect()
    const [first, second] = [callOf({ ref: 1 }), callOf({ ref: 2 })]
    expect([connection.calls(), connection.onlyCall()]).toEqual([[], undefined])
    ask('own')
    ask('first', { call: first })
    expect([connection.inFlight, connection.onlyCall()]).toEqual([2, first])
    ask('second', { call: second })
    expect([connection.calls(), connection.onlyCall()]).toEqual([[first, second], undefined])
    receive({ id: 2, result: {} })
    expect([connection.calls(), connection.onlyCall()]).toEqual([[second], second])
  })

  test('are oldest first after many others as well', async () => {
    const { ask, connection, receive } = await connect()
    const calls = Array.from({ length: 40 }, (_, ref) => callOf({ ref }))
    for (const [at, call] of calls.entries()) {
      ask(`${at}`, { call })
      if (at >= 5) receive({ id: at - 4, result: {} })
      expect(connection.calls()).toEqual(calls.slice(Math.max(0, at - 4), at + 1))
    }
  })

  test.each<[Channel['kind'], withOwn: boolean]>([
    ['pipe', false],
    ['http', true],
    ['sse', true],
  ])('a connection over %s is quiet without them; with a request of the gateway: %s', async (kind, withOwn) => {
    const { ask, connection } = await connect({ kind })
    expect(connection.isQuiet).toBe(true)
    ask('own')
    expect(connection.isQuiet).toBe(withOwn)
    ask('call', { call: callOf() })
    expect(connection.isQuiet).toBe(false)
  })

  test('are waited for until the last has ended, whatever else is under way', async () => {
    const { ask, connection, receive, pass } = await connect()
    const drained = vi.fn()
    ask('own')
    for (const name of ['a', 'b']) ask(name, { call: callOf() })
    void connection.drained().then(drained)
    receive({ id: 2, result: {} })
    await pass(0)
    expect(drained).not.toHaveBeenCalled()
    receive({ id: 3, result: {} })
    await pass(0)
    expect(drained).toHaveBeenCalledOnce()
    await connection.drained()
  })

  test('are given with what is received on their streams', async () => {
    const told: unknown[] = []
    const events: Partial<ConnectionEvents> = {
      request: (message, call, isWithin) => void told.push([message.method, call, isWithin]),
      notification: (message, call) => void told.push([message.method, call]),
    }
    const { ask, receive } = await connect({}, events)
    const call: Call = callOf()
    ask('call', { call })
    receive({ id: 's', method: 'roots/list' }, 1)
    receive({ id: 't', method: 'ping' })
    receive({ method: 'notifications/message' }, 1)
    receive({ method: 'notifications/message' }, 9)
    expect(told).toEqual([
      ['roots/list', call, true],
      ['ping', undefined, false],
      ['notifications/message', call],
      ['notifications/message', undefined],
    ])
  })
})

test('progress under the id of an answered request is passed on until that is ended', async () => {
  const { connection, receive } = await connect()
  const progress = vi.fn()
  const end = connection.outlive(7, progress)
  receive(progressOf(7))
  receive(progressOf(8))
  receive({ method: 'notifications/progress', params: {} })
  end()
  receive(progressOf(7))
  expect(progress).toHaveBeenCalledOnce()
})

test('the end of a connection fails what is under way, and what is asked later was not executed', async () => {
  const { ask, closed, ended, done, pass, connection } = await connect()
  ask('pending', { signal: new Cancellation() })
  const failure = new Failure('exited', 'gone')
  closed.resolve(failure)
  await pass(0)
  ask('later')
  connection.notify('notifications/x')
  await pass(0)
  expect(ended['pending']).toBe(failure)
  expect(ended['later']).toMatchObject({ kind: 'exited', message: 'gone', executed: 'no', retryable: true })
  expect([done, vi.getTimerCount()]).toEqual([[['send', 1]], 0])
})

test('a connection that was closed without a reason says so', async () => {
  const { ask, closed, ended, pass } = await connect()
  ask('pending')
  closed.resolve(undefined)
  await pass(0)
  expect(ended['pending']).toMatchObject({ kind: 'shutting_down', message: 'the connection was closed' })
})

test('T-19 answers to what was never sent count for a minute; late ones to what was cancelled do not', async () => {
  const { ask, done, receive, pass } = await connect()
  const signal = new Cancellation()
  ask('cancelled', { signal })
  ask('pending', { idleMs: Infinity, totalMs: Infinity })
  signal.abort()
  for (let count = 0; count < 20; count++) receive({ id: 1, result: {} })
  for (const id of [0, -1, 1.5, 'x', 3, 4, 5, 6, 7]) receive({ id, result: {} })
  expect(done).not.toContainEqual(['close'])
  await pass(60_000)
  for (let id = 3; id < 12; id++) receive({ id, result: {} })
  expect(done).not.toContainEqual(['close'])
  await pass(59_900)
  receive({ id: 3, result: {} })
  expect(done).toContainEqual(['close'])
})

test('F-21 a stream whose only host does not read is paused until it does', async () => {
  const done: unknown[] = []
  const stalled = { host: true, flow: false }
  const pause: Channel['pause'] = (id) => {
    done.push(['pause', id])
    return () => void done.push(['resume', id])
  }
  const { ask, receive, pass } = await connect({ pause }, { isHostStalled: () => stalled.host })
  const flow = {
    get isStalled() {
      return stalled.flow
    },
  }
  ask('call', { call: callOf({ responseChannel: { flow } }), idleMs: Infinity, totalMs: Infinity })
  receive({ method: 'notifications/message' }, 1)
  expect(done).toEqual([])
  receive({ method: 'notifications/message' })
  receive({ method: 'notifications/message' })
  stalled.flow = true
  receive(progressOf(1), 1)
  expect(done).toEqual([
    ['pause', undefined],
    ['pause', 1],
  ])
  await pass(1_000)
  stalled.host = false
  await pass(100)
  stalled.flow = false
  await pass(100)
  expect(done.slice(2)).toEqual([
    ['resume', undefined],
    ['resume', 1],
  ])
})

test('answers are sent as such, and notifications not', async () => {
  const sent: unknown[] = []
  const { connection } = await connect({
    send: ({ parts, isAnswer }) => sent.push([isAnswer, JSON.parse(join(parts).toString())]) > 0,
  })
  connection.respond('1', [Buffer.from('{}')])
  connection.refuse('"a"', -1, 'no')
  connection.respondError('2', [Buffer.from('{"code":-2}')])
  connection.notify('notifications/x')
  expect(sent).toEqual([
    [true, { jsonrpc: '2.0', id: 1, result: {} }],
    [true, { jsonrpc: '2.0', id: 'a', error: { code: -1, message: 'no' } }],
    [true, { jsonrpc: '2.0', id: 2, error: { code: -2 } }],
    [false, { jsonrpc: '2.0', method: 'notifications/x' }],
  ])
})

test.each([0, -1, 1.5, 'x', 99])('T-19 the tenth answer to %j, which was never sent, closes the connection', async (id) => {
  const violations: unknown[] = []
  const { done, receive } = await connect({}, { violation: (...args) => void violations.push(args) })
  for (let count = 0; count < 9; count++) receive({ id, error: { code: 1, message: 'no' } })
  expect(done).toEqual([])
  receive({ id, error: { code: 1, message: 'no' } })
  expect(done).toEqual([['close']])
  expect(violations).toEqual(Array.from({ length: 10 }, () => ['an unsolicited response', JSON.stringify(id)]))
})

test('T-19 errors without an id, which answer no request, are reported and close nothing', async () => {
  const violations: unknown[] = []
  const { done, receive } = await connect({}, { violation: (...args) => void violations.push(args) })
  for (let count = 0; count < 12; count++) receive({ id: null, error: { code: 1, message: 'no' } })
  expect(done).toEqual([])
  expect(violations).toEqual(Array.from({ length: 12 }, () => ['an unsolicited response', 'no id']))
})

describe('B256 a server that says much by itself', () => {
  const counting = async () => {
    const done: unknown[] = []
    const pause: Channel['pause'] = (id) => {
      done.push(['pause', id])
      return () => void done.push(['resume', id])
    }
    const peer = await connect({ pause })
    const say = (count: number, message: object = { method: 'notifications/message' }): void => {
      for (let at = 0; at < count; at++) peer.receive(message)
    }
    return { ...peer, done, say, turn: () => vi.advanceTimersToNextTimerAsync() }
  }
  const BOTH = [
    ['pause', undefined],
    ['resume', undefined],
  ]

  test('is paused at its 64th message of a turn, in each turn anew', async () => {
    const { done, say, turn } = await counting()
    say(63)
    expect(done).toEqual([])
    say(1)
    expect(done).toEqual(BOTH.slice(0, 1))
    await turn()
    say(64)
    await turn()
    await turn()
    expect(done).toEqual([...BOTH, ...BOTH])
  })

  test('is not where its messages come in many turns', async () => {
    const { done, say, turn } = await counting()
    for (let count = 0; count < 100; count++) {
      say(1)
      await turn()
    }
    expect(done).toEqual([])
  })

  test('is paused for answers that nobody waits for as well', async () => {
    const { ask, done, say } = await counting()
    const signal = new Cancellation()
    ask('one', { signal })
    signal.abort()
    say(64, { id: 1, result: {} })
    expect(done).toEqual(BOTH.slice(0, 1))
  })

  test('is not read on after the end', async () => {
    const { done, say, closed, pass } = await counting()
    say(64)
    closed.resolve(undefined)
    await pass(1_000)
    expect(done).toEqual(BOTH.slice(0, 1))
  })
})

test('F-21 what is paused at the end of a connection is forgotten', async () => {
  const resumed = vi.fn()
  const { receive, closed, pass } = await connect({ pause: () => resumed }, { isHostStalled: () => !resumed.mock.calls.length })
  receive({ method: 'notifications/message' })
  await pass(100)
  expect(vi.getTimerCount()).toBe(1)
  closed.resolve(undefined)
  await pass(100)
  expect([vi.getTimerCount(), resumed.mock.calls]).toEqual([0, []])
})
