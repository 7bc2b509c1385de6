import { beforeEach, describe, expect, test, vi } from 'vitest'
import { isWorthReading, restAfter, Rereads } from '../../../src/downstream/lists/rereads.ts'

const PERIOD_MS = 30_000

describe('reading lists again', () => {
  beforeEach(() => void vi.useFakeTimers())

  /** How long each of `count` polls was waited for, `random` being what Math.random says. */
  const waits = async (count: number, random: number, read: () => Promise<void>): Promise<number[]> => {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    const found: number[] = []
    let lastMs = Date.now()
    const rereads = new Rereads(() => {
      found.push(Date.now() - lastMs)
      lastMs = Date.now()
      return read()
    })
    rereads.poll(PERIOD_MS)
    // Bounded: a loop that went on behind a test that timed out would move the clock of the tests after it.
    for (let step = 0; found.length < count && step < 10 * count; step++) await vi.advanceTimersToNextTimerAsync()
    rereads.close()
    expect(vi.getTimerCount()).toBe(0)
    return found
  }

  test.each([
    [0, 22_500],
    [0.5, 30_000],
    [0.999, 37_485],
  ])('B157 polls come with jitter: at %d after %d ms', async (random, expectedMs) => {
    expect(await waits(3, random, () => Promise.resolve())).toEqual(Array(3).fill(expectedMs))
  })

  test('B157 a poll that fails doubles the wait, up to ten minutes, until one succeeds', async () => {
    let reads = 0
    const found = await waits(9, 0.5, () => (++reads === 7 ? Promise.resolve() : Promise.reject(new Error('no'))))
    expect(found).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000, 30_000, 60_000])
  })

  test('a period that is set while a poll is being read takes the place of the one before', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const reads: (() => void)[] = []
    const rereads = new Rereads(() => new Promise((resolve) => reads.push(resolve)))
    rereads.poll(PERIOD_MS)
    await vi.advanceTimersToNextTimerAsync()
    rereads.poll(PERIOD_MS)
    reads[0]!()
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(1)
    rereads.close()
  })

  test('a server that is gone is not polled any more', async () => {
    const read = vi.fn(() => Promise.resolve())
    const rereads = new Rereads(read)
    rereads.poll(PERIOD_MS)
    rereads.request()
    rereads.close()
    await vi.advanceTimersByTimeAsync(10 * PERIOD_MS)
    expect(read).not.toHaveBeenCalled()
  })

  test('B285 lists that are needed now are read at once, once for all that ask, and once more for what is announced meanwhile', async () => {
    const reads: (() => void)[] = []
    const rereads = new Rereads(() => new Promise((resolve) => reads.push(resolve)))
    expect(rereads.freshen(false)).toBeUndefined()
    rereads.request()
    const first = [rereads.freshen(false), rereads.freshen(true)]
    expect(reads).toHaveLength(1)
    rereads.request()
    const second = rereads.freshen(false)
    reads[0]!()
    for (const one of first) await one
    await vi.advanceTimersByTimeAsync(0)
    expect(reads).toHaveLength(2)
    reads[1]!()
    await second
    await vi.advanceTimersByTimeAsync(2_000)
    expect(reads).toHaveLength(2)
    rereads.close()
  })

  test('B129 a burst is read once it is over, and after a second where it does not end', async () => {
    const read = vi.fn(() => Promise.resolve())
    const rereads = new Rereads(read)
    for (let announced = 0; announced < 3; announced++) {
      rereads.request()
      await vi.advanceTimersByTimeAsync(90)
      expect(read).not.toHaveBeenCalled()
    }
    await vi.advanceTimersByTimeAsync(20)
    expect(read).toHaveBeenCalledTimes(1)
    for (let announced = 0; announced < 12; announced++) {
      rereads.request()
      await vi.advanceTimersByTimeAsync(90)
    }
    expect(read).toHaveBeenCalledTimes(2)
    rereads.close()
  })

  test('B256 B285 lists that rest are not read for who asks, either', async () => {
    const read = vi.fn(() => Promise.resolve())
    const rereads = new Rereads(read, () => 20_000)
    await rereads.freshen(true)
    rereads.request()
    expect(rereads.freshen(true)).toBeUndefined()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(read).toHaveBeenCalledTimes(2)
    rereads.close()
  })

  test('B256 announcements in a row cause readings that rest in proportion to what they cost', async () => {
    const read = vi.fn(() => Promise.resolve())
    const rereads = new Rereads(read, () => 20_000)
    /** One announcement each 100 ms. */
    const announce = async (ms: number): Promise<number> => {
      for (const untilMs = Date.now() + ms; Date.now() < untilMs;) {
        rereads.request()
        await vi.advanceTimersByTimeAsync(100)
      }
      return read.mock.calls.length
    }
    expect(await announce(1_500)).toBe(1)
    expect(await announce(18_000)).toBe(1)
    expect(await announce(3_000)).toBe(2)
    // The last announcement is not lost.
    await vi.advanceTimersByTimeAsync(30_000)
    expect(read).toHaveBeenCalledTimes(3)
    rereads.close()
  })

  test('B256 an announcement at the very end of a reading waits for the rest after it, too', async () => {
    const reads: (() => void)[] = []
    const rereads = new Rereads(
      () => new Promise((resolve) => reads.push(resolve)),
      () => 20_000,
    )
    rereads.request()
    await vi.advanceTimersByTimeAsync(100)
    rereads.request()
    await vi.advanceTimersByTimeAsync(50)
    reads[0]!()
    await vi.advanceTimersByTimeAsync(19_900)
    expect(reads).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(reads).toHaveLength(2)
    rereads.close()
  })

  test('B256 small lists are read as soon as before, and an announcement during a reading causes one more', async () => {
    const reads: (() => void)[] = []
    const rereads = new Rereads(
      () => new Promise((resolve) => reads.push(resolve)),
      () => restAfter({ readBytes: 3_000 }),
    )
    rereads.request()
    await vi.advanceTimersByTimeAsync(100)
    rereads.request()
    await vi.advanceTimersByTimeAsync(100)
    expect(reads).toHaveLength(1)
    reads[0]!()
    await vi.advanceTimersByTimeAsync(100)
    expect(reads).toHaveLength(2)
    rereads.close()
  })
})

test.each([
  [0, 1_000],
  [100, 1_000],
  [150, 1_500],
  [2_000, 20_000],
])('B285 lists whose reading took %i ms are read again for a host once they are %i ms old', (costMs, oldMs) => {
  let nowMs = 5_000
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const last = { readMs: 5_000, costMs }
  nowMs += oldMs - 1
  expect(isWorthReading(last, 1_000)).toBe(false)
  nowMs += 1
  expect(isWorthReading(last, 1_000)).toBe(true)
})
