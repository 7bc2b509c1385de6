/** Back-off and pauses: pure arithmetic, and a timer that leaves nothing behind. */
import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { backoffMs } from '../../../src/time/backoff.ts'
import { LONGEST_TIMER_MS, pause } from '../../../src/time/pause.ts'
import { Throttle } from '../../../src/time/throttle.ts'

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
    const { signal } = new AbortController()
    const whole = pause(1_000, signal)
    let isOver = false
    void whole.then(() => (isOver = true))
    await vi.advanceTimersByTimeAsync(999)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await whole).toBe(true)
    expect(getEventListeners(signal, 'abort')).toEqual([])

    const abort = new AbortController()
    const cut = pause(1_000, abort.signal)
    abort.abort()
    expect(await cut).toBe(false)
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
    expect(await pause(1_000, abort.signal)).toBe(false)
  })

  test('longer than a timer of Node can be does not end at once', async () => {
    vi.useFakeTimers()
    const abort = new AbortController()
    let ended = false
    const long = pause(LONGEST_TIMER_MS * 2, abort.signal).finally(() => (ended = true))
    await vi.advanceTimersByTimeAsync(LONGEST_TIMER_MS - 1)
    expect(ended).toBe(false)
    abort.abort()
    expect(await long).toBe(false)
  })
})

describe('a throttle', () => {
  test('is due at once, then once in its time with the number of what was not told, for each kind', () => {
    let nowMs = 5
    const throttle = new Throttle(100, () => nowMs)
    expect([throttle.due('a'), throttle.due('a'), throttle.due('b'), throttle.due()]).toEqual([1, undefined, 1, 1])
    nowMs += 99
    expect(throttle.due('a')).toBeUndefined()
    nowMs += 1
    expect([throttle.due('a'), throttle.due('a')]).toEqual([3, undefined])
  })

  test('remembers a bounded number of kinds, of those that came last', () => {
    const throttle = new Throttle(100, () => 0)
    for (let kind = 0; kind < 1_000; kind++) throttle.due(String(kind))
    expect(throttle.due('999')).toBeUndefined()
    expect(throttle.due('one more')).toBe(1)
    expect(throttle.due('one more')).toBeUndefined()
    expect(throttle.due('999')).toBe(1)
  })
})
