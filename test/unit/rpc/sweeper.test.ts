/** The timer of all deadlines: what one task does must not reach the others, nor the process. */
import { expect, test, vi } from 'vitest'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

test('F-29 F-31 a task that throws is reported once a minute, and the others are done', () => {
  vi.useFakeTimers()
  const clock = { ms: 0 }
  const reported: unknown[] = []
  using sweeper = new Sweeper({ failed: (error) => reported.push(error), clock: () => clock.ms })
  const swept: string[] = []
  const broken = new Error('EMFILE')
  sweeper.watch({
    sweep: () => {
      swept.push('first')
      throw broken
    },
  })
  sweeper.watch({ sweep: () => swept.push('second') })
  const run = (ms: number): void => {
    clock.ms += ms
    vi.advanceTimersByTime(100)
  }
  run(100)
  run(100)
  expect(swept).toEqual(['first', 'second', 'first', 'second'])
  expect(reported).toEqual([broken])
  for (let at = 0; at < 16; at++) run(4_000)
  expect(reported).toEqual([broken, broken])
})

test('F-27 a gap of five seconds counts in full; a longer one, a suspended machine, counts as one period', () => {
  vi.useFakeTimers()
  const clock = { ms: 0 }
  using sweeper = new Sweeper({ clock: () => clock.ms })
  const swept: number[] = []
  sweeper.watch({ sweep: (nowMs) => swept.push(nowMs) })
  for (const gap of [100, 5_000, 5_001, 100]) {
    clock.ms += gap
    vi.advanceTimersByTime(100)
  }
  expect(swept).toEqual([100, 5_100, 5_300])
})

test('F-27 its time goes on while nothing is watched, and a long idle time is no stop', () => {
  vi.useFakeTimers()
  const clock = { ms: 0 }
  const sweeper = new Sweeper({ clock: () => clock.ms })
  clock.ms = 3_000
  expect(sweeper.nowMs).toBe(3_000)
  clock.ms = 20_000
  const swept: number[] = []
  sweeper.watch({ sweep: (nowMs) => swept.push(nowMs) })
  expect(sweeper.nowMs).toBe(20_000)
  clock.ms = 20_100
  // Until the next sweep it stands still.
  expect(sweeper.nowMs).toBe(20_000)
  vi.advanceTimersByTime(100)
  expect([swept, sweeper.nowMs]).toEqual([[20_100], 20_100])
  sweeper[Symbol.dispose]()
  expect(vi.getTimerCount()).toBe(0)
})

test('F-30 the event loop is late where a sweep comes more than 100 ms late; after a stop it is not', () => {
  vi.useFakeTimers()
  const clock = { ms: 0 }
  using sweeper = new Sweeper({ clock: () => clock.ms })
  const item = { sweep: () => undefined }
  sweeper.watch(item)
  const isLate = [100, 200, 201, 100, 5_001, 5_000].map((gap) => {
    clock.ms += gap
    vi.advanceTimersByTime(100)
    return sweeper.isLate
  })
  expect(isLate).toEqual([false, false, true, false, false, true])
  sweeper.unwatch(item)
  clock.ms += 1_000
  expect([sweeper.nowMs, sweeper.isLate]).toEqual([6_701, false])
})
