/** What is sent again, and what is started again, within which bounds (RELIABILITY 7; F-04). */
import { expect, test } from 'vitest'
import { isProcessEnd, Restarts } from '../../../src/downstream/pacing/restarts.ts'
import { RetryBudget } from '../../../src/downstream/pacing/retry-budget.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const spend = (budget: RetryBudget, from: number, calls: number): number => {
  let taken = 0
  for (let ref = from; ref < from + calls; ref++) if (budget.take(ref)) taken++
  return taken
}

test('retries are a tenth of the calls once the reserve is used up; a second brings a few more, and quiet fills the reserve', () => {
  let nowMs = 0
  const budget = new RetryBudget(
    () => 10,
    () => nowMs,
  )
  expect(spend(budget, 1, 1_000)).toBe(199)
  expect(spend(budget, 1_001, 1_000)).toBe(100)
  nowMs += 1_000
  expect(spend(budget, 2_001, 1_000)).toBe(110)
  nowMs += 60_000
  expect(spend(budget, 3_001, 200)).toBe(119)
})

test('the reserve is a hundred retries, whatever was called before', () => {
  const budget = new RetryBudget(
    () => 10,
    () => 0,
  )
  expect(Array.from({ length: 101 }, () => budget.take(0))).toEqual([...Array<boolean>(100).fill(true), false])
})

test('without any per cent nothing is sent again', () => {
  expect(new RetryBudget(() => 0).take(1_000_000)).toBe(false)
})

test('F-04 after so many ends within a minute the next start waits until the oldest of them is a minute old', () => {
  let nowMs = 0
  const restarts = new Restarts(
    () => 3,
    () => nowMs,
  )
  for (let at = 0; at < 3; at++) {
    expect(restarts.waitMs).toBe(0)
    restarts.ended(true)
    nowMs += 1_000
  }
  expect(restarts.waitMs).toBe(57_000)
  expect(restarts.refusal()).toMatchObject({
    kind: 'overloaded',
    message: 'limits.restarts (3 a minute) reached',
    retryable: true,
    facts: { executed: 'no', retryAfterMs: 57_000, limit: 'limits.restarts' },
  })
  nowMs += 57_000
  expect(restarts.waitMs).toBe(0)
  restarts.ended(true)
  expect(restarts.waitMs).toBe(1_000)
})

test.each([
  ['an exit', new Failure('exited', 'exited with code 1'), true],
  ['a pipe that was closed', new Failure('lost', 'closed'), true],
  ['a refused connection', new Failure('unreachable', 'refused'), false],
  ['an error of the server', new ServerError(-32603, 'exited', Payload.of({})), false],
  ['a defect', Object.assign(new Error('lost'), { kind: 'lost' }), false],
])('F-04 whether %s is the end of a process', (_, error, isEnd) => {
  expect(isProcessEnd(error)).toBe(isEnd)
})
