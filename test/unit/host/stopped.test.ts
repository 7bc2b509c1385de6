/** A machine that slept, a process that was stopped, a clock that jumps: nobody is idle for that (RELIABILITY F-27). */
import { beforeEach, expect, test, vi } from 'vitest'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import { Session } from '../../../src/host/session/session.ts'
import { Sessions } from '../../../src/host/session/sessions.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

const MINUTE_MS = 60_000

beforeEach(() => void vi.useFakeTimers())

const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const

test('F-27 after an hour of standstill no session is idle; half an hour of its own silence later it is', () => {
  const sessions = new Sessions(() => DEFAULT_HOST_LIMITS, new LimitCounts({ warn: () => undefined }))
  sessions.add(
    new Session({
      introduction,
      principal: 'local',
      scope: { server: undefined },
      admission: { begin: () => undefined, end: () => -1 },
      transport: 'stdio',
    }),
  )
  const startMs = performance.now()
  const sweep = (atMs: number): number => {
    sessions.sweep(startMs + atMs)
    return sessions.size
  }
  expect(sweep(0)).toBe(1)
  expect(sweep(25 * 60 * MINUTE_MS)).toBe(1)
  for (let atMs = 0; atMs < 29 * MINUTE_MS; atMs += 4_000) sweep(25 * 60 * MINUTE_MS + atMs)
  expect(sessions.size).toBe(1)
  for (let atMs = 29 * MINUTE_MS; atMs <= 31 * MINUTE_MS; atMs += 4_000) sweep(25 * 60 * MINUTE_MS + atMs)
  expect(sessions.size).toBe(0)
})

test('F-27 in the turn after a standstill nothing is judged, and the time of it does not count', () => {
  let clockMs = 0
  using sweeper = new Sweeper({ clock: () => clockMs })
  const swept: number[] = []
  sweeper.watch({ sweep: (nowMs) => swept.push(nowMs) })
  const turn = (ms: number): void => {
    clockMs += ms
    vi.advanceTimersByTime(100)
  }
  turn(100)
  turn(60_000)
  turn(100)
  expect(swept).toEqual([100, 300])
})

test('F-27 the wall clock may jump by an hour either way: deadlines are on the monotonic one', () => {
  let clockMs = 0
  using sweeper = new Sweeper({ clock: () => clockMs })
  let nowMs = 0
  sweeper.watch({ sweep: (at) => (nowMs = at) })
  for (const jumpMs of [60 * MINUTE_MS, -120 * MINUTE_MS]) {
    vi.setSystemTime(Date.now() + jumpMs)
    clockMs += 100
    vi.advanceTimersByTime(100)
  }
  expect(nowMs).toBe(200)
})
