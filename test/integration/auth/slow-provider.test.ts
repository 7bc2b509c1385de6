/**
 * A provider that accepts connections and answers nothing, before a whole gateway: hosts are told 503 and servers are not reachable; no host is
 * told that its token is bad, and no person that a sign-in is needed (F-17). Each test waits for the five seconds that an answer may take.
 */
import { describe, expect, test, vi } from 'vitest'
import { serverStatuses } from '../../../src/admin/state/status.ts'
import type { ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import type { CredentialOptions } from '../../../src/auth/credential-options.ts'
import { MACHINE, startAuthorizationServer, TRUNKLINE } from '../../support/authorization-server.ts'
import { Browser } from '../../support/browser.ts'
import { bearer, oauthOf, PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { request } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'

const AUDIENCE = 'https://mcp.example.com/mcp'
const INITIALIZE = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
const SLOW = /no answer within 5 s/
const CLIENT = { id: TRUNKLINE.id, secret: TRUNKLINE.secret, privateKey: undefined, algorithm: '' }
const AT_ISSUER = { client: CLIENT, scopes: undefined, sendsResource: true }

/** A gateway whose callers come from a real authorization server. */
const inbound = async (facts: Partial<ResourceServerOptions> = {}, format: 'jwt' | 'opaque' = 'jwt') => {
  const issuer = await startAuthorizationServer({ format })
  const gateway = await startGateway({
    servers: { a: fake.offering('echo') },
    host: { auth: oauthOf(issuer, AUDIENCE, facts) },
    gateway: { scopes: ['mcp:connect'] },
  })
  const knock = async (token: string) => {
    const { status, headers } = await send(gateway.url, { headers: bearer(token), body: INITIALIZE })
    return { status, retryAfter: headers['retry-after'], challenge: headers['www-authenticate'] }
  }
  /** Signed here: the issuer is not asked for it. */
  const sign = (sub: string): Promise<string> =>
    issuer.sign({ iss: issuer.issuer, aud: AUDIENCE, sub, exp: Date.now() / 1_000 + 600, scope: 'mcp:connect' })
  return {
    issuer,
    gateway,
    knock,
    sign,
    /** Why the last token could not be checked, as the log has it. */
    reason: () => gateway.log.entries.findLast(({ text }) => text === 'a token could not be verified')?.facts['error'],
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
const LATER = { status: 503, retryAfter: '2', challenge: undefined }

describe.concurrent('the issuer of the callers', () => {
  test('F-17 a token whose keys do not come in time is 503, and good once they come', async () => {
    await using set = await inbound()
    set.issuer.fail('silent')
    const token = await set.sign('ann')
    expect(await set.knock(token)).toEqual(LATER)
    expect(set.reason()).toMatch(SLOW)
    set.issuer.fail(false)
    await vi.waitFor(async () => expect((await set.knock(token)).status).toBe(200), { timeout: 10_000, interval: 100 })
  })

  test('F-17 while keys are rotated by an issuer that does not answer in time, tokens by the old key are good, by the new one 503', async () => {
    await using set = await inbound()
    const old = await set.sign('ann')
    expect((await set.knock(old)).status).toBe(200)
    const oldToo = await set.sign('bob')
    set.issuer.rotate()
    set.issuer.fail('silent')
    expect(await set.knock(await set.sign('cleo'))).toEqual(LATER)
    expect((await set.knock(oldToo)).status).toBe(200)
    set.issuer.fail(false)
    const fresh = await set.sign('dora')
    await vi.waitFor(async () => expect((await set.knock(fresh)).status).toBe(200), { timeout: 10_000, interval: 100 })
  })

  test('F-17 an opaque token that is not looked up in time is 503', async () => {
    const introspection = { endpoint: undefined, clientId: MACHINE.id, clientSecret: MACHINE.secret }
    await using set = await inbound({ introspection }, 'opaque')
    const [first, token] = await Promise.all(
      (['alice', 'bob'] as const).map(async (user) => (await set.issuer.userToken(user, { resource: AUDIENCE })).access_token),
    )
    expect((await set.knock(first!)).status).toBe(200)
    set.issuer.fail('silent')
    expect(await set.knock(token!)).toEqual(LATER)
    expect(set.reason()).toMatch(SLOW)
    set.issuer.fail(false)
    expect((await set.knock(token!)).status).toBe(200)
  })

  test('F-17 the registration proxy tells hosts to try again, and people that the issuer does not answer', async () => {
    await using set = await inbound({ client: AT_ISSUER, proxiesRegistration: true })
    const at = (path: string): URL => new URL(path, set.gateway.url)
    const redirect = 'http://127.0.0.1:9/callback'
    const registered = await fetch(at('/oauth/register'), {
      method: 'POST',
      body: JSON.stringify({ client_name: 'A host', redirect_uris: [redirect] }),
    })
    const { client_id: id } = (await registered.json()) as { client_id: string }
    set.issuer.fail('silent')
    const wanted = at('/oauth/authorize')
    wanted.search = new URLSearchParams({
      client_id: id,
      response_type: 'code',
      redirect_uri: redirect,
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    }).toString()
    const browser = new Browser()
    const page = await browser.open(wanted)
    const fields = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
      ([, name = '', value = '']): [string, string] => [name, value],
    )
    const answer = await browser.step(at('/oauth/authorize'), new URLSearchParams([...fields, ['answer', 'allow']]))
    expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('cannot be used')])
    expect(JSON.stringify(set.gateway.log.entries)).toMatch(SLOW)
  })
})

/** A gateway with a server `a` that takes tokens of a provider of its own. */
const outbound = async (credential: (issuer: FakeIssuer) => CredentialOptions, auth?: ReturnType<typeof oauthOf>) => {
  const issuer = await FakeIssuer.start()
  const server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(server, issuer)
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential: credential(issuer), timeouts: { connectTimeoutMs: 10_000 } } },
    ...(auth !== undefined && { host: { auth } }),
    early: true,
  })
  return {
    issuer,
    gateway,
    status: () => serverStatuses(gateway.running)[0],
    [Symbol.asyncDispose]: async () => {
      for (const item of [gateway, server, issuer]) await item[Symbol.asyncDispose]()
    },
  }
}
const CALL = { name: 'a__echo', arguments: {} }
const NO_SIGN_IN = expect.not.stringMatching(/sign.?in|unauthori[sz]ed|401/i) as unknown

