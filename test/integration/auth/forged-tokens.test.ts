/** Tokens that somebody made up, or that were made for somebody else: each of them 401 (T-07, B234). */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import type { AuthorizationServer } from '../../support/authorization-server.ts'
import { bearer, oauthOf } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { request } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const AUDIENCE = 'https://mcp.example.com/mcp'
const INITIALIZE = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
const NOW = Math.floor(Date.now() / 1_000)
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 })
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })

let issuer: AuthorizationServer
let gateway: TestGateway
beforeAll(async () => {
  issuer = await startAuthorizationServer()
  gateway = await startGateway({ servers: { a: fake.offering('echo') }, host: { auth: oauthOf(issuer, AUDIENCE) } })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const good = () => ({ iss: issuer.issuer, aud: AUDIENCE, sub: 'alice', exp: NOW + 600, iat: NOW, scope: 'mcp:connect' })
const without = (claim: string) => Object.fromEntries(Object.entries(good()).filter(([name]) => name !== claim))
const encode = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const hmac = (header: object, claims: object, secret: string | Buffer): string => {
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}
const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()
const parts = async (): Promise<[string, string, string]> => (await issuer.sign(good())).split('.') as [string, string, string]
const knock = (token: string) => send(gateway.url, { headers: bearer(token), body: INITIALIZE })

describe('forged tokens', () => {
  test('a good one lets in, so what follows fails for the reason that it names', async () => {
    expect((await knock(await issuer.sign(good()))).status).toBe(200)
    expect((await knock(await issuer.sign({ ...good(), aud: ['https://other.example', AUDIENCE] }))).status).toBe(200)
    expect((await knock(await issuer.machineToken({ resource: AUDIENCE }))).status).toBe(200)
  })

  const FORGED: readonly (readonly [string, () => string | Promise<string>])[] = [
    ['no algorithm', () => `${encode({ alg: 'none', typ: 'at+jwt' })}.${encode(good())}.`],
    ['no algorithm, in other letters', () => `${encode({ alg: 'NonE' })}.${encode(good())}.`],
    [
      'no algorithm, under a signature',
      async () => `${encode({ alg: 'none', kid: issuer.key.id })}.${encode(good())}.${(await parts())[2]}`,
    ],
    ['no signature', async () => (await parts()).slice(0, 2).join('.')],
    ['an empty signature', async () => `${(await parts()).slice(0, 2).join('.')}.`],
    [
      'a signature of other claims',
      async () => {
        const [head, , signature] = await parts()
        return `${head}.${encode({ ...good(), sub: 'bob' })}.${signature}`
      },
    ],
    [
      'one bit of the signature changed',
      async () => {
        const [head, claims, signature] = await parts()
        const bytes = Buffer.from(signature, 'base64url')
        bytes[10] = (bytes[10] ?? 0) ^ 1
        return `${head}.${claims}.${bytes.toString('base64url')}`
      },
    ],
    [
      'a shared secret made of the public key (PEM)',
      () => hmac({ alg: 'HS256', kid: issuer.key.id }, good(), pem(issuer.key.publicKey)),
    ],
    [
      'a shared secret made of the public key (DER)',
      () => hmac({ alg: 'HS256', kid: issuer.key.id }, good(), issuer.key.publicKey.export({ type: 'spki', format: 'der' })),
    ],
    ['an empty shared secret', () => hmac({ alg: 'HS256' }, good(), '')],
    ['the key of a stranger', () => issuer.sign(good(), { kid: 'strange' }, stranger.privateKey)],
    ['the key of a stranger under the id of ours', () => issuer.sign(good(), {}, stranger.privateKey)],
    [
      'the key of a stranger, brought along',
      () => issuer.sign(good(), { kid: 'strange', jwk: stranger.publicKey.export({ format: 'jwk' }) }, stranger.privateKey),
    ],
    [
      'the key of a stranger, to be fetched',
      () => issuer.sign(good(), { kid: 'strange', jku: 'http://127.0.0.1:9/jwks' }, stranger.privateKey),
    ],
    [
      'a certificate to be fetched',
      () => issuer.sign(good(), { kid: 'strange', x5u: 'http://127.0.0.1:9/x5u' }, stranger.privateKey),
    ],
    ['a path in place of a key id', () => issuer.sign(good(), { kid: '../../../dev/null' }, stranger.privateKey)],
    ['another kind of key under the id of ours', () => issuer.sign(good(), { alg: 'ES256' }, elliptic.privateKey)],
    [
      'a critical extension nobody knows',
      async () => {
        const text = `${encode({ alg: 'RS256', kid: issuer.key.id, crit: ['exp2'], exp2: 1 })}.${encode(good())}`
        return `${text}.${(await parts())[2]}`
      },
    ],
    ['another issuer', () => issuer.sign({ ...good(), iss: 'https://idp.example.com' })],
    ['an issuer with a slash more', () => issuer.sign({ ...good(), iss: `${issuer.issuer}/` })],
    ['no issuer', () => issuer.sign(without('iss'))],
    ['a list of issuers', () => issuer.sign({ ...good(), iss: [issuer.issuer] as never })],
    ['another audience', () => issuer.sign({ ...good(), aud: 'https://other.example.com/mcp' })],
    ['no audience', () => issuer.sign(without('aud'))],
    ['an empty list of audiences', () => issuer.sign({ ...good(), aud: [] })],
    ['an audience that begins with ours', () => issuer.sign({ ...good(), aud: `${AUDIENCE}x` })],
    ['an audience that ours begins with', () => issuer.sign({ ...good(), aud: AUDIENCE.slice(0, -1) })],
    ['an audience beside ours', () => issuer.sign({ ...good(), aud: 'https://mcp.example.com/sse' })],
    ['an audience below ours', () => issuer.sign({ ...good(), aud: `${AUDIENCE}/review` })],
    ['our host with another port', () => issuer.sign({ ...good(), aud: 'https://mcp.example.com:8443/mcp' })],
    ['our host in the clear', () => issuer.sign({ ...good(), aud: 'http://mcp.example.com/mcp' })],
    ['our host as somebody’s subdomain', () => issuer.sign({ ...good(), aud: 'https://mcp.example.com.evil.example/mcp' })],
    ['a scheme for an audience', () => issuer.sign({ ...good(), aud: 'https:' })],
    ['an empty audience', () => issuer.sign({ ...good(), aud: '' })],
    ['an end that has passed', () => issuer.sign({ ...good(), exp: NOW - 120 })],
    ['no end', () => issuer.sign(without('exp'))],
    ['an end in words', () => issuer.sign({ ...good(), exp: 'never' as never })],
    ['a beginning in the future', () => issuer.sign({ ...good(), nbf: NOW + 300 })],
    ['nobody', () => issuer.sign(without('sub'))],
    ['an empty name', () => issuer.sign({ ...good(), sub: '' })],
    ['a number for a name, beside a client', () => issuer.sign({ ...good(), sub: 7 as never, client_id: 'app' })],
    ['a user’s client in place of a name', () => issuer.sign({ ...without('sub'), azp: 'app', sid: 's' })],
    ['a client that may be a user’s', () => issuer.sign({ ...without('sub'), azp: 'app' })],
    ['a logout token', () => issuer.sign(good(), { typ: 'logout+jwt' })],
    ['a proof of possession', () => issuer.sign(good(), { typ: 'dpop+jwt' })],
    ['the bond to a key that is not shown', () => issuer.sign({ ...good(), cnf: { jkt: 'x' } })],
    ['five parts', async () => `${(await parts()).join('.')}.x.y`],
    ['claims that are no JSON', async () => `${(await parts())[0]}.${encode('{')}.${(await parts())[2]}`],
    ['claims that are a list', async () => `${(await parts())[0]}.${encode('[]')}.${(await parts())[2]}`],
    ['a header that is no JSON', () => `${encode('{')}.${encode(good())}.AAAA`],
    ['no JWT at all', () => 'an-opaque-token'],
    ['a refresh token', async () => (await issuer.userToken('alice', { resource: AUDIENCE })).refresh_token ?? ''],
  ]

  test.each(FORGED)('T-07 B234 %s: 401', async (_name, forge) => {
    gateway.log.clear()
    const token = await forge()
    const reply = await knock(token)
    expect([reply.status, reply.headers['www-authenticate']]).toEqual([401, expect.stringContaining('error="invalid_token"')])
    expect(await reply.body).toBe(
      '{"error":"invalid_token","error_description":"a valid access token for this endpoint is needed"}',
    )
    // The operator is told why, without the token.
    const { facts, text } = gateway.log.entries[0]!
    expect([text, facts]).toEqual([
      'a token was rejected',
      expect.objectContaining({ claim: expect.any(String), expected: expect.any(String), got: expect.any(String) }),
    ])
    expect(JSON.stringify(gateway.log.entries)).not.toContain(token)
  })

  test('clocks that differ by less than a minute are forgiven', async () => {
    expect((await knock(await issuer.sign({ ...good(), exp: NOW - 20 }))).status).toBe(200)
    expect((await knock(await issuer.sign({ ...good(), nbf: NOW + 40 }))).status).toBe(200)
  })
})
