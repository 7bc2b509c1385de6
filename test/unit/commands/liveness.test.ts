import { beforeEach, expect, test, vi } from 'vitest'
import { SILENCE_MS, watchLiveness } from '../../../src/commands/serve/liveness.ts'

beforeEach(() => void vi.useFakeTimers())

const never = (): Promise<never> => new Promise(() => undefined)

test('a worker that answers no ping is noticed once', async () => {
  const silent = vi.fn()
  watchLiveness({ request: never }, silent)
  await vi.advanceTimersByTimeAsync(SILENCE_MS)
  expect(silent).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(silent).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(10 * SILENCE_MS)
  expect(silent).toHaveBeenCalledTimes(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('one late answer is a sign of life', async () => {
  const silent = vi.fn()
  const first = Promise.withResolvers<never>()
  const request = vi.fn(never).mockReturnValueOnce(first.promise)
  watchLiveness({ request }, silent)
  await vi.advanceTimersByTimeAsync(SILENCE_MS)
  first.resolve(undefined as never)
  await vi.advanceTimersByTimeAsync(SILENCE_MS)
  expect(silent).not.toHaveBeenCalled()
})

test('its end is not silence, and nobody is pinged after it', async () => {
  const silent = vi.fn()
  const request = vi.fn(() => Promise.reject(new Error('the other process has ended')))
  const unwatch = watchLiveness({ request }, silent)
  await vi.advanceTimersByTimeAsync(3 * SILENCE_MS)
  unwatch()
  const { length } = request.mock.calls
  await vi.advanceTimersByTimeAsync(3 * SILENCE_MS)
  expect([request.mock.calls.length, silent.mock.calls.length]).toEqual([length, 0])
})