describe.concurrent('the provider of a server', () => {
  test('F-17 client credentials: the server is not reachable until the provider answers', async () => {
    await using set = await outbound(({ url }) => ({
      mode: 'client',
      client: CLIENT,
      scopes: undefined,
      issuer: url,
      isPrivate: false,
    }))
    set.issuer.away = 'silent'
    await vi.waitFor(() => expect(set.status()?.reason).toMatch(SLOW), { timeout: 15_000 })
    expect(set.status()).toMatchObject({ needsSignIn: false, reason: NO_SIGN_IN })
    set.issuer.away = undefined
    await vi.waitFor(() => expect(set.status()?.state).toBe('healthy'), { timeout: 15_000 })
  })

  test('F-17 a refresh token: the call fails with the reason, and works again with the same sign-in', async () => {
    await using set = await outbound(() => PER_USER)
    await using host = await modernHttp.connect(set.gateway, { capabilities: { elicitation: { form: {}, url: {} } } })
    const asked = await host.call('tools/call', { name: 'a__sign_in' })
    const link = (asked['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''
    expect((await new Browser().signIn(link)).text).toContain('Signed in to A')
    expect(await host.call('tools/call', CALL)).toMatchObject({ resultType: 'complete' })
    set.issuer.expire()
    set.issuer.away = 'silent'
    const failed = await host.call('tools/call', CALL)
    expect(failed).toMatchObject({ isError: true, content: [{ text: 'A is not reachable' }] })
    expect(failed).not.toHaveProperty('inputRequests')
    expect(JSON.stringify(set.gateway.log.entries)).toMatch(SLOW)
    set.issuer.away = undefined
    await vi.waitFor(async () => expect(await host.call('tools/call', CALL)).not.toHaveProperty('isError'), { timeout: 10_000 })
    expect(set.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
  })

  test('F-17 a person on the way to the provider is told that it does not answer, and gets there by the same link later', async () => {
    await using set = await outbound(() => PER_USER)
    await using host = await modernHttp.connect(set.gateway, { capabilities: { elicitation: { form: {}, url: {} } } })
    const asked = await host.call('tools/call', { name: 'a__sign_in' })
    const link = (asked['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''
    const browser = new Browser()
    set.issuer.away = 'silent'
    const page = await browser.signIn(link)
    expect([page.status, page.text]).toEqual([502, expect.stringContaining('The authorization server does not answer now.')])
    set.issuer.away = undefined
    expect((await browser.signIn(link)).text).toContain('Signed in to A')
  })

  test('F-17 a token that proves who is at the page, and cannot be checked now, leads nowhere and refuses nobody', async () => {
    await using callers = await startAuthorizationServer()
    await using set = await outbound(() => PER_USER, oauthOf(callers, AUDIENCE))
    const token = (): Promise<string> =>
      callers.sign({ iss: callers.issuer, aud: AUDIENCE, sub: 'ann', exp: Date.now() / 1_000 + 600, scope: 'mcp:connect' })
    const own = await token()
    await using host = await modernHttp.connect(set.gateway, {
      capabilities: { elicitation: { form: {}, url: {} } },
      token: () => own,
    })
    const asked = await host.call('tools/call', { name: 'a__sign_in' })
    const link = (asked['inputRequests'] as Record<string, { params: { url: string } }>)['sign-in']?.params.url ?? ''
    const browser = new Browser()
    // The link has the origin that people use.
    const page = await browser.open(new URL(new URL(link).pathname, set.gateway.url))
    const prove = async (proof: string) => {
      const mark = /name="mark" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
      return browser.step(page.url, new URLSearchParams({ mark, proof }))
    }
    callers.rotate()
    callers.fail(true)
    const fresh = await token()
    const away = await prove(fresh)
    expect([away.status, away.text]).toEqual([502, expect.stringContaining('The authorization server does not answer now.')])
    callers.fail(false)
    await vi.waitFor(async () => expect((await prove(fresh)).status).toBe(303), { timeout: 10_000, interval: 100 })
  })

  test('F-17 token exchange: the caller stays signed in, and its call fails with the reason', async () => {
    await using callers = await startAuthorizationServer()
    await using set = await outbound(
      ({ url }) => ({ mode: 'exchange', issuer: url, client: CLIENT, audience: 'orders', scopes: undefined, isPrivate: false }),
      oauthOf(callers, AUDIENCE),
    )
    const token = await callers.sign({
      iss: callers.issuer,
      aud: AUDIENCE,
      sub: 'ann',
      exp: Date.now() / 1_000 + 600,
      scope: 'mcp:connect',
    })
    set.issuer.away = 'silent'
    await using host = await modernHttp.connect(set.gateway, { token: () => token })
    expect(await host.call('tools/call', CALL)).toMatchObject({ isError: true, content: [{ text: 'A is not reachable' }] })
    expect(JSON.stringify(set.gateway.log.entries)).toMatch(SLOW)
    expect((await send(set.gateway.url, { headers: bearer(token), body: INITIALIZE })).status).toBe(200)
    set.issuer.away = undefined
    await vi.waitFor(async () => expect(await host.call('tools/call', CALL)).not.toHaveProperty('isError'), { timeout: 10_000 })
  })
})
