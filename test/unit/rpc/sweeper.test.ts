/** The timer of all deadlines: what one task does must not reach the others, nor the process. */
import { expect, test, vi } from 'vitest'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

test('F-29 F-31 a task that throws is reported once a minute, and the others are done', () => {
  vi.useFakeTimers()
  try {
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
  } finally {
    vi.useRealTimers()
  }
})

test('F-27 a gap of five seconds counts in full; a longer one, a suspended machine, counts as one period', () => {
  vi.useFakeTimers()
  try {
    const clock = { ms: 0 }
    using sweeper = new Sweeper({ clock: () => clock.ms })
    const swept: number[] = []
    sweeper.watch({ sweep: (nowMs) => swept.push(nowMs) })
    for (const gap of [100, 5_000, 5_001, 100]) {
      clock.ms += gap
      vi.advanceTimersByTime(100)
    }
    expect(swept).toEqual([100, 5_100, 5_300])
  } finally {
    vi.useRealTimers()
  }
})
