/**
 * `auth.oauth.registration: proxy`: hosts that only know registration get in at a provider that has none, and no host gets a code or a token of a
 * person who did not consent to it (BRIDGING 6.3.5; T-08).
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { REDIRECT, startAuthorizationServer, TRUNKLINE } from '../../support/authorization-server.ts'
import type { AuthorizationServer, User } from '../../support/authorization-server.ts'
import { Browser } from '../../support/browser.ts'
import { oauthOf } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { listening } from '../../support/listening.ts'
import { SigningIn } from '../../support/signing-in.ts'

const CLIENT = {
  client: { id: TRUNKLINE.id, secret: TRUNKLINE.secret, privateKey: undefined, algorithm: '' },
  scopes: undefined,
  sendsResource: true,
}
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

let idp: AuthorizationServer
let gateway: TestGateway
beforeAll(async () => {
  idp = await startAuthorizationServer()
  gateway = await startGateway({ servers: { a: fake.offering('echo') } })
  const { running, url } = gateway
  const { configuration } = running
  const auth = oauthOf(idp, url.href, { client: CLIENT, proxiesRegistration: true })
  await running.apply(
    { ...configuration, host: { ...configuration.host, auth }, gateway: { ...configuration.gateway, scopes: ['mcp:connect'] } },
    new Set(),
  )
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await idp[Symbol.asyncDispose]()
})

const at = (path: string): URL => new URL(path, gateway.url)
const register = async (metadata: object, base = gateway.url): Promise<{ status: number; body: Record<string, string> }> => {
  const reply = await fetch(new URL('/oauth/register', base), { method: 'POST', body: JSON.stringify(metadata) })
  return { status: reply.status, body: (await reply.json()) as Record<string, string> }
}
const clientOf = async (redirect = REDIRECT, name = 'A host'): Promise<string> =>
  (await register({ client_name: name, redirect_uris: [redirect] })).body['client_id'] ?? ''

const authorizeUrl = (clientId: string, more: Readonly<Record<string, string | undefined>> = {}): URL => {
  const url = at('/oauth/authorize')
  const params = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: REDIRECT,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    state: 'of the host',
    scope: 'mcp:connect offline_access',
    resource: gateway.url.href,
    ...more,
  }
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}

/** Presses a button of the consent page; resolves with where the browser is sent. */
const answer = async (browser: Browser, page: { url: URL; text: string }, word = 'allow'): Promise<URL> => {
  const fields = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value],
  )
  const reply = await browser.step(at('/oauth/authorize'), new URLSearchParams([...fields, ['answer', word]]))
  return new URL(reply.headers.get('location') ?? 'about:blank')
}

/** The whole way of a person: consent, the provider, back; resolves with where the host is answered. */
const goThrough = async (url: URL, user: User, browser = new Browser()): Promise<URL> => {
  const callback = await idp.signIn(await answer(browser, await browser.open(url)), user)
  return new URL((await browser.step(callback)).headers.get('location') ?? 'about:blank')
}

const redeem = async (form: Readonly<Record<string, string>>) => {
  const reply = await fetch(at('/oauth/token'), { method: 'POST', body: new URLSearchParams(form) })
  return { status: reply.status, body: (await reply.json()) as Record<string, string> }
}
const codeForm = (clientId: string, back: URL, more: Readonly<Record<string, string>> = {}) => ({
  grant_type: 'authorization_code',
  client_id: clientId,
  code: back.searchParams.get('code') ?? '',
  redirect_uri: REDIRECT,
  code_verifier: VERIFIER,
  resource: gateway.url.href,
  ...more,
})

/** As `SigningIn`, with a person who consents on our page first. */
class Consenting extends SigningIn {
  override async redirectToAuthorization(url: URL): Promise<void> {
    this.returned = (await goThrough(url, 'alice')).searchParams
  }
}

