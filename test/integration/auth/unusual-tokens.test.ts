/**
 * Tokens as issuers really make them and nothing is prepared for: with thousands of groups, too long for a header, with claims of another
 * type. Each is signed by the issuer and comes over HTTP; each gets a clear refusal or is admitted, and opens nothing else.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JWTPayload } from 'jose'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import type { AuthorizationServer } from '../../support/authorization-server.ts'
import { bearer, oauthOf } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { request } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { toolsetOf } from '../../support/toolsets.ts'

const AUDIENCE = 'https://mcp.example.com/mcp'
const INITIALIZE = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
const NOW = Math.floor(Date.now() / 1_000)

let issuer: AuthorizationServer
let gateway: TestGateway
beforeAll(async () => {
  issuer = await startAuthorizationServer()
  const auth = oauthOf(issuer, AUDIENCE, { keepsClaims: true })
  const map = [{ claim: 'groups', issuer: undefined, has: 'dev', is: undefined, toolsets: ['build'] }]
  const quadratic = 'caller.claims.groups.exists(g, caller.claims.groups.exists(h, h == g + "z"))'
  gateway = await startGateway({
    servers: { a: fake.offering('echo', 'slow') },
    host: { auth: { ...auth, map } },
    hostLimits: { maxHeaderBytes: 256 * 1024 },
    gateway: { toolsets: [toolsetOf({ servers: ['a'] }, { name: 'build' })] },
    policy: {
      rules: [
        { id: 'policy.rules[0]', when: `call.original == "slow" && ${quadratic}`, decision: 'allow', reason: undefined },
        { id: 'policy.rules[1]', when: '"dev" in caller.claims.groups', decision: 'allow', reason: undefined },
      ],
    },
  })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const tokenOf = (claims: JWTPayload): Promise<string> =>
  issuer.sign({ iss: issuer.issuer, aud: AUDIENCE, sub: 'alice', exp: NOW + 600, scope: 'mcp:connect', ...claims })
const groupsOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `g${at}`)
const knock = (token: string, { url }: Pick<TestGateway, 'url'> = gateway) =>
  send(url, { headers: bearer(token), body: INITIALIZE })
const refusals = () => gateway.log.entries.flatMap(({ text, facts }) => (text === 'a token was rejected' ? [facts] : []))

describe('T-22 a token that is too large', () => {
  test('for the headers of a request is 431 with the option that admits it, and the next request is served', async () => {
    await using usual = await startGateway({ servers: {}, host: { auth: oauthOf(issuer, AUDIENCE) } })
    const token = await tokenOf({ groups: groupsOf(10_000) })
    expect(token.length).toBeGreaterThan(65_536)
    const reply = await knock(token, usual)
    expect([reply.status, await reply.body]).toEqual([431, expect.stringContaining('listen.limits.max_header (16384 bytes)')])
    expect((await knock(await tokenOf({}), usual)).status).toBe(200)
  })

  test('for a token, where the headers have room: 10,000 groups are 401, and the log says what to leave out', async () => {
    gateway.log.clear()
    const token = await tokenOf({ groups: ['dev', ...groupsOf(10_000)] })
    expect((await knock(token)).status).toBe(401)
    expect(refusals()).toMatchObject([
      {
        claim: 'token',
        expected: 'at most 65536 characters (listen.limits.max_header)',
        remedy: expect.stringContaining('long lists of groups'),
      },
    ])
    expect(JSON.stringify(gateway.log.entries)).not.toContain(token)
  })
})

test('a token of 4,000 groups is read; an expression that is quadratic in them denies in bounded time, and others go on', async () => {
  const token = await tokenOf({ groups: [...groupsOf(4_000), 'dev'] })
  expect(token.length).toBeGreaterThan(32_768)
  await using host = await modernHttp.connect(gateway, { token: () => token })
  expect(await host.call('tools/call', { name: 'a__echo', arguments: {} })).not.toHaveProperty('isError')
  expect(await host.call('tools/call', { name: 'a__slow', arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('denied by policy') as string }],
  })
  const sent = gateway.fake('a').all('tools/call')
  expect(sent.map(({ params }) => params['name'])).toEqual(['echo'])
})

describe('a claim of another type', () => {
  const deep: unknown = Array.from({ length: 60 }).reduce<unknown>((inner) => [inner], 'dev')

  test.each<[name: string, groups: unknown, got: string]>([
    ['a number', 7, 'a number'],
    ['an object', { dev: true }, 'an object'],
    ['null', null, 'null'],
    ['true', true, 'a boolean'],
    ['lists in lists', deep, 'a list of 1'],
    ['objects in a list', [{ name: 'dev' }], 'a list of 1'],
    ['an empty text', '', 'an empty text'],
    ['absent', undefined, 'missing'],
  ])('T-03 groups that are %s: 403 with a reason, and the log names the kind', async (_name, groups, got) => {
    // One line per cause and minute: a gateway of its own for each would say the same.
    const reply = await knock(await tokenOf({ groups }))
    expect([reply.status, await reply.body]).toEqual([403, expect.stringContaining('no rule of auth.map names it')])
    const lines = gateway.log.entries.filter(({ facts }) => facts['claim'] === 'groups' && facts['got'] === got)
    expect(lines).not.toEqual([])
  })

  test.each<[name: string, claims: JWTPayload, status: number]>([
    ['scope as a number', { scope: 7 }, 403],
    ['scope as a list', { scope: ['mcp:connect'] }, 200],
    ['scope as an object', { scope: { 'mcp:connect': true } }, 403],
    ['aud as an object', { aud: { [AUDIENCE]: true } as never }, 401],
    ['aud as a number', { aud: 7 as never }, 401],
    ['exp as a list', { exp: [NOW + 600] as never }, 401],
    ['exp beyond all dates', { exp: 1e300 }, 200],
    ['sub as a list', { sub: ['alice'] as never }, 401],
    ['sub as null', { sub: null as never }, 401],
    ['nbf as a text', { nbf: 'now' as never }, 401],
    ['cnf as null', { cnf: null }, 401],
  ])('B234 %s', async (_name, claims, status) => {
    expect((await knock(await tokenOf({ groups: ['dev'], ...claims }))).status).toBe(status)
  })
})
