/** When the host of a caller is sent to sign in again because its token was not exchanged, and when that would be a loop (F-17). */
import { expect, test, vi } from 'vitest'
import { SubjectTokens } from '../../../src/auth/subject-tokens.ts'

const set = () => {
  const time = { ms: 0 }
  const changed = vi.fn<(principal: string) => void>()
  const tokens = new SubjectTokens(changed, () => time.ms)
  return { tokens, time, changed }
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
  time.ms = 5_000_000
  tokens.refuse('alice', 'one')
  for (const token of ['two', 'three', 'one']) {
    time.ms += 199_999
    tokens.refuse('alice', token)
  }
  expect(['one', 'two', 'three'].map((token) => tokens.isRefused('alice', token))).toEqual([true, false, false])
  time.ms = 5_600_000
  tokens.refuse('alice', 'four')
  expect(['one', 'four'].map((token) => tokens.isRefused('alice', token))).toEqual([false, true])
})

test('of 10,000 callers and one more the oldest refusal is removed', () => {
  const { tokens } = set()
  for (let at = 0; at <= 10_000; at++) tokens.refuse(`caller ${at}`, 'token')
  expect([0, 1, 10_000].map((at) => tokens.isRefused(`caller ${at}`, 'token'))).toEqual([false, true, true])
})

test('the latest token of each caller is kept while a server needs them, and no longer', () => {
  const { tokens, changed } = set()
  tokens.remember('alice', 'early')
  expect([tokens.isWanted, tokens.of('alice')]).toEqual([false, undefined])
  tokens.want(true)
  tokens.remember('alice', 'one')
  tokens.remember('bob', 'two')
  tokens.refuse('alice', 'one')
  expect([tokens.isWanted, tokens.of('alice'), tokens.of('bob')]).toEqual([true, 'one', 'two'])
  tokens.want(true)
  expect(tokens.of('alice')).toBe('one')
  tokens.want(false)
  expect([tokens.isWanted, tokens.of('alice'), tokens.isRefused('alice', 'one')]).toEqual([false, undefined, false])
  expect(changed).not.toHaveBeenCalled()
})

test('F-17 another token of a caller is told, since it may be exchanged where the one before was not', () => {
  const { tokens, changed } = set()
  tokens.want(true)
  for (const token of ['one', 'one', 'two', 'two', 'one']) tokens.remember('alice', token)
  tokens.remember('bob', 'two')
  expect(changed.mock.calls).toEqual([['alice'], ['alice']])
  expect(tokens.of('alice')).toBe('one')
})