describe('the official clients, which register, come in', () => {
  test('SDK 1', async () => {
    const person = new Consenting(idp, 'alice')
    const first = new Http1(gateway.url, { authProvider: person })
    await expect(new Client1({ name: 'one', version: '1' }).connect(first)).rejects.toThrow()
    await first.finishAuth(person.returned?.get('code') ?? '')
    const client = new Client1({ name: 'one', version: '1' })
    await client.connect(new Http1(gateway.url, { authProvider: person }))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['a__echo'])
    await client.close()
  })
  test.each(['legacy', 'auto'] as const)('SDK 2, %s', async (mode) => {
    const person = new Consenting(idp, 'alice')
    const first = new Http2(gateway.url, { authProvider: person })
    const open = () => new Client2({ name: 'two', version: '1' }, { versionNegotiation: { mode } })
    await expect(open().connect(first)).rejects.toThrow()
    await first.finishAuth(person.returned ?? new URLSearchParams())
    const client = open()
    await client.connect(new Http2(gateway.url, { authProvider: person }))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['a__echo'])
    await client.close()
  })
})

test('a code and refresh tokens of ours: nothing of the provider but its access tokens leaves', async () => {
  const clientId = await clientOf()
  // With `openid` the provider sends an ID token as well.
  const back = await goThrough(authorizeUrl(clientId, { scope: 'openid mcp:connect offline_access' }), 'alice')
  expect([back.origin + back.pathname, back.searchParams.get('state'), back.searchParams.get('iss')]).toEqual([
    REDIRECT,
    'of the host',
    gateway.url.origin,
  ])
  const first = await redeem(codeForm(clientId, back))
  expect(first).toMatchObject({ status: 200, body: { token_type: 'Bearer', refresh_token: expect.any(String) } })
  expect(Object.keys(first.body).toSorted()).toEqual(['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type'])
  expect([...back.searchParams.keys()].toSorted()).toEqual(['code', 'iss', 'state'])
  // The provider takes neither from a thief.
  const refresh = first.body['refresh_token'] ?? ''
  expect(await idp.exchange({ grant_type: 'refresh_token', refresh_token: refresh })).toMatchObject({ error: 'invalid_grant' })
  const form = { grant_type: 'refresh_token', refresh_token: refresh, client_id: clientId, resource: gateway.url.href }
  expect(await redeem({ ...form, client_id: await clientOf() })).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(await redeem(form)).toMatchObject({ status: 200, body: { access_token: expect.any(String) } })
})

