/** A caller's own token is exchanged for one of the server, by the authorization server it is from (RFC 8693; T-07, B235, B250). */
import type { JWTPayload } from 'jose'
import { expect, test } from 'vitest'
import type { CredentialOptions } from '../../../src/auth/credential-options.ts'
import type { BackoffOptions } from '../../../src/downstream/pacing/backoff.ts'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { bearer, oauthOf } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import { request } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'

const AUDIENCE = 'http://mcp.example.com/mcp'

test('each caller reaches the server by a token of its own, and its token for the gateway never does', async () => {
  await using inbound = await startAuthorizationServer()
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  const sent: string[] = []
  const guard = server.intercept
  server.intercept = (request, response, body) => {
    sent.push(JSON.stringify(request.headers) + body)
    return guard(request, response, body)
  }
  const credential: CredentialOptions = {
    mode: 'exchange',
    issuer: issuer.url,
    client: { id: 'trunkline', secret: 'secret', privateKey: undefined, algorithm: '' },
    audience: 'orders',
    scopes: ['orders.read'],
    isPrivate: false,
  }
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential } },
    host: { auth: oauthOf(inbound, AUDIENCE) },
  })
  const tokens = await Promise.all(
    (['alice', 'bob'] as const).map((user) => inbound.userToken(user, { resource: AUDIENCE, scope: 'mcp:connect' })),
  )
  for (const { access_token: token } of tokens) {
    await using host = await modernHttp.connect(gateway, { token: () => token })
    const { tools } = await host.call('tools/list')
    expect(tools).toMatchObject([{ name: 'a__echo' }])
    expect(await host.call('tools/call', { name: 'a__echo', arguments: {} })).toMatchObject({ resultType: 'complete' })
  }
  expect(issuer.exchanges.map((params) => params.get('subject_token'))).toEqual(tokens.map((reply) => reply.access_token))
  expect(Object.fromEntries(issuer.exchanges[0]!)).toMatchObject({ audience: 'orders', scope: 'orders.read' })
  for (const { access_token: token } of tokens) expect(sent.join()).not.toContain(token)
  const used = sent.flatMap((text) => /"authorization":"Bearer (access-[^"]+)"/.exec(text)?.[1] ?? [])
  expect(new Set(used).size).toBe(2)
})

const EXCHANGE: Omit<Extract<CredentialOptions, { mode: 'exchange' }>, 'issuer'> = {
  mode: 'exchange',
  client: { id: 'trunkline', secret: 'secret', privateKey: undefined, algorithm: '' },
  audience: 'orders',
  scopes: undefined,
  isPrivate: false,
}

/** A gateway whose server `a` takes tokens of `issuer` by exchange; `b` takes anybody. */
const exchanging = async (backoff: Partial<BackoffOptions> = {}) => {
  const inbound = await startAuthorizationServer()
  const issuer = await FakeIssuer.start()
  const server = await FakeDownstream.start(fake.offering('echo'))
  protect(server, issuer)
  const other = await FakeDownstream.start(fake.offering('other'))
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([
      ['a', server],
      ['b', other],
    ]),
    options: { a: { credential: { ...EXCHANGE, issuer: issuer.url }, timeouts: { connectTimeoutMs: 2_000 } } },
    host: { auth: oauthOf(inbound, AUDIENCE) },
    backoff,
  })
  const tokenOf = (facts: JWTPayload = {}): Promise<string> =>
    inbound.sign({
      iss: inbound.issuer,
      aud: AUDIENCE,
      sub: 'alice',
      scope: 'mcp:connect',
      exp: Math.floor(Date.now() / 1_000) + 600,
      ...facts,
    })
  return {
    issuer,
    gateway,
    tokenOf,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await Promise.all([server, other, issuer, inbound].map((part) => part[Symbol.asyncDispose]()))
    },
  }
}

const CALL = { name: 'a__echo', arguments: {} }

test('F-17 a caller whose token was refused is let in at once with a fresh one, however long the wait was to be', async () => {
  // Neither time nor a call brings another attempt within an hour.
  await using stage = await exchanging({ firstMs: 3_600_000, maxMs: 3_600_000, minRetryMs: 3_600_000 })
  const [bad, good] = await Promise.all([stage.tokenOf({ jti: 'bad' }), stage.tokenOf({ jti: 'good' })])
  stage.issuer.refuses = (params) => params.get('subject_token') === bad
  let token = bad
  await using host = await modernHttp.connect(stage.gateway, { token: () => token })
  const failed = (): Promise<unknown> =>
    host.call('tools/call', CALL).then(
      ({ isError }) => isError,
      () => true,
    )
  expect([await failed(), await failed()]).toEqual([true, true])
  const refused = stage.issuer.exchanges.length
  token = good
  expect(await host.call('tools/call', CALL)).not.toHaveProperty('isError', true)
  expect(stage.issuer.exchanges.slice(refused).map((params) => params.get('subject_token'))).toEqual([good])
})

