import { expect, test } from 'vitest'
import { kindOf, sentenceOf, shownValue } from '../../../src/auth/token-refusal.ts'

test.each<[unknown, string]>([
  [undefined, 'missing'],
  [null, 'null'],
  [[1, 2], 'a list of 2'],
  ['', 'an empty text'],
  ['x', 'a text'],
  [{}, 'an object'],
  [7, 'a number'],
  [true, 'a boolean'],
])('%j is called %s where values are not shown', (value, kind) => {
  expect(kindOf(value)).toBe(kind)
})

test('a value is shown as JSON, in 200 characters', () => {
  expect([shownValue(undefined), shownValue(['a', 7]), shownValue(() => 1)]).toEqual(['missing', '["a",7]', 'nothing'])
  expect(shownValue('x'.repeat(198))).toBe(`"${'x'.repeat(198)}"`)
  expect(shownValue('x'.repeat(199))).toBe(`"${'x'.repeat(199)}…`)
})

test('a refusal is a sentence', () => {
  const refusal = { cause: 'end', claim: 'exp', expected: 'a number', got: 'missing', remedy: 'let tokens end' } as const
  expect(sentenceOf(refusal)).toBe('exp is missing, expected a number; let tokens end')
})
