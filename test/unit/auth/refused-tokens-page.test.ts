/** docs/identity/refused-tokens.md has a row for each cause, with the line as the log has it for a real token. */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { ENDED, endpointRefusal } from '../../../src/auth/inbound/verify/claims.ts'
import type { ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { ResourceServer } from '../../../src/auth/inbound/verify/resource-server.ts'
import { sentenceOf } from '../../../src/auth/token-refusal.ts'
import type { Cause, TokenRefusal } from '../../../src/auth/token-refusal.ts'
import { oauthOf } from '../../support/credentials.ts'

const PAGE = readFileSync(new URL('../../../docs/identity/refused-tokens.md', import.meta.url), 'utf8')
const ISSUER = 'https://idp.example.com'
const ORIGIN = 'https://mcp.example.com'
const WALL_MS = Date.parse('2027-01-15T08:00:00Z')
const NOW = WALL_MS / 1_000
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const KEYS = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'ES256' }] })
const MAP = [{ claim: 'groups', issuer: undefined, has: 'sre', is: undefined, toolsets: ['ops'] }]

const sign = (claims: object = {}, header: object = {}, key = privateKey): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: ORIGIN, sub: 'alice', exp: NOW + 600, groups: ['sre'], ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'key-1', ...header })
    .sign(key)

const refusalOf = async (token: Promise<string> | string, facts: Partial<ResourceServerOptions> = {}): Promise<TokenRefusal> => {
  const { oauth } = oauthOf({ issuer: ISSUER }, `${ORIGIN}/mcp`, {
    jwksUri: `${ISSUER}/keys`,
    maxTokenCharacters: 16_384,
    ...facts,
  })
  const answer = (url: string): string => (url.endsWith('/keys') ? KEYS : '{"active":false}')
  const clock = { wallMs: () => WALL_MS, monotonicMs: () => 0 }
  const server = new ResourceServer(oauth!, MAP, async ({ url }) => ({ status: 200, text: answer(url) }), clock)
  const { checks, admitted } = await server.examine(await token)
  const refusal = checks.find((check) => check.refusal !== undefined)?.refusal ?? admitted?.unmapped
  if (refusal === undefined) throw new Error('the token is good')
  return refusal
}

const looked = { introspection: { endpoint: `${ISSUER}/look`, clientId: 'us', clientSecret: 's' } }

/** By cause: what happened, and the refusal. */
const ROWS: Readonly<Record<Cause, readonly (readonly [what: string, refusal: () => TokenRefusal | Promise<TokenRefusal>])[]>> = {
  audience: [
    ['a default token of Keycloak', () => refusalOf(sign({ aud: 'account' }))],
    ['a token for another application', () => refusalOf(sign({ aud: 'api://other' }))],
    ['no audience', () => refusalOf(sign({ aud: undefined }))],
  ],
  endpoint: [
    [
      'a token for one server, at another endpoint',
      () => endpointRefusal(`${ORIGIN}/mcp`, [`${ORIGIN}/servers/github/mcp`], ORIGIN),
    ],
  ],
  issuer: [
    ['an extra slash', () => refusalOf(sign({ iss: `${ISSUER}/` }))],
    ['version 1 of Entra ID', () => refusalOf(sign({ iss: 'https://sts.windows.net/1234/' }))],
    ['signed in elsewhere', () => refusalOf(sign({ iss: 'https://other.example.com' }))],
    ['a token of no issuer', () => refusalOf(sign({ iss: undefined }))],
  ],
  end: [
    ['not renewed by its host (level `info`)', () => refusalOf(sign({ exp: NOW - 600 }))],
    ['ended within the last minute, where servers exchange it', () => ENDED],
    ['never ends', () => refusalOf(sign({ exp: undefined }))],
  ],
  beginning: [['clocks that differ', () => refusalOf(sign({ nbf: NOW + 600 }))]],
  key: [['a withdrawn key, or keys of another issuer', () => refusalOf(sign({}, { kid: 'key-0' }))]],
  signature: [['forged', () => refusalOf(sign({}, {}, stranger.privateKey))]],
  algorithm: [['a signature with a shared secret', () => refusalOf(`${part({ alg: 'HS256' })}.${part({ iss: ISSUER })}.AAAA`)]],
  type: [['another kind of token', () => refusalOf(sign({}, { typ: 'logout+jwt' }))]],
  binding: [['DPoP, or a token bound to a certificate', () => refusalOf(sign({ cnf: { jkt: 'x' } }))]],
  caller: [
    ['no name of the caller (Keycloak 26 without the scope `basic`)', () => refusalOf(sign({ sub: undefined }))],
    ['a name of another type', () => refusalOf(sign({ sub: 7 }))],
  ],
  form: [
    ['an opaque token, without `introspection`', () => refusalOf('AAECAwQFBgc')],
    ['a token that is too long', () => refusalOf('x'.repeat(70_000))],
    ['not readable', () => refusalOf(`x.${part({ iss: ISSUER })}.x`)],
  ],
  activity: [['a token that has ended at its issuer, looked up there', () => refusalOf('AAECAwQFBgc', looked)]],
  toolsets: [
    ['403: no rule of `auth.map` holds', () => refusalOf(sign({ groups: ['dev'] }))],
    ['403: the token has no groups', () => refusalOf(sign({ groups: undefined }))],
  ],
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test('every cause of a refused token is in the page, with its line as it is logged', async () => {
  const lines = ['| what happened | the line |', '| --- | --- |']
  for (const [cause, rows] of Object.entries(ROWS))
    for (const [what, make] of rows) {
      const refusal = await make()
      expect([what, refusal.cause]).toEqual([what, cause])
      lines.push(`| ${what} | \`${sentenceOf(refusal)}\` |`)
    }
  const [, table = ''] = /<!-- lines -->\n([^]*?)\n?<!-- \/lines -->/.exec(PAGE) ?? []
  expect(table.trim().split('\n')).toEqual(lines)
})
