/** Which limits make us refuse what, and when we are beyond help. */
import { expect, test } from 'vitest'
import { Overload } from '../../../src/host/limits/overload.ts'

const setUp = () => {
  const state = { nowMs: 0, descriptors: 0, heap: 0, exhausted: '', changes: [] as string[] }
  const gauges = { maxDescriptors: 1_000, descriptors: () => state.descriptors, heap: () => state.heap }
  const overload = new Overload(
    () => ({ maxLoopLagMs: 200 }),
    gauges,
    {
      changed: (shedding, reason) => state.changes.push(`${shedding} ${reason}`),
      exhausted: (reason) => (state.exhausted = reason),
    },
    () => state.nowMs,
  )
  /** Turns of the event loop that take `eachMs`, for `forMs`. */
  const run = (forMs: number, eachMs = 100): number => {
    for (const untilMs = state.nowMs + forMs; state.nowMs < untilMs;) {
      state.nowMs += eachMs
      overload.sweep()
    }
    return overload.shedding
  }
  return { state, overload, run }
}

test.each([
  [{ descriptors: 0.79, heap: 0.94 }, 0, ''],
  [{ descriptors: 0.8, heap: 0 }, 1, '80 % of the file descriptors are in use (ulimit -n)'],
  [{ descriptors: 0, heap: 0.95 }, 1, 'the heap is 95 % full'],
  [{ descriptors: 0.9, heap: 0.98 }, 2, 'the heap is 98 % full'],
])('F-29 F-30 with %j in use step %i is shed', (used, expected, reason) => {
  const { state, overload, run } = setUp()
  Object.assign(state, used)
  expect(run(1_000)).toBe(expected)
  expect(overload.reason).toBe(reason)
})

test('F-30 a loop that is late sheds sessions after a second, calls after three, and nothing once it is on time', () => {
  const { state, run } = setUp()
  expect(run(600, 400)).toBe(0)
  expect(run(800, 400)).toBe(1)
  expect(run(2_000, 400)).toBe(2)
  expect(run(200)).toBe(0)
  const late = 'the event loop is late (listen.limits.loop_lag, 200 ms)'
  expect(state.changes).toEqual([`1 ${late}`, `2 ${late}`, '0 '])
})

test('F-30 one long turn, or a process that was stopped (F-27), sheds nothing', () => {
  const { run } = setUp()
  expect(run(3_000, 3_000)).toBe(0)
  expect(run(100)).toBe(0)
  expect(run(60_000, 60_000)).toBe(0)
})

test('F-30 a heap that stays full for 30 s is beyond help, one that recovers is not', () => {
  const { state, run } = setUp()
  state.heap = 0.99
  run(29_000)
  state.heap = 0.5
  run(2_000)
  state.heap = 0.99
  run(29_000)
  expect(state.exhausted).toBe('')
  run(3_000)
  expect(state.exhausted).toBe('the heap is 99 % full')
})
