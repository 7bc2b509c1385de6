/** Tokens of a real authorization server: documents, audiences, keys that change, opaque tokens, and what when it is away (BRIDGING 6.1). */
import { describe, expect, test } from 'vitest'
import type { AuthOptions, ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { MACHINE, startAuthorizationServer } from '../../support/authorization-server.ts'
import { bearer, oauthOf } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { connectHttp, mirrors } from '../../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const ORIGIN = 'https://mcp.example.com'
const AUDIENCE = `${ORIGIN}/mcp`
const INITIALIZE = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })

const start = (auth: AuthOptions, scopes = auth.oauth?.scopes ?? []): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo'), b: fake.offering('other') }, host: { auth }, gateway: { scopes } })
const both = async (facts: Partial<ResourceServerOptions> = {}, format: 'jwt' | 'opaque' = 'jwt') => {
  const issuer = await startAuthorizationServer({ format })
  const gateway = await start(oauthOf(issuer, AUDIENCE, facts))
  const get = (path: string) => send(new URL(path, gateway.url), { method: 'GET' })
  const knock = (token: string, path = '/mcp') => send(new URL(path, gateway.url), { headers: bearer(token), body: INITIALIZE })
  const asked = (path: string): number => issuer.requests.entries.filter((entry) => entry.endsWith(path)).length
  const close = async (): Promise<void> => {
    await gateway[Symbol.asyncDispose]()
    await issuer[Symbol.asyncDispose]()
  }
  return { issuer, gateway, get, knock, asked, [Symbol.asyncDispose]: close }
}

test('B232 B264 each endpoint has its document at its own well-known, for everybody, and nothing else is there', async () => {
  await using set = await both()
  const resources = ['', '/mcp', '/mcp/x', '/sse', '/servers/a/mcp', '/servers/none/mcp'].map(async (path) => {
    const reply = await set.get(`/.well-known/oauth-protected-resource${path}`)
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'application/json'])
    const document = JSON.parse(await reply.body) as { resource: string; authorization_servers: string[] }
    expect(document.authorization_servers).toEqual([set.issuer.issuer])
    return document.resource
  })
  expect(await Promise.all(resources)).toEqual(
    ['/mcp', '/mcp', '/mcp', '/sse', '/servers/a/mcp', '/servers/none/mcp'].map((path) => ORIGIN + path),
  )
  for (const path of [
    '/.well-known/oauth-protected-resource/x',
    '/.well-known/oauth-authorization-server',
    '/.well-known/openid-configuration',
    '/.well-known/',
  ])
    expect((await set.get(path)).status, path).toBe(404)
  expect(set.issuer.requests.entries).toEqual([])
})

test.each([
  [AUDIENCE, ['/mcp']],
  [`${ORIGIN}/sse`, ['/sse']],
  [`${ORIGIN}/servers/a/mcp`, ['/servers/a/mcp']],
  [`${ORIGIN}/servers`, ['/servers/a/mcp', '/servers/b/mcp']],
  [ORIGIN, ['/mcp', '/sse', '/servers/a/mcp', '/servers/b/mcp']],
  [`${ORIGIN}/mcp/x`, []],
])('B234 a token for %s is good at %j and at no other endpoint', async (resource, good) => {
  await using set = await both()
  const token = await set.issuer.machineToken({ resource })
  for (const path of ['/mcp', '/servers/a/mcp', '/servers/b/mcp', '/sse']) {
    const reply =
      path === '/sse'
        ? await send(new URL(path, set.gateway.url), {
            method: 'GET',
            headers: { ...bearer(token), accept: 'text/event-stream' },
          })
        : await set.knock(token, path)
    expect(reply.status, path).toBe(good.includes(path as never) ? 200 : 401)
    if (path === '/sse') reply.close()
  }
})

