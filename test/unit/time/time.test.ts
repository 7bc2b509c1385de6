/** Back-off and pauses: pure arithmetic, and a timer that leaves nothing behind. */
import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { backoffMs } from '../../../src/time/backoff.ts'
import { LONGEST_TIMER_MS, pause } from '../../../src/time/pause.ts'

describe('back-off', () => {
  const range = { firstMs: 500, maxMs: 30_000 }

  test('doubles from the first wait to the longest', () => {
    const waits = [0, 1, 2, 5, 6, 7, 1_000].map((failures) => backoffMs(failures, range, () => 1))
    expect(waits).toEqual([500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000])
  })

  test('waits between the half and the whole', () => {
    expect(backoffMs(1, range, () => 0)).toBe(500)
    expect(backoffMs(1, range, () => 0.5)).toBe(750)
  })
})

describe('a pause', () => {
  test('ends with its time, or with its signal, and leaves no listener', async () => {
    vi.useFakeTimers()
    try {
      const { signal } = new AbortController()
      const whole = pause(1_000, signal)
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await whole).toBe(true)
      expect(getEventListeners(signal, 'abort')).toEqual([])

      const abort = new AbortController()
      const cut = pause(1_000, abort.signal)
      abort.abort()
      expect(await cut).toBe(false)
      expect(vi.getTimerCount()).toBe(0)
      expect(await pause(1_000, abort.signal)).toBe(false)
    } finally {
      vi.useRealTimers()
    }
  })

  test('longer than a timer of Node can be does not end at once', async () => {
    vi.useFakeTimers()
    try {
      const abort = new AbortController()
      let ended = false
      const long = pause(LONGEST_TIMER_MS * 2, abort.signal).finally(() => (ended = true))
      await vi.advanceTimersByTimeAsync(LONGEST_TIMER_MS - 1)
      expect(ended).toBe(false)
      abort.abort()
      expect(await long).toBe(false)
    } finally {
      vi.useRealTimers()
    }
  })
})
