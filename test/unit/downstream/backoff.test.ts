/** When a server that is lost is tried again, on a clock of the test's own. */
import { expect, test } from 'vitest'
import { Backoff, DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'

const MINUTE_MS = 60_000

/** Starts within `forMs` of a server that lives `upMs` each time. */
const starts = (forMs: number, upMs: number, random: () => number): number => {
  const backoff = new Backoff(DEFAULT_BACKOFF, random)
  let count = 0
  for (let nowMs = 0; nowMs < forMs; count++) {
    nowMs += upMs
    nowMs += backoff.fail(nowMs, { upMs, isCrash: true }).waitMs
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

test('F-04 the waits double, five crashes in two minutes are too many, and a minute of health forgets them all', () => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  const crash = { upMs: 0, isCrash: true }
  expect([0, 10, 20, 30].map((at) => backoff.fail(at, crash))).toEqual(
    [500, 1_000, 2_000, 4_000].map((waitMs) => ({ waitMs, isCrashLoop: false })),
  )
  expect(backoff.fail(40, crash)).toEqual({ waitMs: 300_000, isCrashLoop: true })
  expect(backoff.fail(302_000, { upMs: 2_000, isCrash: true })).toEqual({ waitMs: 300_000, isCrashLoop: true })
  expect(backoff.fail(700_000, { upMs: MINUTE_MS, isCrash: true })).toEqual({ waitMs: 500, isCrashLoop: false })
})

test('F-04 a server that cannot be reached is tried at least every 30 s, for ever, and never counts as a crash loop', () => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  const ends = Array.from({ length: 100 }, (_, at) => backoff.fail(at * 30_000, { upMs: 0, isCrash: false }))
  expect(Math.max(...ends.map(({ waitMs }) => waitMs))).toBe(30_000)
  expect(ends.some(({ isCrashLoop }) => isCrashLoop)).toBe(false)
})

test('F-04 crashes further apart than five in two minutes are no crash loop', () => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  for (let at = 0; at < 50; at++)
    expect(backoff.fail(at * 31_000, { upMs: 30_000, isCrash: true })).toMatchObject({ isCrashLoop: false })
})

test.each([
  [119_999, true],
  [120_000, false],
])('F-04 the fifth of five crashes, %i ms after the first, makes a crash loop: %s', (ms, isCrashLoop) => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  const ends = [0, 1, 2, 3, ms].map((at) => backoff.fail(10 * MINUTE_MS + at, { upMs: 0, isCrash: true }))
  expect(ends.map((end) => end.isCrashLoop)).toEqual([false, false, false, false, isCrashLoop])
})

test('F-04 crashes before a minute of health are not counted with those after it', () => {
  const backoff = new Backoff(DEFAULT_BACKOFF, () => 1)
  for (let at = 0; at < 4; at++) backoff.fail(at, { upMs: 0, isCrash: true })
  expect(backoff.fail(MINUTE_MS + 3, { upMs: MINUTE_MS, isCrash: true })).toEqual({ waitMs: 500, isCrashLoop: false })
})
