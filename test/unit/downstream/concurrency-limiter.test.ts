/** Calls at once at one server, and those that wait (RELIABILITY 7). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ConcurrencyLimiter } from '../../../src/downstream/pacing/concurrency-limiter.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'

const { signal } = new Cancellation()

test('F-25 a reload that allows more lets those in that wait, in their order and no more than fit', async () => {
  const limiter = new ConcurrencyLimiter(1, 10)
  expect(limiter.acquire(signal)).toBeUndefined()
  const entered: number[] = []
  const waiting = [1, 2, 3].map(async (at) => {
    await limiter.acquire(signal)
    entered.push(at)
  })
  limiter.resize(3, 10)
  await Promise.all(waiting.slice(0, 2))
  expect([entered, limiter.inUse]).toEqual([[1, 2], 3])
  limiter.release()
  await waiting[2]
  expect(entered).toEqual([1, 2, 3])
})

test('F-25 a reload that allows fewer ends nothing: no call enters until as many have left', async () => {
  const limiter = new ConcurrencyLimiter(2, 10)
  for (let at = 0; at < 2; at++) expect(limiter.acquire(signal)).toBeUndefined()
  limiter.resize(1, 10)
  expect(limiter.inUse).toBe(2)
  limiter.release()
  expect(limiter.acquire(signal)).toBeInstanceOf(Promise)
  limiter.release()
  expect(limiter.inUse).toBe(1)
})

test('F-25 a reload that allows fewer holds for calls that wait already', async () => {
  const limiter = new ConcurrencyLimiter(3, 10)
  for (let at = 0; at < 3; at++) expect(limiter.acquire(signal)).toBeUndefined()
  let entered = 0
  const waiting = [1, 2].map(async () => {
    await limiter.acquire(signal)
    entered++
  })
  limiter.resize(1, 10)
  const seen: (readonly [entered: number, inUse: number])[] = []
  for (let ended = 0; ended < 5; ended++) {
    limiter.release()
    await Promise.resolve()
    await Promise.resolve()
    seen.push([entered, limiter.inUse])
  }
  await Promise.all(waiting)
  expect(seen).toEqual([
    [0, 2],
    [0, 1],
    [1, 1],
    [2, 1],
    [2, 0],
  ])
})

describe('a server whose slots are taken', () => {
  beforeEach(() => void vi.useFakeTimers())

  /** One slot, which is taken, and room for two that wait. */
  const full = (): ConcurrencyLimiter => {
    const limiter = new ConcurrencyLimiter(1, 2)
    void limiter.acquire(signal)
    return limiter
  }

  test('lets as many calls wait as limits.queue says, and refuses the next one', async () => {
    const limiter = full()
    const waiting = [limiter.acquire(signal), limiter.acquire(signal)]
    expect(limiter.queued).toBe(2)
    expect(() => limiter.acquire(signal)).toThrow(
      expect.objectContaining({
        kind: 'overloaded',
        message: 'limits.concurrency (1) and limits.queue (2) reached',
        facts: { executed: 'no', retryable: true, retryAfterMs: 1_000, limit: 'limits.queue' },
      }),
    )
    for (const next of waiting) {
      limiter.release()
      await next
    }
    limiter.release()
    expect([limiter.inUse, limiter.queued, vi.getTimerCount()]).toEqual([0, 0, 0])
  })

  test('refuses a call that has waited for 10 s, which waits no more', async () => {
    const limiter = full()
    const seen: unknown[] = []
    limiter.acquire(signal)?.catch((error: unknown) => seen.push(error))
    await vi.advanceTimersByTimeAsync(9_999)
    expect([limiter.queued, seen]).toEqual([1, []])
    await vi.advanceTimersByTimeAsync(1)
    expect(limiter.queued).toBe(0)
    expect(seen).toMatchObject([{ kind: 'overloaded', facts: { executed: 'no', limit: 'limits.concurrency' } }])
  })

  test('forgets a call that is cancelled while it waits, and listens to none that has entered', async () => {
    const limiter = full()
    const [first, second] = [new Cancellation(), new Cancellation()]
    const [entered, cancelled] = [limiter.acquire(first), limiter.acquire(second)]
    const removed = vi.spyOn(first, 'removeEventListener')
    second.abort()
    await expect(cancelled).rejects.toMatchObject({ kind: 'cancelled', executed: 'no' })
    limiter.release()
    await entered
    expect([limiter.inUse, limiter.queued, vi.getTimerCount(), removed.mock.calls.length]).toEqual([1, 0, 0, 1])
  })
})
