/** What the registration proxy makes of the provider's refusals, and how long it believes a metadata document. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { AuthorizationProxy } from '../../../src/auth/inbound/authorization-proxy.ts'
import { HostClients } from '../../../src/auth/inbound/host-clients.ts'
import type { Fetch } from '../../../src/auth/oauth/safe-fetch.ts'
import { Seal } from '../../../src/auth/seal.ts'
import type { Purpose } from '../../../src/auth/seal.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.example.com'
const ORIGIN = 'https://mcp.example.com'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  response_types_supported: ['code'],
}
const CODE: Purpose<{ c: string; r: string; p: string; k: string }> = 'oauth code'
const seal = new Seal({ keys: [Buffer.alloc(32, 7)] })

const proxyAt = (audience: string, fetch: Fetch): AuthorizationProxy => {
  const client = { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' }
  const { oauth } = oauthOf({ issuer: ISSUER }, audience, { client: { client, scopes: undefined, sendsResource: true } })
  return new AuthorizationProxy(oauth!, oauth!.client!, seal, fetch, { wallMs: () => 0, monotonicMs: () => 0 })
}

/** A host redeems a good code; the provider answers the grant with this. */
const redeemed = async (status: number, answer: object) => {
  const proxy = proxyAt(`${ORIGIN}/mcp`, async ({ url }) =>
    url.endsWith('/token') ? { status, text: JSON.stringify(answer) } : { status: 200, text: JSON.stringify(METADATA) },
  )
  const p = createHash('sha256').update(VERIFIER).digest('base64url')
  const code = seal.seal(CODE, { c: 'host', r: 'http://127.0.0.1:9/callback', p, k: 'of the provider' })
  const form = {
    grant_type: 'authorization_code',
    client_id: 'host',
    code,
    redirect_uri: 'http://127.0.0.1:9/callback',
    code_verifier: VERIFIER,
  }
  return proxy.token(new URLSearchParams(form), ORIGIN)
}

test('the host is told of a grant that the provider refuses', async () => {
  expect(await redeemed(400, { error: 'invalid_grant' })).toEqual({ status: 400, body: { error: 'invalid_grant' } })
})

test.each([
  [400, { error: 'invalid_scope' }],
  [401, { error: 'invalid_client' }],
  [500, {}],
])('%i %j of the provider is no refusal of the grant: the host keeps its code', async (status, answer) => {
  await expect(redeemed(status, answer)).rejects.toThrow()
})

test('a metadata document of a host is read again after five minutes', async () => {
  let nowMs = 0
  let reads = 0
  const id = 'https://host.example/client'
  const document = { client_id: id, client_name: 'A host', redirect_uris: ['http://127.0.0.1:9/callback'] }
  const fetch = async () => (reads++, { status: 200, text: JSON.stringify(document) })
  const clients = new HostClients(seal, fetch, 'public', () => nowMs)
  const readsAt = async (ms: number): Promise<number> => {
    nowMs = ms
    expect(await clients.find(id)).toMatchObject({ name: 'A host' })
    return reads
  }
  expect([await readsAt(0), await readsAt(299_999), await readsAt(300_000)]).toEqual([1, 1, 2])
})

test.each([
  [ORIGIN, 'public'],
  ['http://127.0.0.1:4000', 'loopback'],
  ['http://localhost:4000', 'loopback'],
])('T-09 for a gateway at %s metadata documents of hosts lie at %s addresses', async (origin, expected) => {
  const reaches: unknown[] = []
  const proxy = proxyAt(`${origin}/mcp`, async ({ reach }) => (reaches.push(reach), { status: 404, text: '' }))
  expect(await proxy.clients.find('https://host.example/client')).toBeUndefined()
  expect(reaches).toEqual([expected])
})
