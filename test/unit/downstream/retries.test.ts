/** When a call that failed is sent again, and what is said of it in the end (BRIDGING 5.3, 7.2). */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Call } from '../../../src/rpc/call.ts'
import { again } from '../../../src/downstream/pacing/retries.ts'
import type { RetryBudget } from '../../../src/downstream/pacing/retry-budget.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const BUDGET = { take: () => true } as unknown as RetryBudget
const call = (method: string): Call => ({ method, ref: 1, signal: new AbortController().signal }) as unknown as Call
const lost = new Failure('lost', 'the connection broke')
const forgotten = (): Failure => new Failure('session_expired', 'HTTP 404', { executed: 'no' })

/** Attempts that fail with these, one after the other, and then succeed. */
const attempts = (...failures: Failure[]) => {
  let count = 0
  return {
    attempt: (): Promise<string> => {
      const failure = failures[count++]
      return failure === undefined ? Promise.resolve('answered') : Promise.reject(failure)
    },
    count: () => count,
  }
}

describe('a read whose connection broke', () => {
  test('B222 B231 is sent again in a new session where the old one went with the connection', async () => {
    const { attempt, count } = attempts(forgotten())
    expect(await again(lost, call('resources/read'), BUDGET, attempt)).toBe('answered')
    expect(count()).toBe(2)
  })

  test('B231 is not sent again for ever: a second lost session ends it, and it may have been executed', async () => {
    const { attempt, count } = attempts(forgotten(), forgotten(), forgotten())
    const failed = again(lost, call('prompts/get'), BUDGET, attempt)
    await expect(failed).rejects.toMatchObject({ kind: 'session_expired', executed: 'unknown' })
    expect(count()).toBe(2)
  })

  test('B231 may have been executed, also where the server cannot be reached any more', async () => {
    const { attempt } = attempts(new Failure('unreachable', 'refused', { executed: 'no' }))
    const failed = again(lost, call('resources/read'), BUDGET, attempt)
    await expect(failed).rejects.toMatchObject({ kind: 'unreachable', executed: 'unknown' })
  })
})

test('B231 a tool whose connection broke is sent once', async () => {
  const { attempt, count } = attempts()
  await expect(again(lost, call('tools/call'), BUDGET, attempt)).rejects.toBe(lost)
  expect(count()).toBe(0)
})

describe('a server that limits its rate', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const limited = (retryAfterMs: number): Failure => new Failure('rate_limited', 'HTTP 429', { executed: 'no', retryAfterMs })

  test.each([1_000, 5_000])('F-15 is asked again after the %i ms that it names, and not before', async (waitMs) => {
    const { attempt, count } = attempts()
    const answered = again(limited(waitMs), call('tools/call'), BUDGET, attempt)
    await vi.advanceTimersByTimeAsync(waitMs - 1)
    expect(count()).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(await answered).toBe('answered')
  })

  test('F-15 is not waited for longer than 5 s', async () => {
    const { attempt, count } = attempts()
    const error = limited(5_001)
    await expect(again(error, call('tools/call'), BUDGET, attempt)).rejects.toBe(error)
    expect(count()).toBe(0)
  })
})

test('a call that was refused twice for its session was executed by nobody', async () => {
  const { attempt, count } = attempts(forgotten())
  const failed = again(forgotten(), call('tools/call'), BUDGET, attempt)
  await expect(failed).rejects.toMatchObject({ kind: 'session_expired', executed: 'no' })
  expect(count()).toBe(1)
})
