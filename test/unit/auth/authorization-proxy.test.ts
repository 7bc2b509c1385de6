/** The registration proxy between a host and its provider: what it relays, and how long it believes a document. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { AuthorizationProxy } from '../../../src/auth/inbound/authorization-proxy.ts'
import { HostClients } from '../../../src/auth/inbound/host-clients.ts'
import type { Fetch } from '../../../src/auth/fetch/safe-fetch.ts'
import { Seal } from '../../../src/auth/seal.ts'
import type { Purpose } from '../../../src/auth/seal.ts'
import type { ClientAtIssuer, ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.example.com'
const ORIGIN = 'https://mcp.example.com'
const BACK = 'http://127.0.0.1:9/callback'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
const CHALLENGE = challengeOf(VERIFIER)
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  response_types_supported: ['code'],
}
const CODE: Purpose<{ c: string; r: string; p: string; k: string }> = 'oauth code'
const CLIENT_ID: Purpose<{ n: string; r: readonly string[] }> = 'oauth client'
const REFRESH: Purpose<{ c: string; k: string }> = 'oauth refresh'
const seal = new Seal({ keys: [Buffer.alloc(32, 7)] })

const CLIENT: ClientAtIssuer = {
  client: { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' },
  scopes: undefined,
  sendsResource: true,
}
const proxyAt = (audience: string, fetch: Fetch, facts: Partial<ResourceServerOptions> = {}): AuthorizationProxy => {
  const { oauth } = oauthOf({ issuer: ISSUER }, audience, { client: CLIENT, ...facts })
  return new AuthorizationProxy(oauth!, oauth!.client!, seal, fetch, { wallMs: () => 0, monotonicMs: () => 0 })
}

const registeredWith = (by: Seal): string => by.seal(CLIENT_ID, { n: 'A host', r: [BACK] })
const HOST = registeredWith(seal)
const ANOTHER = registeredWith(seal)

const CODE_FORM = {
  grant_type: 'authorization_code',
  client_id: HOST,
  code: seal.seal(CODE, { c: HOST, r: BACK, p: CHALLENGE, k: 'of the provider' }),
  redirect_uri: BACK,
  code_verifier: VERIFIER,
}

/** A provider that answers a grant with this, and the forms that it was sent. */
const answering = (status: number, answer: object, facts: Partial<ResourceServerOptions> = {}) => {
  const forms: unknown[] = []
  const fetch: Fetch = async ({ url, body }) => {
    if (!url.endsWith('/token')) return { status: 200, text: JSON.stringify(METADATA) }
    forms.push(Object.fromEntries(new URLSearchParams(body)))
    return { status, text: JSON.stringify(answer) }
  }
  const proxy = proxyAt(`${ORIGIN}/mcp`, fetch, facts)
  return { proxy, forms, redeem: (form: Record<string, string>) => proxy.token(new URLSearchParams(form), ORIGIN) }
}

/** A host redeems a good code; the provider answers the grant with this. */
const redeemed = (status: number, answer: object) => answering(status, answer).redeem(CODE_FORM)