describe('T-08 attacks', () => {
  test('nobody is sent to the provider without a consent for this client, however often the person consented to others', async () => {
    const browser = new Browser()
    await goThrough(authorizeUrl(await clientOf()), 'alice', browser)
    const before = idp.requests.entries.length
    const page = await browser.open(
      authorizeUrl(await clientOf('http://127.0.0.1:4444/evil', '<b>Evil</b>'), { redirect_uri: 'http://127.0.0.1:4444/evil' }),
    )
    expect(page.status).toBe(200)
    expect(page.text).toContain('&#60;b&#62;Evil&#60;/b&#62;')
    expect(page.text).toContain('127.0.0.1:4444')
    expect([page.headers.get('x-frame-options'), page.headers.get('content-security-policy')]).toEqual([
      'DENY',
      expect.stringContaining("frame-ancestors 'none'"),
    ])
    expect(idp.requests.entries.slice(before).filter((entry) => entry.includes('/auth'))).toEqual([])
    const denied = await answer(browser, page, 'deny')
    expect([denied.host, denied.searchParams.get('error')]).toEqual(['127.0.0.1:4444', 'access_denied'])
  })

  test('T-08 the consent page names the scopes that the provider is asked for, and the whole redirect URI', async () => {
    const redirect = 'https://host.test/back?x=<1>'
    const id = await clientOf(encodeURI(redirect))
    const more = { redirect_uri: encodeURI(redirect), scope: 'mcp:connect <i>files:write</i>' }
    const { text } = await new Browser().open(authorizeUrl(id, more))
    expect(text).toContain('mcp:connect')
    expect(text).toContain('&#60;i&#62;files:write&#60;/i&#62;')
    expect(text).toContain('https://host.test/back?x=%3C1%3E')
    const none = await new Browser().open(authorizeUrl(id, { ...more, scope: undefined }))
    expect(none.text).toContain('It names no scopes')
  })

  test.each([
    ['another path', `${REDIRECT}/more`],
    ['another name of this machine', 'http://localhost:9/callback'],
    ['a query', `${REDIRECT}?x=1`],
    ['a host before', 'http://127.0.0.1:9@evil.test/callback'],
    ['another spelling', 'HTTP://127.0.0.1:9/callback'],
    ['nothing', ''],
  ])('a redirect URI with %s ends on a page of ours, and is never followed', async (_name, redirect) => {
    const page = await new Browser().step(authorizeUrl(await clientOf(), { redirect_uri: redirect }))
    expect([page.status, page.headers.get('location')]).toEqual([400, null])
  })

  test.each([
    ['no PKCE', { code_challenge: undefined }, 'invalid_request'],
    ['plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a token in the answer', { response_type: 'token' }, 'unsupported_response_type'],
    ['the resource of another', { resource: 'https://other.test/mcp' }, 'invalid_target'],
    ['no question', { prompt: 'none' }, 'consent_required'],
  ])('a request with %s is refused to the host', async (_name, more, error) => {
    const page = await new Browser().step(authorizeUrl(await clientOf(), more))
    expect(new URL(page.headers.get('location') ?? '').searchParams.get('error')).toBe(error)
  })

  test.each(['client_id', 'redirect_uri', 'code_challenge', 'state'])('a request that repeats %s goes nowhere', async (name) => {
    const url = authorizeUrl(await clientOf())
    url.searchParams.append(name, url.searchParams.get(name) ?? '')
    const page = await new Browser().step(url)
    expect([page.status, page.headers.get('location')]).toEqual([400, null])
  })

  test('a client id that we did not make, or that was altered, is no client', async () => {
    const good = await clientOf()
    for (const id of ['', 'trunkline', `${good.slice(0, -2)}AA`, 'https://127.0.0.1:1/client.json'])
      expect((await new Browser().step(authorizeUrl(id))).status).toBe(400)
  })

  test('the consent of one browser is worth nothing in another, neither on the way there nor on the way back', async () => {
    const [victim, thief] = [new Browser(), new Browser()]
    const url = authorizeUrl(await clientOf())
    const page = await victim.open(url)
    await thief.open(url)
    expect((await answer(thief, page)).protocol).toBe('about:')
    const callback = await idp.signIn(await answer(victim, page), 'alice')
    expect((await thief.step(callback)).status).toBe(400)
    expect((await new Browser().step(callback)).status).toBe(400)
    expect((await victim.step(callback)).status).toBe(303)
  })

  test.each([
    ['of another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.test')],
    ['of two issuers', (url: URL) => url.searchParams.append('iss', 'https://evil.test')],
    ['of no issuer, where the provider says who it is', (url: URL) => url.searchParams.delete('iss')],
  ])('an answer %s gives the host no code', async (_name, alter) => {
    const browser = new Browser()
    const callback = await idp.signIn(await answer(browser, await browser.open(authorizeUrl(await clientOf()))), 'alice')
    alter(callback)
    const reply = await browser.step(callback)
    expect([reply.status, reply.headers.get('location')]).toEqual([502, null])
  })

  test('a code is for its client, its redirect URI and its verifier, and good once', async () => {
    const clientId = await clientOf()
    const back = await goThrough(authorizeUrl(clientId), 'alice')
    const refused = { status: 400, body: { error: 'invalid_grant' } }
    expect(await redeem(codeForm(await clientOf(), back))).toMatchObject(refused)
    expect(await redeem(codeForm(clientId, back, { redirect_uri: 'http://127.0.0.1:10/callback' }))).toMatchObject(refused)
    expect(await redeem(codeForm(clientId, back, { code_verifier: VERIFIER.replace('d', 'e') }))).toMatchObject(refused)
    expect(await redeem(codeForm(clientId, back, { code: 'x' }))).toMatchObject(refused)
    expect((await redeem(codeForm(clientId, back))).status).toBe(200)
    expect(await redeem(codeForm(clientId, back))).toMatchObject(refused)
  })

  test.each([
    ['javascript:alert(1)'],
    ['data:text/html,x'],
    ['http://evil.test/callback'],
    ['https://user:pass@evil.test/'],
    ['https://evil.test/#x'],
    ['file:///etc/passwd'],
    [7],
  ])('the redirect URI %j is not registered', async (uri) => {
    expect(await register({ redirect_uris: [uri] })).toMatchObject({ status: 400, body: { error: 'invalid_redirect_uri' } })
  })

  test('bad bodies are answered, and refuse nothing else', async () => {
    expect((await register([])).status).toBe(400)
    const huge = await fetch(at('/oauth/register'), { method: 'POST', body: 'x'.repeat(100_000) })
    expect(huge.status).toBe(413)
    expect(await redeem({ grant_type: 'password' })).toMatchObject({ status: 400, body: { error: 'unsupported_grant_type' } })
    expect((await fetch(at('/oauth/nothing'))).status).toBe(404)
  })
})

