/** A response whose host disconnects and resumes its stream (BRIDGING 5.1). */
import { expect, test, vi } from 'vitest'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import { EventBudget } from '../../../src/host/response/event-budget.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import { PostExchange } from '../../../src/host/response/exchange.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'
import type { EventStream } from '../../../src/transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

/** A stream that records what it is sent. */
const makeStream = () => {
  const sent: string[] = []
  const end = vi.fn()
  let closed = (): void => undefined
  const stream = {
    message: (parts: readonly Buffer[]) => void sent.push(Buffer.concat(parts).toString()),
    end,
    sweep: () => undefined,
    onClose: (callback: () => void) => void (closed = callback),
  } as unknown as EventStream
  return { stream, sent, end, close: () => closed() }
}

const makeExchange = () => {
  const counts = new LimitCounts({ warn: () => undefined })
  const first = makeStream()
  let disconnected = (): void => undefined
  const request = {
    onDisconnect: (callback: () => void) => void (disconnected = callback),
    openEvents: () => first.stream,
  } as unknown as HttpRequest
  const onOrphaned = vi.fn()
  const exchange = new PostExchange(1, {
    request,
    streamAfterMs: 0,
    pollAfterMs: Infinity,
    log: new EventLog(() => DEFAULT_HOST_LIMITS, new EventBudget(() => 1e6, counts), counts),
    primes: false,
    onDone: () => undefined,
    challenge: undefined,
    principal: 'local',
    untilMs: Infinity,
    onOrphaned,
  })
  const sweepAfter = (ms: number): void => exchange.sweep(performance.now() + ms, DEFAULT_HOST_LIMITS, counts)
  return { exchange, first, onOrphaned, sweepAfter, disconnect: () => disconnected() }
}

const LATE_MS = DEFAULT_HOST_LIMITS.orphanMs + 1
const MESSAGE = Payload.of({ n: 1 }).parts()

test('B139 a host has orphanMs from its last disconnect to resume, and none while its stream is open', () => {
  const { exchange, first, onOrphaned, sweepAfter, disconnect } = makeExchange()
  sweepAfter(LATE_MS)
  expect(onOrphaned).not.toHaveBeenCalled()
  disconnect()
  exchange.message(MESSAGE)
  sweepAfter(LATE_MS - 1_000)
  expect([onOrphaned.mock.calls.length, first.sent]).toEqual([0, []])
  const second = makeStream()
  exchange.resume(second.stream)
  sweepAfter(LATE_MS)
  exchange.message(MESSAGE)
  expect([onOrphaned.mock.calls.length, second.sent]).toEqual([0, ['{"n":1}']])
  second.close()
  sweepAfter(LATE_MS)
  expect(onOrphaned.mock.calls).toEqual([[exchange]])
})

test('a stream that another one has replaced is ended, and its close is ignored', () => {
  const { exchange, first, onOrphaned, sweepAfter } = makeExchange()
  const [second, third] = [makeStream(), makeStream()]
  exchange.resume(second.stream)
  exchange.resume(third.stream)
  expect([first, second, third].map(({ end }) => end.mock.calls.length)).toEqual([1, 1, 0])
  second.close()
  sweepAfter(LATE_MS)
  exchange.message(MESSAGE)
  expect([onOrphaned.mock.calls.length, third.sent]).toEqual([0, ['{"n":1}']])
})

test('B202 the old connection of a stream that was resumed may break later: the stream goes on', () => {
  const { exchange, onOrphaned, sweepAfter, disconnect } = makeExchange()
  const second = makeStream()
  exchange.resume(second.stream)
  disconnect()
  sweepAfter(LATE_MS)
  exchange.message(MESSAGE)
  expect([onOrphaned.mock.calls.length, second.sent]).toEqual([0, ['{"n":1}']])
})
