/** The token bucket of a rate: how many calls it lets through at once, and how long the next one waits. */
import { expect, test } from 'vitest'
import { TokenBucket } from '../../../src/rpc/rate.ts'

const bucketOf = (amount: number, periodMs: number): TokenBucket => new TokenBucket({ amount, periodMs, text: '' })

test('a bucket holds the tokens of one period and refills evenly', () => {
  const bucket = bucketOf(4, 1_000)
  expect([bucket.isFull(0), bucket.waitMs(0)]).toEqual([true, 0])
  const waits: number[] = []
  for (let taken = 0; taken < 6; taken++) {
    bucket.take(0)
    waits.push(bucket.waitMs(0))
  }
  expect(waits).toEqual([0, 0, 0, 250, 500, 750])
  expect([749, 750, 1_000].map((nowMs) => bucket.waitMs(nowMs))).toEqual([1, 0, 0])
  expect([bucket.isFull(1_499), bucket.isFull(1_500)]).toEqual([false, true])
})

test('time in which a bucket was full earns nothing', () => {
  const bucket = bucketOf(2, 1_000)
  bucket.take(10_000, 2)
  expect([bucket.waitMs(10_000), bucket.waitMs(10_499), bucket.waitMs(10_500)]).toEqual([500, 1, 0])
})

test('a rounding error of sums of fractions is no reason to wait', () => {
  const bucket = bucketOf(3, 1_000)
  bucket.take(0, 3)
  const wait = bucket.waitMs(0)
  expect(bucket.waitMs(wait - 0.000_5)).toBe(0)
  expect(bucket.waitMs(wait - 0.01)).toBeCloseTo(0.01, 5)
})