test.each([
  [400, 'invalid_grant'],
  [200, 'bad_refresh_token'],
  [200, 'bad_verification_code'],
  [400, 'interaction_required'],
])('the host is told of a grant that the provider refuses with %i %s', async (status, error) => {
  expect(await redeemed(status, { error })).toEqual({ status: 400, body: { error: 'invalid_grant' } })
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
  const document = { client_id: id, client_name: 'A host', redirect_uris: [BACK] }
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

test('its metadata names its own endpoints, and each scope once', () => {
  const metadataOf = (facts: Partial<ResourceServerOptions>) => answering(200, {}, facts).proxy.metadata(ORIGIN)
  expect(metadataOf({ scopes: ['mcp:connect', 'mcp:a'], requestScopes: ['openid', 'mcp:a'] })).toEqual({
    issuer: ORIGIN,
    authorization_endpoint: `${ORIGIN}/oauth/authorize`,
    token_endpoint: `${ORIGIN}/oauth/token`,
    registration_endpoint: `${ORIGIN}/oauth/register`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    scopes_supported: ['openid', 'mcp:a', 'mcp:connect'],
  })
  expect(metadataOf({ scopes: [] })).not.toHaveProperty('scopes_supported')
})

describe('an authorization request', () => {
  const { proxy } = answering(200, {})
  const registered = proxy.clients.register({ client_name: 'A host', redirect_uris: [BACK] })
  const id = 'id' in registered ? registered.id : ''
  const paramsOf = (more: Readonly<Record<string, string | undefined>>): URLSearchParams => {
    const all = {
      client_id: id,
      response_type: 'code',
      redirect_uri: BACK,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      state: 'of the host',
      ...more,
    }
    return new URLSearchParams(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined))
  }
  const ask = (more: Readonly<Record<string, string | undefined>> = {}) => proxy.ask(paramsOf(more), ORIGIN)

  test('is shown to the person with what the host asks for', async () => {
    expect(await ask()).toEqual({
      kind: 'consent',
      client: registered,
      request: {
        clientId: id,
        redirectUri: BACK,
        challenge: CHALLENGE,
        state: 'of the host',
        scope: undefined,
        resource: undefined,
      },
    })
    const more = { state: undefined, scope: 'mcp:a', resource: `${ORIGIN}/mcp`, prompt: 'login consent' }
    expect(await ask(more)).toMatchObject({
      kind: 'consent',
      request: { state: undefined, scope: 'mcp:a', resource: `${ORIGIN}/mcp` },
    })
  })

  test('of a client that is not known, or to an address that is not its own, is sent back nowhere', async () => {
    for (const client_id of [undefined, '', 'x', 'x'.repeat(8_193)])
      expect(await ask({ client_id })).toEqual({
        kind: 'refused',
        reason: 'the application is not registered here; let it register again',
      })
    for (const redirect_uri of [undefined, 'https://host.example/'])
      expect(await ask({ redirect_uri })).toEqual({
        kind: 'refused',
        reason: 'the application asks to be answered at an address that it did not register',
      })
  })

  test.each([
    ['is not read', 'https://host.example/client'],
    ['has too long an address', `https://host.example/${'x'.repeat(8_192)}`],
  ])('of a client whose document %s says what the document needs', async (_, client_id) => {
    expect(await ask({ client_id })).toEqual({
      kind: 'refused',
      reason: 'the document of the application cannot be read, or lacks its own client_id, a client_name or valid redirect_uris',
    })
  })

  test('may name several resources, and any other parameter once', async () => {
    const params = paramsOf({ resource: ORIGIN })
    params.append('resource', `${ORIGIN}/mcp`)
    expect(await proxy.ask(params, ORIGIN)).toMatchObject({ kind: 'consent', request: { resource: ORIGIN } })
    params.append('state', 'of the host')
    expect(await proxy.ask(params, ORIGIN)).toEqual({ kind: 'refused', reason: 'a parameter of the request is repeated' })
  })

  test.each([
    ['the longest state', { state: 's'.repeat(2_048) }, undefined],
    ['a state that is too long', { state: 's'.repeat(2_049) }, 'invalid_request'],
    ['the longest scope', { scope: 's'.repeat(8_192) }, undefined],
    ['a scope that is too long', { scope: 's'.repeat(8_193) }, 'invalid_request'],
    ['another kind of response', { response_type: 'token' }, 'unsupported_response_type'],
    ['no kind of response', { response_type: undefined }, 'unsupported_response_type'],
    ['no challenge', { code_challenge: undefined }, 'invalid_request'],
    ['a challenge that is too short', { code_challenge: CHALLENGE.slice(1) }, 'invalid_request'],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge of no method', { code_challenge_method: undefined }, 'invalid_request'],
    ['a prompt that shows nothing', { prompt: 'none' }, 'consent_required'],
    ['such a prompt among others', { prompt: 'login none' }, 'consent_required'],
    ['our origin', { resource: ORIGIN }, undefined],
    ['an endpoint of ours', { resource: `${ORIGIN}/servers/a/mcp` }, undefined],
    ['an endpoint of ours in upper case', { resource: `${ORIGIN.toUpperCase()}/mcp` }, undefined],
    ['an origin that begins like ours', { resource: `${ORIGIN}.evil.example/mcp` }, 'invalid_target'],
  ])('with %s is shown, or sent back with an error', async (_, more, error) => {
    const asked = await ask(more)
    if (error === undefined) return expect(asked.kind).toBe('consent')
    const { origin, pathname, searchParams } = new URL(asked.kind === 'redirect' ? asked.url : '')
    expect(origin + pathname).toBe(BACK)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      error,
      state: 'state' in more ? more.state : 'of the host',
      iss: ORIGIN,
    })
  })

  test('T-08 with an error sends no browser to a page of the network that nobody has consented to', async () => {
    const far = 'HTTPS://evil.example/callback'
    const other = proxy.clients.register({ redirect_uris: [far] })
    const client_id = 'id' in other ? other.id : ''
    expect(await ask({ client_id, redirect_uri: far, response_type: 'token' })).toEqual({
      kind: 'refused',
      reason: 'response_type must be code',
    })
    expect(await ask({ client_id, redirect_uri: far })).toMatchObject({ kind: 'consent' })
  })

  test('is opened again in the browser that consents, and in no other', async () => {
    const asked = await ask()
    const request = asked.kind === 'consent' ? asked.request : expect.fail(asked.kind)
    const sealed = proxy.sealRequest(request, 'this one')
    expect(proxy.openRequest(sealed, 'this one')).toEqual(JSON.parse(JSON.stringify(request)))
    expect(proxy.openRequest(sealed, 'another')).toBeUndefined()
    expect(proxy.openRequest('x', 'this one')).toBeUndefined()
  })
})

