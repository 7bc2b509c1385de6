/** Calls at once at one server, and those that wait (RELIABILITY 7). */
import { expect, test } from 'vitest'
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
