import { expect, test } from 'vitest'
import { UnexpectedErrors } from '../../../src/rpc/unexpected-errors.ts'

const logged = () => {
  let nowMs = 0
  const lines: object[] = []
  const errors = new UnexpectedErrors({ error: (facts, message) => lines.push({ ...facts, message }) }, () => nowMs)
  return { lines, errors, later: (ms: number) => (nowMs += ms) }
}

test('F-31 an unexpected error is logged with its stack, and again after a minute with its number', () => {
  const { lines, errors, later } = logged()
  const error = new Error('boom')
  for (let i = 0; i < 5; i++) errors.report(error, { ref: i }, 'failed')
  expect(lines).toEqual([{ ref: 0, count: 1, error: error.stack, message: 'failed' }])
  later(60_000)
  errors.report(error, { ref: 5 }, 'failed')
  expect(lines[1]).toEqual({ ref: 5, count: 5, error: error.stack, message: 'failed' })
})

test('F-31 errors of one place whose messages differ are one kind, so that no caller fills the log', () => {
  const { lines, errors, later } = logged()
  for (let i = 0; i < 5; i++) errors.report(new Error(`no ${i}`), {}, 'failed')
  expect(lines).toHaveLength(1)
  later(60_000)
  for (let i = 5; i < 7; i++) errors.report(new Error(`no ${i}`), {}, 'failed')
  expect(lines).toHaveLength(2)
})

test('F-31 another error is logged at once; what is thrown need not be an error', () => {
  const { lines, errors } = logged()
  errors.report('text', {}, 'failed')
  errors.report(undefined, {}, 'failed')
  errors.report('text', {}, 'failed')
  expect(lines).toEqual([
    { count: 1, error: 'text', message: 'failed' },
    { count: 1, error: 'undefined', message: 'failed' },
  ])
})

test('F-31 errors of two places are two kinds, and so are those without a stack whose names differ', () => {
  const { lines, errors } = logged()
  errors.report(new Error('no'), {}, 'failed')
  errors.report(new Error('no'), {}, 'failed')
  expect(lines).toHaveLength(2)
  const bare = (error: Error): Error => Object.assign(error, { stack: undefined })
  for (const error of [new TypeError('a'), new TypeError('b'), new RangeError('c')]) errors.report(bare(error), {}, 'failed')
  expect(lines.slice(2)).toMatchObject([{ error: 'a' }, { error: 'c' }])
})
