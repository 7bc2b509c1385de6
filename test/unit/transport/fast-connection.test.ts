import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { FastConnection } from '../../../src/transport/http1/server/fast/fast-connection.ts'
import { fastShared } from '../../support/fast-shared.ts'
import { collector } from '../../support/garbage-collector.ts'

const REQUEST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'

/** A connection at time 0 whose other end takes what is written only if `takes`. */
const open = (takes = true) => {
  const seen: string[] = []
  const requests: HttpRequest[] = []
  const shared = fastShared({
    listener: {
      writeStallMs: 500,
      events: {
        request: (request) => void requests.push(request),
        trouble: () => undefined,
        reached: (option) => void seen.push(option),
      },
    },
    limits: { keepAliveTimeoutMs: 5_000, requestTimeoutMs: 3_000 },
    handOver: (_connection, _socket, early) => void seen.push(`handed over ${early.toString()}`),
    refuseSlow: (_socket, isReading) => void seen.push(isReading ? 'its body is late' : 'it is late'),
  })
  const duplex = new Duplex({ read: () => undefined, write: (_piece, _encoding, done) => void (takes && done()) })
  Object.assign(duplex, { destroySoon: () => void seen.push('closed') })
  const destroy = duplex.destroy.bind(duplex)
  Object.assign(duplex, { destroy: () => void (seen.push('destroyed'), destroy()) })
  const connection = new FastConnection(duplex as Socket, shared)
  const say = (text: string): void => void duplex.emit('data', Buffer.from(text))
  const answer = (): void => {
    say(REQUEST)
    requests.at(-1)?.reply(202, {})
    shared.listener.batch.flush()
  }
  return { connection, seen, say, answer, requests, shared, duplex }
}

/** What was seen when so much time had gone by. */
const at = ({ connection, seen }: ReturnType<typeof open>, ms: number): readonly string[] => {
  connection.sweep(ms)
  return seen
}

test('T-23 who has said nothing, or part of a request, for two seconds is node:http’s; times are up to a second old', () => {
  const silent = open()
  expect(at(silent, 1_999)).toEqual([])
  expect(at(silent, 2_000)).toEqual(['handed over '])
  const slow = open()
  slow.answer()
  slow.say('POST')
  expect(at(slow, 1_999)).toEqual([])
  expect(at(slow, 2_000)).toEqual(['handed over POST'])
})

test('an idle connection is closed a second after what the host was told, or later', () => {
  const idle = open()
  idle.answer()
  expect(at(idle, 5_000 + 1_999)).toEqual([])
  expect(at(idle, 5_000 + 2_000)).toEqual(['closed'])
})

test('a request under way is nobody’s business', () => {
  const busy = open()
  busy.say(REQUEST)
  expect(at(busy, 1_000_000)).toEqual([])
})

test('F-21 an answer that is not taken in time costs the connection', () => {
  const stalled = open(false)
  stalled.answer()
  expect(at(stalled, 499)).toEqual([])
  expect(at(stalled, 500)).toEqual(['listen.limits.write_stall', 'destroyed'])
})

test('F-21 an answer that is taken slowly keeps the connection', () => {
  const slow = open(false)
  const handle = { bytesWritten: 100, writeQueueSize: 100 }
  Object.assign(slow.duplex, { _handle: handle })
  slow.answer()
  expect(at(slow, 400)).toEqual([])
  handle.writeQueueSize = 50
  expect(at(slow, 800)).toEqual([])
  expect(at(slow, 1_299)).toEqual([])
  expect(at(slow, 1_300)).toEqual(['listen.limits.write_stall', 'destroyed'])
})

test('F-21 the last answer on a connection that is not taken in time costs the connection, too', () => {
  const stalled = open(false)
  stalled.say(REQUEST)
  stalled.requests[0]?.reply(503, { Connection: 'close' })
  stalled.shared.listener.batch.flush()
  expect(at(stalled, 499)).toEqual(['closed'])
  expect(at(stalled, 500)).toEqual(['closed', 'listen.limits.write_stall', 'destroyed'])
})

