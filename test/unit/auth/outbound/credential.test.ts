/** When a request is sent again with another token, and when its refusal is final (B247). */
import { expect, test, vi } from 'vitest'
import { rejectionOf, withCredential } from '../../../../src/auth/outbound/credential.ts'
import type { Credential, Rejection } from '../../../../src/auth/outbound/credential.ts'
import { Failure } from '../../../../src/wire/message/failure.ts'

const EXPIRED = new Failure('auth_required', 'HTTP 401', { status: 401, challenge: 'Bearer' })
const SCOPE = new Failure('scope_required', 'HTTP 403', { status: 403, challenge: 'Bearer scope="a"' })

/** A credential whose token changes with each renewal. */
const credentialOf = (facts: Partial<Credential> = {}) => {
  const bearer = { value: 'Bearer 0' }
  const renewed: Rejection[] = []
  const renew = async (rejection: Rejection): Promise<void> => void (bearer.value = `Bearer ${renewed.push(rejection)}`)
  const idle = { ready: () => undefined, close: () => undefined }
  const credential: Credential = { interactive: undefined, bearer, renew, ...idle, ...facts }
  return { credential, renewed }
}

test.each([
  [EXPIRED, { used: 'Bearer x', status: 401, challenge: 'Bearer' }],
  [SCOPE, { used: 'Bearer x', status: 403, challenge: 'Bearer scope="a"' }],
  [new Failure('auth_required', 'no token', {}), undefined],
  [new Failure('auth_required', 'needs sign-in', { status: 401, signIn: true }), undefined],
  [new Failure('forbidden', 'HTTP 403', { status: 403 }), undefined],
  [new Failure('bad_response', 'HTTP 401', { status: 401 }), undefined],
  [new Error('HTTP 401'), undefined],
])('another token may help against %s, or not', (error, rejection) => {
  expect(rejectionOf(error, 'Bearer x')).toEqual(rejection)
})

test('B247 a request is sent again with each new token, three times at most', async () => {
  const { credential, renewed } = credentialOf()
  const used: (string | undefined)[] = []
  const work = async (): Promise<never> => {
    used.push(credential.bearer.value)
    throw EXPIRED
  }
  await expect(withCredential(credential, work)).rejects.toBe(EXPIRED)
  expect(used).toEqual(['Bearer 0', 'Bearer 1', 'Bearer 2', 'Bearer 3'])
  expect(renewed).toEqual(used.slice(0, 3).map((value) => ({ used: value, status: 401, challenge: 'Bearer' })))
})

test('a person signs in again where the server refuses every renewed token', async () => {
  const interactive = {
    principal: 'p',
    begin: () => Promise.reject(EXPIRED),
    finish: () => Promise.reject(EXPIRED),
  }
  const { credential, renewed } = credentialOf({ interactive })
  await expect(withCredential(credential, () => Promise.reject(EXPIRED))).rejects.toMatchObject({
    kind: 'auth_required',
    message: 'needs sign-in: the server refuses every renewed token',
    facts: { signIn: true },
    cause: EXPIRED,
  })
  expect(renewed).toHaveLength(3)
})

test('a request that succeeds, or fails for another reason, is sent once', async () => {
  const { credential, renewed } = credentialOf()
  expect(await withCredential(credential, async () => 'done')).toBe('done')
  const other = new Failure('unreachable', 'refused')
  await expect(withCredential(credential, () => Promise.reject(other))).rejects.toBe(other)
  expect(renewed).toEqual([])
})

test('without a credential a refusal is final, and a credential that is not ready sends nothing', async () => {
  const work = vi.fn<() => Promise<string>>().mockRejectedValueOnce(EXPIRED).mockResolvedValue('done')
  await expect(withCredential(undefined, work)).rejects.toBe(EXPIRED)
  const needed = new Failure('auth_required', 'needs sign-in', { signIn: true })
  await expect(withCredential(credentialOf({ ready: () => Promise.reject(needed) }).credential, work)).rejects.toBe(needed)
  expect(work).toHaveBeenCalledOnce()
  expect(await withCredential(credentialOf({ ready: () => Promise.resolve() }).credential, work)).toBe('done')
})

test('a renewal that fails is how the request fails', async () => {
  const refused = new Failure('auth_required', 'the grant was refused', { signIn: true })
  const { credential } = credentialOf({ renew: () => Promise.reject(refused) })
  await expect(withCredential(credential, () => Promise.reject(SCOPE))).rejects.toBe(refused)
})