describe('on the way to the provider and back', () => {
  const REQUEST = {
    clientId: HOST,
    redirectUri: BACK,
    challenge: CHALLENGE,
    state: 's',
    scope: 'mcp:a',
    resource: `${ORIGIN}/mcp`,
  }
  const begun = async (client: Partial<ClientAtIssuer> = {}) => {
    const { proxy } = answering(200, {}, { client: { ...CLIENT, ...client } })
    return { proxy, asked: new URL(await proxy.begin(REQUEST, 'this one', ORIGIN)).searchParams }
  }

  test("the host's scopes and resource are passed on, or those that the provider takes", async () => {
    const { proxy, asked } = await begun()
    expect(Object.fromEntries(asked)).toEqual({
      response_type: 'code',
      client_id: 'trunkline',
      redirect_uri: `${ORIGIN}/oauth/callback`,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      scope: 'mcp:a',
      resource: `${ORIGIN}/mcp`,
      state: expect.any(String),
    })
    const other = await begun({ scopes: ['api://x/.default', 'openid'], sendsResource: false })
    expect([other.asked.get('scope'), other.asked.has('resource')]).toEqual(['api://x/.default openid', false])
    expect([proxy.scopeOf(REQUEST), other.proxy.scopeOf(REQUEST)]).toEqual(['mcp:a', 'api://x/.default openid'])
  })

  test.each([
    [{ code: 'c' }, undefined],
    [{ code: 'c', error: 'access_denied' }, 'access_denied'],
    [{ error: 'access_denied' }, 'access_denied'],
    [{ error: 'Not a code of an error' }, 'server_error'],
    [{ error: '' }, 'server_error'],
    [{ code: '' }, 'server_error'],
    [{}, 'server_error'],
  ])('the answer %j becomes the error %s', async (answer, error) => {
    const { proxy, asked } = await begun()
    const state = asked.get('state') ?? ''
    const back = await proxy.finish(new URLSearchParams({ state, ...answer }), 'this one', ORIGIN)
    const found = Object.fromEntries(new URL(back ?? '').searchParams)
    expect(found).toEqual({ state: 's', iss: ORIGIN, ...(error === undefined ? { code: expect.any(String) } : { error }) })
  })

  test('an answer in another browser, or to nothing that was asked, leads nowhere', async () => {
    const { proxy, asked } = await begun()
    const state = asked.get('state') ?? ''
    expect(await proxy.finish(new URLSearchParams({ code: 'c', state }), 'another', ORIGIN)).toBeUndefined()
    expect(await proxy.finish(new URLSearchParams({ code: 'c', state }), undefined, ORIGIN)).toBeUndefined()
    expect(await proxy.finish(new URLSearchParams({ code: 'c', state: 'x' }), 'this one', ORIGIN)).toBeUndefined()
    expect(await proxy.finish(new URLSearchParams({ code: 'c' }), undefined, ORIGIN)).toBeUndefined()
  })
})