test('B235 the token of a host reaches no server', async () => {
  await using set = await both()
  const { access_token: token } = await set.issuer.userToken('alice', { resource: AUDIENCE })
  await using host = await modernHttp.connect(set.gateway, { token: () => token })
  await host.call('tools/call', { name: 'a__echo', arguments: {} }, { headers: { 'mcp-param-x': 'y' } })
  const [call] = set.gateway.fake('a').all('tools/call')
  const heard = JSON.stringify([call?.headers, call?.params, call?.raw])
  expect(heard).not.toContain(token)
  expect(heard.toLowerCase()).not.toContain('bearer')
})

test('a token is verified once and then known; keys are fetched when the first one comes', async () => {
  await using set = await both()
  const token = await set.issuer.machineToken({ resource: AUDIENCE })
  expect(set.asked('/jwks')).toBe(0)
  const replies = await Promise.all(Array.from({ length: 10 }, () => set.knock(token)))
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
  expect(set.asked('/jwks')).toBe(1)
  set.issuer.fail(true)
  expect((await set.knock(token)).status).toBe(200)
})

test('an authorization server that is away: what is known goes on, a strange token is neither good nor bad', async () => {
  await using set = await both()
  set.issuer.fail(true)
  const token = await set.issuer.sign({
    iss: set.issuer.issuer,
    aud: AUDIENCE,
    sub: 'x',
    exp: Date.now() / 1_000 + 600,
    scope: 'mcp:connect',
  })
  const reply = await set.knock(token)
  expect([reply.status, reply.headers['retry-after'], reply.headers['www-authenticate']]).toEqual([503, '2', undefined])
  expect(set.gateway.log.entries.some(({ text }) => text === 'a token could not be verified')).toBe(true)
  expect(JSON.stringify(set.gateway.log.entries)).not.toContain(token)
})

test('an authorization server that is away: a token by a key that is not known is answered 503, not 401', async () => {
  await using set = await both()
  expect((await set.knock(await set.issuer.machineToken({ resource: AUDIENCE }))).status).toBe(200)
  set.issuer.rotate()
  set.issuer.fail(true)
  const claims = { iss: set.issuer.issuer, aud: AUDIENCE, sub: 'x', exp: Date.now() / 1_000 + 600, scope: 'mcp:connect' }
  const reply = await set.knock(await set.issuer.sign(claims))
  expect([reply.status, reply.headers['retry-after'], reply.headers['www-authenticate']]).toEqual([503, '2', undefined])
})

test('F-17 keys that were rotated are found, without a restart', async () => {
  await using set = await both()
  set.issuer.rotate()
  expect((await set.knock(await set.issuer.machineToken({ resource: AUDIENCE }))).status).toBe(200)
})

test('opaque tokens are looked up, with the claims that the server tells', async () => {
  const introspection = { endpoint: undefined, clientId: MACHINE.id, clientSecret: MACHINE.secret }
  await using set = await both({ introspection }, 'opaque')
  const { access_token: token } = await set.issuer.userToken('bob', { resource: AUDIENCE })
  expect(token.split('.')).toHaveLength(1)
  expect((await set.knock(token)).status).toBe(200)
  expect((await set.knock(token)).status).toBe(200)
  expect(set.asked('/token/introspection')).toBe(1)
  expect((await set.knock(`${token}x`)).status).toBe(401)
})

test('T-39 a token that its issuer signed that stands for no caller: the operator is told once how to mend it, the host is not', async () => {
  await using set = await both()
  const claims = { iss: set.issuer.issuer, aud: AUDIENCE, exp: Date.now() / 1_000 + 600, scope: 'mcp:connect', azp: 'app' }
  for (const user of ['alice', 'bob']) {
    const reply = await set.knock(await set.issuer.sign({ ...claims, preferred_username: user }))
    expect([reply.status, await reply.body]).toEqual([401, expect.not.stringContaining('sub')])
  }
  const warned = set.gateway.log.entries.filter(({ level }) => level === 'warn')
  expect(warned.map(({ facts }) => facts)).toEqual([
    expect.objectContaining({ claim: 'sub', remedy: expect.stringContaining('auth.oauth.subject') }),
  ])
})

