/** How a credential is judged: at once where it is known, once where it is not (DECISIONS 7; T-31). */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { CredentialVerifier, VerifierBusy } from '../../../src/auth/inbound/credential-verifier.ts'
import type { Fetch } from '../../../src/auth/fetch/safe-fetch.ts'
import { oauthOf, staticToken, tokenOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.test'
const AUDIENCE = 'https://gw.test/mcp'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' }] })
const START_MS = 1_800_000_000_000
const tokenFor = (sub: string, seconds = 600): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub, exp: START_MS / 1_000 + seconds })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .sign(privateKey)

const set = (fetch: Fetch = async () => ({ status: 200, text: jwks })) => {
  const time = { ms: START_MS }
  const auth = {
    ...oauthOf({ issuer: ISSUER }, AUDIENCE, { jwksUri: `${ISSUER}/keys` }),
    tokens: [staticToken('A', { expiresMs: START_MS + 5_000 })],
  }
  return {
    time,
    verifier: new CredentialVerifier(auth, fetch, undefined, { wallMs: () => time.ms, monotonicMs: () => time.ms }),
  }
}

test('a static token is known without a promise, until it ends', () => {
  const { verifier, time } = set()
  for (let at = 0; at < 3; at++) expect(verifier.admit(tokenOf('A'))).toMatchObject({ identity: { principal: 'token:A' } })
  time.ms += 4_999
  expect(verifier.admit(tokenOf('A'))).toBeDefined()
  time.ms += 1
  expect(verifier.admit(tokenOf('A'))).toBeUndefined()
})

test('a verified token is known without a promise for a minute; the same object says the same caller', async () => {
  const { verifier, time } = set()
  const token = await tokenFor('alice')
  const first = verifier.admit(token)
  expect(first).toBeInstanceOf(Promise)
  const admitted = await first
  time.ms += 59_999
  expect(verifier.admit(token)).toBe(admitted)
  time.ms += 1
  expect(verifier.admit(token)).toBeInstanceOf(Promise)
})

test('what is remembered never outlives the token', async () => {
  const { verifier, time } = set()
  const token = await tokenFor('alice', -30)
  expect(await verifier.admit(token)).toBeDefined()
  time.ms += 30_000
  expect(await verifier.admit(token)).toBeUndefined()
})

test('one token that comes many times at once is verified once; one that is no good is not remembered', async () => {
  const { verifier } = set()
  const token = await tokenFor('alice')
  const verified = Array.from({ length: 20 }, () => verifier.admit(token))
  expect(new Set(verified).size).toBe(1)
  await Promise.all(verified.map(async (each) => each))
  const bad = `${token.slice(0, -4)}AAAA`
  expect(await verifier.admit(bad)).toBeUndefined()
  expect(verifier.admit(bad)).toBeInstanceOf(Promise)
})

test('strangers make us verify so many tokens at a time, and no more; whoever is known comes in meanwhile', async () => {
  const { promise, resolve } = Promise.withResolvers<{ status: number; text: string }>()
  const { verifier } = set(() => promise)
  const waiting = Array.from({ length: 256 }, (_, at) => verifier.admit(`a.b.${at}`))
  await expect(verifier.admit('a.b.last')).rejects.toThrow(VerifierBusy)
  expect(verifier.admit(tokenOf('A'))).toBeDefined()
  resolve({ status: 200, text: jwks })
  expect(new Set(await Promise.all(waiting.map(async (each) => each)))).toEqual(new Set([undefined]))
  expect(await verifier.admit(await tokenFor('alice'))).toBeDefined()
})
