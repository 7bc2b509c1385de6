/** Which failures of a start waiting mends (F-04, F-08, F-29). */
import { expect, test } from 'vitest'
import { isHopeless, UNSIGNED } from '../../../src/downstream/health/health.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

test.each([
  ['F-29 out of processes or descriptors', new Failure('spawn_failed', 'spawn npx: EAGAIN', { retryable: true }), false],
  ['F-08 a missing command', new Failure('spawn_failed', 'spawn nonesuch: ENOENT'), true],
  ['no version in common', new Failure('version', 'none'), true],
  ['a sign-in that is missing', new Failure('auth_required', '401', { signIn: true }), true],
  ['F-01 a crash', new Failure('exited', 'exited with code 1', { retryable: true }), false],
])('%s', (_, failure, hopeless) => {
  expect(isHopeless(failure)).toBe(hopeless)
})

test('a server without a common connection says that a sign-in helps', () => {
  expect(UNSIGNED).toMatchObject({ state: 'failed', failure: { kind: 'auth_required', executed: 'no', facts: { signIn: true } } })
})