test('T-39 the claim that the configuration names tells callers apart', async () => {
  await using set = await both({ subject: 'oid' })
  const claims = { iss: set.issuer.issuer, aud: AUDIENCE, exp: Date.now() / 1_000 + 600, scope: 'mcp:connect', sub: 'same' }
  const session = (await set.knock(await set.issuer.sign({ ...claims, oid: 'alice' }))).headers['mcp-session-id']
  const list = async (oid: string) =>
    (
      await send(set.gateway.url, {
        headers: { ...bearer(await set.issuer.sign({ ...claims, oid, jti: oid })), 'mcp-session-id': String(session) },
        body: request(2, 'tools/list', {}),
      })
    ).status
  expect([await list('bob'), await list('alice')]).toEqual([404, 200])
  expect((await set.knock(await set.issuer.sign(claims))).status).toBe(401)
})

test('hosts of 2025-03-26 find the authorization server at our origin, where that is wanted', async () => {
  await using set = await both({ relaysMetadata: true })
  const own = await (await fetch(`${set.issuer.issuer}/.well-known/openid-configuration`)).text()
  const reply = await set.get('/.well-known/oauth-authorization-server')
  expect(JSON.parse(await reply.body)).toEqual(JSON.parse(own))
  set.issuer.fail(true)
  expect((await set.get('/.well-known/oauth-authorization-server')).status).toBe(200)
})

