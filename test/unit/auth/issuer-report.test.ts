/** What `trunkline check --live` says of each authorization server, and what it reads for this. */
import { generateKeyPairSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { IssuerOptions, ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { reportIssuers } from '../../../src/auth/inbound/verify/issuer-report.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.test'
const KEYS = `${ISSUER}/keys`
const METADATA = `${ISSUER}/.well-known/oauth-authorization-server`
const jwkOf = ({ publicKey }: { publicKey: KeyObject }): object => publicKey.export({ format: 'jwk' })
const ec = (namedCurve: string): object => jwkOf(generateKeyPairSync('ec', { namedCurve }))
const rsa = (modulusLength: number): object => jwkOf(generateKeyPairSync('rsa', { modulusLength }))
const P256 = ec('P-256')

/** The reports, and what was read for them. Documents by URL; anything else is not there. */
const report = async (documents: Readonly<Record<string, unknown>>, facts: Partial<ResourceServerOptions> = {}) => {
  const read: string[] = []
  const fetch = async ({ url }: { url: string }) => {
    read.push(url)
    const document = documents[url]
    return document === undefined ? { status: 404, text: '' } : { status: 200, text: JSON.stringify(document) }
  }
  const { oauth } = oauthOf({ issuer: ISSUER }, 'https://gw.test/mcp', facts)
  return { reports: await reportIssuers(oauth!, fetch, () => 0), read }
}
const metadata = (facts: object = {}): object => ({ issuer: ISSUER, jwks_uri: KEYS, ...facts })
const good = (keys: number | undefined) => [{ issuer: ISSUER, path: 'auth.oauth', keys, error: undefined }]
const bad = (error: string) => [{ issuer: ISSUER, path: 'auth.oauth', keys: undefined, error }]

describe('a key', () => {
  test.each<[string, unknown]>([
    ['of P-256', P256],
    ['of P-384', ec('P-384')],
    ['of P-521', ec('P-521')],
    ['of Ed25519', jwkOf(generateKeyPairSync('ed25519'))],
    ['of RSA with 2048 bits', rsa(2_048)],
    ['for signatures', { ...P256, use: 'sig', key_ops: ['verify'], alg: 'ES256' }],
    ['with operations that are no list', { ...P256, key_ops: 'sign' }],
  ])('%s counts', async (_, key) => {
    expect((await report({ [METADATA]: metadata(), [KEYS]: { keys: [7, key] } })).reports).toEqual(good(1))
  })

  test.each<[string, unknown]>([
    ['of secp256k1', ec('secp256k1')],
    ['of X25519', jwkOf(generateKeyPairSync('x25519'))],
    ['of RSA with 1024 bits', rsa(1_024)],
    ['for encryption', { ...P256, use: 'enc' }],
    ['that does not verify', { ...P256, key_ops: ['deriveKey'] }],
    ['for another algorithm', { ...P256, alg: 'ECDH-ES' }],
    ['that is a secret', { kty: 'oct', k: 'c2VjcmV0' }],
    ['that is none', 7],
  ])('%s does not', async (_, key) => {
    expect((await report({ [METADATA]: metadata(), [KEYS]: { keys: [key] } })).reports).toEqual(
      bad(
        `${KEYS} holds no key that can check a token (1 of other kinds); have the issuer publish one for RS256, PS256, ES256 ` +
          'or EdDSA: RSA with 2048 bits and more, P-256 to P-521, or Ed25519',
      ),
    )
  })
})

test('a set without keys, what is no set, and one that cannot be read', async () => {
  const of = async (keys: unknown, facts: Partial<ResourceServerOptions> = {}) =>
    (await report({ [METADATA]: metadata(), [KEYS]: keys }, facts)).reports[0]?.error
  expect(await of({ keys: [] })).toContain(`${KEYS} holds no keys; have the issuer publish one`)
  expect(await of({})).toBe(`${KEYS} is no set of keys; set jwks_uri beside issuer`)
  const why = `the authorization server cannot be asked (${KEYS} answered HTTP 404); set jwks_uri beside issuer`
  expect(await of(undefined)).toBe(`no keys at ${KEYS} (jwks_uri of the metadata): ${why}`)
  expect(await of(undefined, { jwksUri: KEYS })).toBe(`no keys at ${KEYS} (jwks_uri beside issuer): ${why}`)
})

test('metadata that names no keys', async () => {
  expect((await report({ [METADATA]: { issuer: ISSUER } })).reports).toEqual(
    bad(`the metadata of ${ISSUER} names no jwks_uri; set jwks_uri beside issuer`),
  )
})

describe('introspection', () => {
  const introspection = { endpoint: undefined, clientId: 'us', clientSecret: 'hush' }
  const endpoint = `${ISSUER}/look`
  const documents = { [METADATA]: metadata(), [KEYS]: { keys: [P256] } }

  test('needs an endpoint, of the metadata or of the configuration', async () => {
    const missing = bad(`the metadata of ${ISSUER} names no introspection_endpoint; set auth.oauth.introspection.endpoint`)
    expect((await report(documents, { introspection })).reports).toEqual(missing)
    expect((await report(documents, { introspection: { ...introspection, endpoint } })).reports).toEqual(good(1))
    const named = { ...documents, [METADATA]: metadata({ introspection_endpoint: endpoint }) }
    expect((await report(named, { introspection })).reports).toEqual(good(1))
  })

  test('of every token needs no keys', async () => {
    const { reports, read } = await report({}, { introspection: { ...introspection, endpoint }, introspectsAll: true })
    expect([reports, read]).toEqual([good(undefined), []])
  })
})

test('keys that the configuration names are read without the metadata', async () => {
  const { reports, read } = await report({ [KEYS]: { keys: [P256, P256] } }, { jwksUri: KEYS })
  expect([reports, read]).toEqual([good(2), [KEYS]])
})

test('every issuer is reported at its place', async () => {
  const { reports } = await report(
    { [METADATA]: metadata(), [KEYS]: { keys: [P256] } },
    {
      otherIssuers: ['https://one.test', 'https://two.test'].map((issuer): IssuerOptions => ({
        issuer,
        subject: 'sub',
        jwksUri: KEYS,
        introspection: undefined,
        introspectsAll: false,
        allowsHttp: false,
        client: undefined,
      })),
    },
  )
  expect(reports.map(({ issuer, path }) => [issuer, path])).toEqual([
    [ISSUER, 'auth.oauth'],
    ['https://one.test', 'auth.oauth.issuers[0]'],
    ['https://two.test', 'auth.oauth.issuers[1]'],
  ])
})
