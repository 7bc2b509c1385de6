/** The ID token that says who is at the browser: each check of it, with a token that passes all others (OpenID Connect Core 3.1.3.7). */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { BrowserSignIns } from '../../../src/auth/inbound/browser-sign-in.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.example.com'
const WALL_MS = Date.parse('2027-01-15T08:00:00Z')
const NOW = WALL_MS / 1_000
const PRINCIPAL = JSON.stringify([ISSUER, 'sub', 'alice'])
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/keys`,
  response_types_supported: ['code'],
  authorization_response_iss_parameter_supported: true,
}
const KEYS = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'ES256' }] }

/** A person on the way back, with the ID token that the issuer then sends; the form that it was asked with. */
const returning = async (claims: object, key = privateKey, answered: Record<string, string> = {}, chooses = false) => {
  let idToken = ''
  const forms: URLSearchParams[] = []
  const fetch = async ({ url, body }: { url: string; body?: string | undefined }) => {
    if (url.endsWith('/token')) forms.push(new URLSearchParams(body))
    const answer = url.endsWith('/token')
      ? { access_token: 'a', token_type: 'Bearer', ...(idToken !== '' && { id_token: idToken }) }
      : url.endsWith('/keys')
        ? KEYS
        : METADATA
    return { status: 200, text: JSON.stringify(answer) }
  }
  const client = {
    client: { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' },
    scopes: undefined,
    sendsResource: true,
  }
  const { oauth } = oauthOf({ issuer: ISSUER }, 'https://mcp.example.com/mcp', { client })
  const clock = { wallMs: () => WALL_MS, monotonicMs: () => 0 }
  const at = new BrowserSignIns(oauth!, fetch, clock).of(PRINCIPAL)!
  const { url, pending } = await at.begin('https://mcp.example.com/connect/identity', chooses)
  const asked = new URL(url).searchParams
  idToken = await new SignJWT({
    iss: ISSUER,
    aud: 'trunkline',
    sub: 'alice',
    exp: NOW + 600,
    nonce: asked.get('nonce'),
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', kid: 'key-1' })
    .sign(key)
  const answer = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '', iss: ISSUER, ...answered })
  return { asked, forms, finish: () => at.finish(pending, answer), without: () => ((idToken = ''), at.finish(pending, answer)) }
}

test('a good one names the caller as access tokens do, for a code with its verifier', async () => {
  const { asked, forms, finish } = await returning({})
  expect(await finish()).toBe(PRINCIPAL)
  expect(asked.get('code_challenge_method')).toBe('S256')
  // Some providers refuse the parameter.
  expect(asked.has('resource')).toBe(false)
  expect(forms[0]?.get('code_verifier')).toMatch(/^[\w-]{43}$/)
  expect(await (await returning({ aud: ['trunkline', 'other'], azp: 'trunkline' })).finish()).toBe(PRINCIPAL)
})

test('one that ended less than a minute ago is good, because clocks differ', async () => {
  expect(await (await returning({ exp: NOW - 59 })).finish()).toBe(PRINCIPAL)
})

test('a person who wants another account is asked to sign in again', async () => {
  const prompts = [false, true].map(async (chooses) => (await returning({}, privateKey, {}, chooses)).asked.get('prompt'))
  expect(await Promise.all(prompts)).toEqual([null, 'login'])
})

test.each<[what: string, claims: object, why: string]>([
  ['of another issuer', { iss: 'https://evil.test' }, 'iss is another'],
  ['for another client', { aud: 'other' }, 'aud is another client'],
  ['for several clients, which was given to another', { aud: ['trunkline', 'other'], azp: 'other' }, 'azp is another client'],
  ['for several clients, which was given to none', { aud: ['trunkline', 'other'] }, 'azp is another client'],
  ['that was given to another client', { azp: 'other' }, 'azp is another client'],
  ['that has ended', { exp: NOW - 60 }, 'exp has passed'],
  ['that never ends', { exp: undefined }, 'exp has passed'],
  ['of another sign-in', { nonce: 'other' }, 'nonce is another'],
  ['of no sign-in', { nonce: undefined }, 'nonce is another'],
  ['without a name', { sub: undefined }, 'names no caller'],
])('one %s proves nothing', async (_what, claims, why) => {
  await expect((await returning(claims)).finish()).rejects.toThrow(why)
})

test('one that another signed, none at all, and an answer of another issuer prove nothing', async () => {
  await expect((await returning({}, stranger.privateKey)).finish()).rejects.toThrow('cannot be verified')
  await expect((await returning({})).without()).rejects.toThrow('sent no ID token')
  await expect((await returning({}, privateKey, { iss: 'https://evil.test' })).finish()).rejects.toThrow(
    'not from the authorization server',
  )
})