describe('scopes', () => {
  const SCOPES = ['mcp:connect', 'mcp:b', 'mcp:b:write']

  test('B238 without those that are needed to come in: 403 with all of them, on every way in', async () => {
    await using set = await both({ scopes: SCOPES })
    const token = await set.issuer.machineToken({ resource: ORIGIN, scope: 'mcp:b' })
    for (const [path, scope] of [
      ['/mcp', 'mcp:connect'],
      ['/servers/a/mcp', 'mcp:connect'],
      ['/servers/b/mcp', 'mcp:connect mcp:b'],
    ] as const) {
      const reply = await set.knock(token, path)
      expect([reply.status, reply.headers['www-authenticate']]).toEqual([
        403,
        `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${ORIGIN}/.well-known/oauth-protected-resource${path}"`,
      ])
    }
    const headers = { ...bearer(token), accept: 'text/event-stream' }
    expect((await send(new URL('/sse', set.gateway.url), { method: 'GET', headers })).status).toBe(403)
  })

  test.each([200, 0])(
    'B238 a call beyond them: 403 before a stream begins, also where streams begin after %i ms',
    async (afterMs) => {
      await using set = await both({ scopes: SCOPES })
      const { configuration } = set.gateway.running
      const host = { ...configuration.host, streamAfterMs: afterMs, streamAfterLegacyMs: afterMs }
      await set.gateway.running.apply({ ...configuration, host }, new Set())
      const { access_token: token } = await set.issuer.userToken('alice', { resource: AUDIENCE })
      const challenge = `Bearer error="insufficient_scope", scope="mcp:connect mcp:b mcp:b:write", resource_metadata="${ORIGIN}/.well-known/oauth-protected-resource/mcp"`
      await using legacy = await connectHttp(set.gateway, { token: () => token, deaf: true, capabilities: { roots: {} } })
      const params = { name: 'b__other', arguments: {} }
      const old = await send(set.gateway.url, {
        headers: { ...bearer(token), ...legacy.headers() },
        body: request(5, 'tools/call', params),
      })
      expect([old.status, old.headers['www-authenticate']]).toEqual([403, challenge])
      const body = {
        jsonrpc: '2.0',
        id: 5,
        method: 'tools/call',
        params: { ...params, _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } },
      } as const
      const modern = await send(set.gateway.url, { headers: { ...bearer(token), ...mirrors(body) }, body: JSON.stringify(body) })
      expect([modern.status, modern.headers['www-authenticate']]).toEqual([403, challenge])
      expect(set.gateway.fake('b').all('tools/call')).toEqual([])
      expect(await legacy.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }] })
      await expect(legacy.call('tools/call', { name: 'b__nothing' })).rejects.toMatchObject({ code: -32602, status: 200 })
    },
  )

  test('B238 a call beyond them: 403 with those that the token has, too, of which the next token would lack the others', async () => {
    await using set = await both({ scopes: [...SCOPES, 'mcp:a'] })
    const scope = 'mcp:connect mcp:a'
    const { access_token: token } = await set.issuer.userToken('alice', { resource: AUDIENCE, scope })
    await using host = await connectHttp(set.gateway, { token: () => token, deaf: true })
    const body = request(5, 'tools/call', { name: 'b__other', arguments: {} })
    const reply = await send(set.gateway.url, { headers: { ...bearer(token), ...host.headers() }, body })
    expect([reply.status, reply.headers['www-authenticate']]).toEqual([
      403,
      expect.stringContaining('scope="mcp:connect mcp:a mcp:b mcp:b:write"'),
    ])
  })

  test('a token with more scopes shows more within the same session, which is told so', async () => {
    await using set = await both({ scopes: SCOPES })
    const few = (await set.issuer.userToken('alice', { resource: AUDIENCE })).access_token
    const many = (await set.issuer.userToken('alice', { resource: AUDIENCE, scope: SCOPES.join(' ') })).access_token
    let token = few
    await using host = await connectHttp(set.gateway, { token: () => token })
    const names = async () => ((await host.call('tools/list'))['tools'] as { name: string }[]).map(({ name }) => name)
    expect(await names()).toEqual(['a__echo'])
    token = many
    expect(await names()).toEqual(['a__echo', 'b__other'])
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    token = few
    expect(await names()).toEqual(['a__echo'])
    await expect(host.call('tools/call', { name: 'b__other' })).rejects.toMatchObject({ status: 403 })
  })

  test('a token with the scope of one server gets at its endpoint, and who may write may read', async () => {
    await using set = await both({ scopes: SCOPES })
    const statusOf = async (scope: string) =>
      (await set.knock(await set.issuer.machineToken({ resource: ORIGIN, scope }), '/servers/b/mcp')).status
    expect(await Promise.all(['mcp:connect', 'mcp:connect mcp:b', 'mcp:connect mcp:b:write'].map(statusOf))).toEqual([
      403, 200, 200,
    ])
  })
})

test('T-03 claims choose toolsets; a caller that no rule knows is refused with a reason for it, and the log names its claims', async () => {
  await using issuer = await startAuthorizationServer()
  const auth = {
    ...oauthOf(issuer, AUDIENCE),
    map: [{ claim: 'groups', issuer: undefined, has: 'dev', is: undefined, toolsets: ['build'] }],
  }
  await using gateway = await start(auth)
  const of = async (user: 'alice' | 'bob', path: string): Promise<unknown> => {
    const { access_token: token } = await issuer.userToken(user, { resource: AUDIENCE })
    const reply = await send(new URL(path, gateway.url), { headers: bearer(token), body: INITIALIZE })
    return [reply.status, await reply.body]
  }
  for (const path of ['/mcp', '/mcp/build'])
    expect(await of('bob', path)).toEqual([403, expect.stringContaining('no rule of auth.map')])
  const warned = gateway.log.entries.filter(({ level }) => level === 'warn')
  expect(warned.map(({ facts }) => facts)).toEqual([
    expect.objectContaining({ claim: 'groups', got: 'a list of 1', remedy: expect.stringMatching(/the claims .*groups/) }),
  ])
  expect(JSON.stringify(warned)).not.toMatch(/bob|sre/)
  expect(await of('alice', '/mcp/random')).toEqual([404, ''])
})
