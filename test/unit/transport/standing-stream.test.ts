import { expect, test, vi } from 'vitest'
import { DEFAULT_RECONNECT } from '../../../src/transport/channel/reconnect.ts'
import { StandingStream } from '../../../src/transport/channel/standing-stream.ts'
import type { Reply, ReplyEvents } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const STREAM: ReplyHead = { status: 200, headers: {}, form: 'sse', length: 0 }

/** A stream whose replies live for `lifeMs` without an event; returns the milliseconds between each end and the next GET. */
const gaps = (lifeMs: number, count: number): number[] => {
  vi.useFakeTimers()
  const waited: number[] = []
  let endedMs = NaN
  const get = (_lastEventId: string | undefined, events: ReplyEvents): Reply => {
    if (!Number.isNaN(endedMs)) waited.push(Math.round(performance.now() - endedMs))
    setTimeout(() => {
      events.onHead?.(STREAM)
      setTimeout(() => {
        endedMs = performance.now()
        events.onEnd(STREAM, Buffer.alloc(0))
      }, lifeMs)
    }, 0)
    // Cast: the stream only aborts its replies.
    return { abort: () => undefined } as Reply
  }
  const ports = { get, message: () => undefined, oversize: () => undefined, expired: () => undefined }
  const stream = new StandingStream(ports, { ...DEFAULT_RECONNECT, random: () => 1 })
  stream.open()
  while (waited.length < count) vi.advanceTimersByTime(1_000)
  stream.stop()
  return waited
}

test('B223 a stream that a proxy ends every minute is opened again after the first delay each time', () => {
  expect(gaps(60_000, 6)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 1_000])
})

test('a stream that ends at once is opened again after longer and longer delays', () => {
  expect(gaps(0, 6)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000])
})

test('B223 is resumed after the last event that had an id', () => {
  vi.useFakeTimers()
  const asked: (string | undefined)[] = []
  const get = (lastEventId: string | undefined, events: ReplyEvents): Reply => {
    asked.push(lastEventId)
    setTimeout(() => {
      events.onHead?.(STREAM)
      for (const id of asked.length === 1 ? ['e1', undefined] : [])
        events.onEvent({ event: 'message', data: Buffer.from('{}'), ahead: undefined, id, retry: undefined })
      events.onEnd(STREAM, Buffer.alloc(0))
    }, 0)
    // Cast: the stream only aborts its replies.
    return { abort: () => undefined } as Reply
  }
  const ports = { get, message: () => undefined, oversize: () => undefined, expired: () => undefined }
  const stream = new StandingStream(ports, DEFAULT_RECONNECT)
  stream.open()
  while (asked.length < 3) vi.advanceTimersByTime(1_000)
  stream.stop()
  expect(asked).toEqual([undefined, 'e1', 'e1'])
})

test('a server that redirects the GET to a page, as one that has no stream, is not asked again', async () => {
  vi.useFakeTimers()
  const get = vi.fn((_lastEventId: string | undefined, events: ReplyEvents): Reply => {
    setTimeout(() => events.onError(new Failure('bad_response', 'the server answered HTTP 302', { status: 302 })), 0)
    // Cast: the stream only aborts its replies.
    return { abort: () => undefined } as Reply
  })
  const ports = { get, message: () => undefined, oversize: () => undefined, expired: () => undefined }
  const stream = new StandingStream(ports, DEFAULT_RECONNECT)
  stream.open()
  vi.advanceTimersByTime(600_000)
  expect(get).toHaveBeenCalledTimes(1)
  expect(await stream.isOffered).toBe(false)
})