test('F-27 in the minute after its end a token that is to be exchanged is answered 401, so that its host gets another', async () => {
  await using stage = await exchanging()
  const knock = async (facts: JWTPayload) =>
    send(stage.gateway.url, {
      headers: bearer(await stage.tokenOf(facts)),
      body: request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }),
    })
  const ended = await knock({ exp: Math.floor(Date.now() / 1_000) - 10 })
  expect([ended.status, ended.headers['www-authenticate']]).toEqual([401, expect.stringContaining('error="invalid_token"')])
  expect((await knock({})).status).toBe(200)
  expect(stage.issuer.exchanges).toEqual([])
})

test('B250 two hosts of one caller that call by turns, each with its own token, exchange each once; a revoked one is exchanged again', async () => {
  await using stage = await exchanging()
  const tokens = await Promise.all([stage.tokenOf({ jti: 'one' }), stage.tokenOf({ jti: 'two' })])
  const [one, two] = await Promise.all(tokens.map((token) => modernHttp.connect(stage.gateway, { token: () => token })))
  const exchanged = (): unknown[] => stage.issuer.exchanges.map((params) => params.get('subject_token'))
  for (let turn = 0; turn < 5; turn++)
    for (const host of [one, two]) expect(await host!.call('tools/call', CALL)).not.toHaveProperty('isError', true)
  expect(exchanged().sort()).toEqual([...tokens].sort())
  stage.issuer.expire()
  for (const host of [one, two]) expect(await host!.call('tools/call', CALL)).not.toHaveProperty('isError', true)
  expect(exchanged().length).toBeLessThanOrEqual(4)
  for (const host of [one, two]) await host![Symbol.asyncDispose]()
})

test('F-17 a caller whose token the issuer does not exchange gets 401, so that its host signs in again; a second refused token does not, since that would not end', async () => {
  await using stage = await exchanging()
  const [first, second] = await Promise.all([stage.tokenOf({ jti: 'first' }), stage.tokenOf({ jti: 'second' })])
  stage.issuer.refuses = () => true
  stage.issuer.refusal = { error: 'invalid_grant', error_description: `Client not allowed to exchange ${first}` }
  const knock = (token: string) =>
    send(stage.gateway.url, {
      headers: bearer(token),
      body: request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }),
    })
  const failing = async (token: string): Promise<void> => {
    await using host = await modernHttp.connect(stage.gateway, { token: () => token })
    const end = await host.call('tools/call', CALL).catch(() => ({ isError: true }))
    expect(end).toMatchObject({ isError: true })
  }
  await failing(first)
  const sent = await knock(first)
  expect([sent.status, sent.headers['www-authenticate']]).toEqual([401, expect.stringContaining('error="invalid_token"')])
  // The host has signed in again, and the issuer still refuses: other servers must stay usable.
  await failing(second)
  expect((await knock(second)).status).toBe(200)
  await using host = await modernHttp.connect(stage.gateway, { token: () => second })
  expect(await host.call('tools/call', { name: 'b__other', arguments: {} })).not.toHaveProperty('isError', true)
  const log = JSON.stringify(stage.gateway.log.entries)
  expect(log).toContain('Client not allowed to exchange …')
  for (const token of [first, second]) expect(log).not.toContain(token)
})

test('a reload decides from then on whether tokens are kept and judged for an exchange', async () => {
  await using stage = await exchanging()
  const { running } = stage.gateway
  const exchanged = running.configuration
  const without = { ...exchanged, servers: exchanged.servers.map((server) => ({ ...server, credential: undefined })) }
  const ended = bearer(await stage.tokenOf({ exp: Math.floor(Date.now() / 1_000) - 10 }))
  const knock = async (): Promise<number> => {
    const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
    return (await send(stage.gateway.url, { headers: ended, body })).status
  }
  expect(await knock()).toBe(401)
  await running.apply(without, new Set(['a']))
  expect(await knock()).toBe(200)
  await running.apply(exchanged, new Set(['a']))
  expect(await knock()).toBe(401)
  const token = await stage.tokenOf()
  await using host = await modernHttp.connect(stage.gateway, { token: () => token })
  expect(await host.call('tools/call', CALL)).not.toHaveProperty('isError', true)
  expect(stage.issuer.exchanges.map((params) => params.get('subject_token'))).toEqual([token])
})
