import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { driveTask } from '../../../src/gateway/tasks/driving.ts'
import { complete } from '../../../src/rpc/call.ts'
import type { Handler, Outcome } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const call = callOf({ caller: { revision: '2025-11-25' } })
/** A task that wants to be looked at so often; `undefined`: it does not say. */
const taskOf = (status: string, pollIntervalMs: unknown): Payload =>
  Payload.of({ taskId: 't', status, pollIntervalMs, ...(status === 'completed' && { result: { content: [] } }) })

describe('following a task', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.restoreAllMocks().useRealTimers())

  /** The waits before each look at a task whose answers say `intervals`, one after the other. */
  const waits = async (intervals: readonly unknown[], random: number, maxMs = 3_600_000): Promise<string[]> => {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    const found: string[] = []
    let lastMs = performance.now()
    const handle: Handler = ({ method }) => {
      found.push(`${method} ${Math.round(performance.now() - lastMs)}`)
      lastMs = performance.now()
      const next = found.length < intervals.length ? 'working' : 'completed'
      return Promise.resolve(complete(taskOf(next, intervals[found.length])))
    }
    const outcome = driveTask(taskOf('working', intervals[0]), call, handle, maxMs).catch((error: Error) =>
      found.push(error.message),
    )
    await vi.runAllTimersAsync()
    await outcome
    return found
  }

  test.each([
    ['as often as the last answer says', [500, 2_000, 120_000], 0, [500, 2_000, 120_000]],
    ['later by jitter, never sooner', [500, 2_000], 0.5, [550, 2_200]],
    ['once a second where nothing is said, or nothing that is a time', [undefined, '7', null], 0, [1_000, 1_000, 1_000]],
    ['not without a pause', [0, -5], 0, [20, 20]],
  ] as const)('B181 looks %s', async (_, intervals, random, expected) => {
    expect(await waits(intervals, random)).toEqual(expected.map((ms) => `tasks/get ${ms}`))
  })

  test.each<[string, () => Outcome]>([
    ['is completed', () => complete(taskOf('completed', 20))],
    [
      'cannot be looked at any more',
      () => {
        throw new Failure('shutting_down', 'the gateway stops')
      },
    ],
  ])('a task that %s leaves no listener on the signal of its call, which may outlive it', async (_, look) => {
    const { signal } = new AbortController()
    const listening: number[] = []
    const outcome = driveTask(
      taskOf('working', 20),
      { ...call, signal },
      async () => {
        listening.push(getEventListeners(signal, 'abort').length)
        return look()
      },
      60_000,
    ).catch(() => undefined)
    await vi.runAllTimersAsync()
    await outcome
    expect([listening[0], getEventListeners(signal, 'abort').length]).toEqual([1, 0])
  })

  test('B181 B144 a task that wants to be asked too seldom ends with its time, and is cancelled', async () => {
    expect(await waits([1e15, 1e15, 1e15], 0, 60_000)).toEqual(['tasks/cancel 60000', 'the task took too long'])
  })
})
