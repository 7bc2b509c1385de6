/** How often a server that keeps dying is started, on a clock of the test's own. */
import { expect, test } from 'vitest'
import { Backoff, DEFAULT_BACKOFF } from '../../../src/downstream/backoff.ts'

const MINUTE_MS = 60_000

/** Starts within `forMs` of a server that lives `upMs` each time. */
const starts = (forMs: number, upMs: number, random: () => number): number => {
  const backoff = new Backoff(DEFAULT_BACKOFF, random)
  let count = 0
  for (let nowMs = 0; nowMs < forMs; count++) {
    nowMs += upMs
    nowMs += backoff.fail(nowMs, upMs).waitMs
  }
  return count
}

test.each([0, 0.5, 0.999])(
  'F-04 flapping every 2 s for 10 min is no more than 25 processes, a spare beside each (random %d)',
  (luck) => {
    // The catalogue link and the spare are two processes.
    expect(2 * starts(10 * MINUTE_MS, 2_000, () => luck)).toBeLessThanOrEqual(25)
  },
)

test('F-04 the waits double, five failures in two minutes are too many, and a minute of health forgets them all', () => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  expect([0, 10, 20, 30].map((at) => backoff.fail(at, 0))).toEqual(
    [500, 1_000, 2_000, 4_000].map((waitMs) => ({ waitMs, isDown: false })),
  )
  expect(backoff.fail(40, 0)).toEqual({ waitMs: 300_000, isDown: true })
  expect(backoff.fail(302_000, 2_000)).toEqual({ waitMs: 300_000, isDown: true })
  expect(backoff.fail(700_000, MINUTE_MS)).toEqual({ waitMs: 500, isDown: false })
})
