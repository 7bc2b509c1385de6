/** When a call that failed is sent again, and what is said of it in the end (BRIDGING 5.3, 7.2). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ServerError } from '../../../src/rpc/call.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { again, isMismatch } from '../../../src/downstream/pacing/retries.ts'
import type { RetryBudget } from '../../../src/downstream/pacing/retry-budget.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

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

describe('whether a call is sent again', () => {
  beforeEach(() => vi.useFakeTimers())

  const busy = new Failure('downstream_error', 'HTTP 503', { status: 503, retryAfterMs: 1_000 })
  test.each<[what: string, error: unknown, method: string, waitMs: number | undefined]>([
    ['a tool that broke unexecuted', new Failure('lost', 'broke', { executed: 'no' }), 'tools/call', 0],
    ['a tool whose process ended before it was sent', new Failure('exited', 'code 1', { executed: 'no' }), 'tools/call', 0],
    ['a read whose process ended while it ran', new Failure('exited', 'code 1'), 'resources/read', undefined],
    ['a read at a server that is busy', busy, 'resources/read', 1_000],
    ['a tool at a server that is busy', busy, 'tools/call', undefined],
    [
      'a read that another status refuses',
      new Failure('downstream_error', 'HTTP 500', { status: 500, retryAfterMs: 1_000 }),
      'resources/read',
      undefined,
    ],
    [
      'a read that failed otherwise with this status',
      new Failure('bad_response', 'no JSON', { status: 503, retryAfterMs: 1_000 }),
      'resources/read',
      undefined,
    ],
    ['a server that names no time', new Failure('rate_limited', 'HTTP 429', { executed: 'no' }), 'tools/call', undefined],
    ['too many calls here', new Failure('overloaded', 'full', { retryAfterMs: 1_000 }), 'resources/read', undefined],
    ['an error of the server', new ServerError(-32603, 'it broke', Payload.of({})), 'resources/read', undefined],
  ])('B231 F-15 %s', async (_, error, method, waitMs) => {
    const { attempt, count } = attempts()
    const ended = again(error, call(method), BUDGET, attempt).catch((failure: unknown) => failure)
    await vi.advanceTimersByTimeAsync(waitMs ?? 60_000)
    expect([await ended, count(), vi.getTimerCount()]).toEqual(waitMs === undefined ? [error, 0, 0] : ['answered', 1, 0])
  })

  test('B231 a second failure that is none of ours is told as it is', async () => {
    const error = new ServerError(-32602, 'no such resource', Payload.of({}))
    const ended = again(lost, call('resources/read'), BUDGET, () => Promise.reject(error))
    await expect(ended).rejects.toBe(error)
  })
})

test.each<[what: string, error: unknown, method: string, is: boolean]>([
  ['a tool', new ServerError(-32020, 'other headers', Payload.of({})), 'tools/call', true],
  ['a read', new ServerError(-32020, 'other headers', Payload.of({})), 'resources/read', false],
  ['a tool with another code', new ServerError(-32602, 'other headers', Payload.of({})), 'tools/call', false],
  ['a tool and not by the server', new Failure('lost', 'broke'), 'tools/call', false],
])('B221 a refusal of %s may mean that other headers are expected', (_, error, method, is) => {
  expect(isMismatch(error, call(method))).toBe(is)
})