describe('a token request', () => {
  const REFUSED = { status: 400, body: { error: 'invalid_grant' } }

  test('is answered with what the provider said of the access token, and nothing else', async () => {
    const bare = await redeemed(200, { access_token: 'a', id_token: 'i', scope: 7, refresh_token: 7 })
    expect(bare).toEqual({ status: 200, body: { access_token: 'a', token_type: 'Bearer' } })
    const full = { access_token: 'a', token_type: 'bearer', expires_in: 60, scope: 'mcp:a', refresh_token: 'r' }
    const { body } = await redeemed(200, full)
    expect(body).toEqual({ ...full, refresh_token: expect.not.stringMatching(/^r$/) })
    const { redeem, forms } = answering(200, full)
    const form = { grant_type: 'refresh_token', ...('refresh_token' in body && { refresh_token: String(body.refresh_token) }) }
    expect(await redeem({ ...form, client_id: ANOTHER })).toEqual(REFUSED)
    expect(await redeem({ ...form, client_id: HOST })).toMatchObject({ status: 200 })
    expect(forms).toMatchObject([{ grant_type: 'refresh_token', refresh_token: 'r' }])
  })

  test('names the resource to providers that take one', async () => {
    const resource = `${ORIGIN}/mcp`
    for (const sendsResource of [true, false]) {
      const { redeem, forms } = answering(200, { access_token: 'a' }, { client: { ...CLIENT, sendsResource } })
      expect(await redeem({ ...CODE_FORM, resource })).toMatchObject({ status: 200 })
      const sent = {
        ...CODE_FORM,
        client_id: 'trunkline',
        code: 'of the provider',
        redirect_uri: `${ORIGIN}/oauth/callback`,
        ...(sendsResource && { resource }),
      }
      expect(forms).toEqual([sent])
    }
  })

  test('a host of OAuth 2.1 does not repeat its redirect URI with the code', async () => {
    const { redirect_uri: _, ...form } = CODE_FORM
    const { redeem, forms } = answering(200, { access_token: 'a' })
    expect(await redeem(form)).toMatchObject({ status: 200, body: { access_token: 'a' } })
    expect(forms).toMatchObject([{ code: 'of the provider', redirect_uri: `${ORIGIN}/oauth/callback` }])
  })

  const sealed = (verifier: string): Record<string, string> => ({
    code: seal.seal(CODE, { c: HOST, r: BACK, p: challengeOf(verifier), k: 'of the provider' }),
    code_verifier: verifier,
  })
  test.each([
    ['of another client', { client_id: ANOTHER }, 'invalid_grant'],
    ['of another client with a document', { client_id: 'https://host.example/client' }, 'invalid_grant'],
    ['of a client that we do not know', { client_id: 'another' }, 'invalid_client'],
    ['of no client', { client_id: '' }, 'invalid_client'],
    ['for another address', { redirect_uri: 'http://127.0.0.1:9/other' }, 'invalid_grant'],
    ['with another verifier', { code_verifier: `x${VERIFIER.slice(1)}` }, 'invalid_grant'],
    ['with a verifier that is too short', sealed('x'.repeat(42)), 'invalid_grant'],
    ['with a verifier that is too long', sealed('x'.repeat(129)), 'invalid_grant'],
    ['with a code that is not ours', { code: 'x' }, 'invalid_grant'],
    ['for another gateway', { resource: 'https://other.example/mcp' }, 'invalid_target'],
    ['of another kind', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
  ])('%s is refused, and the provider not asked', async (_, more, error) => {
    const { redeem, forms } = answering(200, { access_token: 'a' })
    expect(await redeem({ ...CODE_FORM, ...more })).toEqual({ status: 400, body: { error } })
    expect(forms).toEqual([])
  })

  test('after a change of the key shows its host that it must register again', async () => {
    const { redeem, forms } = answering(200, { access_token: 'a' })
    const before = new Seal({ keys: [Buffer.alloc(32, 8)] })
    const client_id = registeredWith(before)
    const refresh_token = before.seal(REFRESH, { c: client_id, k: 'of the provider' })
    const form = { grant_type: 'refresh_token', client_id, refresh_token }
    expect(await redeem(form)).toEqual({ status: 400, body: { error: 'invalid_client' } })
    expect(forms).toEqual([])
  })

  test('waits for the provider with 63 others, and is told to come again beside 64', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const proxy = proxyAt(`${ORIGIN}/mcp`, async ({ url }) => {
      await promise
      return { status: 200, text: JSON.stringify(url.endsWith('/token') ? { access_token: 'a' } : METADATA) }
    })
    const redeem = () => proxy.token(new URLSearchParams(CODE_FORM), ORIGIN)
    const waiting = Array.from({ length: 64 }, redeem)
    expect(await redeem()).toEqual({ status: 503, body: { error: 'temporarily_unavailable' } })
    resolve()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 200))
    expect(await redeem()).toMatchObject({ status: 200 })
  })
})