const BODY_TO_COME = REQUEST.replace('Length: 0', 'Length: 200000')

test('T-23 a request whose body does not come in time is refused once, whether it was asked for or not', () => {
  for (const [isAsked, told] of [
    [true, 'its body is late'],
    [false, 'it is late'],
  ] as const) {
    const slow = open()
    slow.say(`${BODY_TO_COME}abc`)
    if (isAsked) slow.requests[0]?.readBody(1_000_000, () => undefined)
    expect(at(slow, 2_999)).toEqual([])
    expect(at(slow, 3_000)).toEqual([told])
    expect(at(slow, 60_000)).toEqual([told])
    expect(slow.shared.listener.bodies.held.bytes).toBe(0)
  }
})

test('a request is served from its head on, and what has come of its body counts as held while it is read', () => {
  const host = open()
  host.say(`${BODY_TO_COME}abc`)
  const bodies: (Buffer | string)[] = []
  expect(host.shared.listener.bodies.held.bytes).toBe(0)
  host.requests[0]?.readBody(200_000, (body) => bodies.push(body))
  expect(host.shared.listener.bodies.held.bytes).toBe(3)
  host.say('x'.repeat(199_996))
  expect(host.shared.listener.bodies.held.bytes).toBe(199_999)
  expect(bodies).toEqual([])
  host.say('y')
  expect(bodies.map(String)).toEqual([`abc${'x'.repeat(199_996)}y`])
  expect(host.shared.listener.bodies.held.bytes).toBe(0)
})

test('F-30 a body is not read on once all bodies together are too much', () => {
  const host = open()
  host.shared.listener.bodies.held.max = 1_000
  host.say(`${BODY_TO_COME}abc`)
  const bodies: (Buffer | string)[] = []
  host.requests[0]?.readBody(200_000, (body) => bodies.push(body))
  host.say('x'.repeat(2_000))
  host.say('x')
  expect(bodies).toEqual(['overloaded'])
  expect(host.shared.listener.bodies.held.bytes).toBe(0)
})

test('a body that is not asked for is not read beyond 64 KiB, and goes on once it is', () => {
  const host = open()
  const isPaused = (): boolean => host.duplex.isPaused()
  host.say(BODY_TO_COME)
  for (let piece = 0; piece < 4; piece++) host.say('x'.repeat(16 * 1024))
  expect(isPaused()).toBe(false)
  host.say('x')
  expect(isPaused()).toBe(true)
  host.requests[0]?.readBody(200_000, () => undefined)
  expect(isPaused()).toBe(false)
})

test('a head in nine pieces is node:http’s, with all of them', () => {
  const host = open()
  for (const byte of 'POST / HT') host.say(byte)
  expect(host.seen).toEqual(['handed over POST / HT'])
})

test('a connection that ended is kept by nothing, whatever became of its requests', async () => {
  const collect = collector()
  const ended = [REQUEST, `${BODY_TO_COME}abc`, `${REQUEST}${REQUEST}`, 'POST / HT', ''].map((text) => {
    const host = open()
    if (text !== '') host.say(text)
    host.requests[0]?.reply(401, {})
    host.shared.listener.batch.flush()
    host.duplex.destroy()
    return new WeakRef(host.connection)
  })
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  expect(ended.map((connection) => connection.deref())).toEqual(ended.map(() => undefined))
})

test('F-21 a host that does not take its answers is asked for no more requests until it has', () => {
  const { answer, duplex, shared } = open(false)
  for (let sent = 0; sent < 5_000 && !duplex.isPaused(); sent++) answer()
  expect(duplex.writableNeedDrain).toBe(true)
  expect(duplex.isPaused()).toBe(true)
  duplex.emit('drain')
  expect(duplex.isPaused()).toBe(false)
  shared.listener.batch.flush()
})
