/** When the host of a caller is sent to sign in again because its token was not exchanged, and when that would be a loop (F-17). */
import { expect, test } from 'vitest'
import { SubjectTokens } from '../../../src/auth/subject-tokens.ts'

const set = () => {
  const time = { ms: 0 }
  const tokens = new SubjectTokens(
    () => undefined,
    () => time.ms,
  )
  return { tokens, time }
}

test('F-17 a token that was refused once is refused until its caller brings another one', () => {
  const { tokens } = set()
  tokens.refuse('alice', 'one')
  expect([tokens.isRefused('alice', 'one'), tokens.isRefused('alice', 'two'), tokens.isRefused('bob', 'one')]).toEqual([
    true,
    false,
    false,
  ])
})

test('F-17 of several tokens of one caller that are refused within ten minutes the first alone is, and after them one again', () => {
  const { tokens, time } = set()
  tokens.refuse('alice', 'one')
  for (const token of ['two', 'three', 'one']) {
    time.ms += 199_999
    tokens.refuse('alice', token)
  }
  expect(['one', 'two', 'three'].map((token) => tokens.isRefused('alice', token))).toEqual([true, false, false])
  time.ms = 600_000
  tokens.refuse('alice', 'four')
  expect(['one', 'four'].map((token) => tokens.isRefused('alice', token))).toEqual([false, true])
})

test('of 10,000 callers and one more the oldest refusal is removed', () => {
  const { tokens } = set()
  for (let at = 0; at <= 10_000; at++) tokens.refuse(`caller ${at}`, 'token')
  expect([0, 1, 10_000].map((at) => tokens.isRefused(`caller ${at}`, 'token'))).toEqual([false, true, true])
})