test('F-17 a consent that was asked for by one replica is taken by another', async () => {
  const stateKey = 'ab'.repeat(32)
  const auth = oauthOf(idp, gateway.url.href, { client: CLIENT, proxiesRegistration: true })
  await using one = await startGateway({ servers: {}, stateKey, host: { auth } })
  await using two = await startGateway({ servers: {}, stateKey, host: { auth } })
  const { body } = await register({ redirect_uris: [REDIRECT] }, one.url)
  const url = authorizeUrl(body['client_id'] ?? '')
  const page = await fetch(new URL(url.pathname + url.search, one.url))
  const fields = [...(await page.text()).matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value],
  )
  const consent = (cookie: string): Promise<Response> =>
    fetch(new URL('/oauth/authorize', two.url), {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie },
      body: new URLSearchParams([...fields, ['answer', 'allow']]),
    })
  const [cookie = ''] = page.headers.getSetCookie()[0]?.split(';') ?? []
  const taken = await consent(cookie)
  expect([taken.status, new URL(taken.headers.get('location') ?? '').origin]).toEqual([303, new URL(idp.issuer).origin])
  expect((await consent(cookie.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).status).toBe(403)
})

test('metadata: we are the one authorization server that hosts are told of', async () => {
  const document = (await (await fetch(at('/.well-known/oauth-protected-resource/mcp'))).json()) as object
  expect(document).toMatchObject({ authorization_servers: [gateway.url.origin] })
  const metadata = (await (await fetch(at('/.well-known/oauth-authorization-server'))).json()) as object
  expect(metadata).toMatchObject({
    issuer: gateway.url.origin,
    registration_endpoint: at('/oauth/register').href,
    code_challenge_methods_supported: ['S256'],
    client_id_metadata_document_supported: true,
  })
})

test('a client metadata document stands for a client: its own URL, its redirect URIs, any port of a loopback address', async () => {
  const server = createServer((request, response) => {
    const own = `${base}${request.url}`
    const id = request.url === '/other.json' ? 'https://other.test/client.json' : own
    response.end(JSON.stringify({ client_id: id, client_name: 'Documented', redirect_uris: ['http://127.0.0.1/callback'] }))
  })
  await using opened = await listening(server)
  const base = opened.url
  const page = await new Browser().open(authorizeUrl(`${base}/client.json`))
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('Documented')])
  // The document says where the answer may go, not which program takes it there.
  expect(page.text).toContain('any program on this computer can say that it is this application')
  expect(
    (await redeem(codeForm(`${base}/client.json`, await goThrough(authorizeUrl(`${base}/client.json`), 'alice')))).status,
  ).toBe(200)
  expect((await new Browser().step(authorizeUrl(`${base}/other.json`))).status).toBe(400)
  expect(
    (await new Browser().step(authorizeUrl(`${base}/client.json`, { redirect_uri: 'http://127.0.0.1:9/other' }))).status,
  ).toBe(400)
})
