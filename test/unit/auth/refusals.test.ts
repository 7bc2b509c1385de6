/** What the operator reads of a refused token: the claim, what was expected, what it holds, what to change (T-39, B234). */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import type { ClaimRule, IssuerOptions, ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import type { TokenRefusal } from '../../../src/auth/token-refusal.ts'
import { ResourceServer } from '../../../src/auth/inbound/verify/resource-server.ts'
import { TokenLog } from '../../../src/host/http/guard/token-log.ts'
import type { Fetch } from '../../../src/auth/fetch/safe-fetch.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.test/realms/one'
const OTHER = 'https://second.test'
const ORIGIN = 'https://gw.test'
const WALL_MS = 1_800_000_000_000
const NOW = WALL_MS / 1_000
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' }] })
const good = { iss: ISSUER, aud: ORIGIN, sub: 'secret-name', exp: NOW + 600, scope: 'mcp:connect' }

const sign = (claims: object, header: object = {}): Promise<string> =>
  new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'k', ...header }).sign(privateKey)

const issuerOf = (issuer: string, facts: Partial<IssuerOptions> = {}): IssuerOptions => ({
  issuer,
  subject: 'sub',
  jwksUri: `${issuer}/keys`,
  introspection: undefined,
  introspectsAll: false,
  allowsHttp: false,
  client: undefined,
  ...facts,
})

/** What introspection answers, by the issuer's origin. */
type Answers = Readonly<Record<string, object | number>>

const set = (facts: Partial<ResourceServerOptions> = {}, map: readonly ClaimRule[] = [], answers: Answers = {}) => {
  const refusals: TokenRefusal[] = []
  const looked: string[] = []
  const fetch: Fetch = ({ url }) => {
    if (url.endsWith('/keys')) return Promise.resolve({ status: 200, text: jwks })
    looked.push(url)
    const answer = answers[new URL(url).origin] ?? 500
    return Promise.resolve(
      typeof answer === 'number' ? { status: answer, text: '' } : { status: 200, text: JSON.stringify(answer) },
    )
  }
  const { oauth } = oauthOf({ issuer: ISSUER }, `${ORIGIN}/mcp`, { jwksUri: `${ISSUER}/keys`, ...facts })
  const clock = { wallMs: () => WALL_MS, monotonicMs: () => 0 }
  const server = new ResourceServer(oauth!, map, fetch, clock, (why) => refusals.push(why))
  return { server, refusals, looked }
}

describe('one refusal says', () => {
  test.each<[string, () => Promise<string>, Partial<Record<keyof TokenRefusal, unknown>>]>([
    [
      'that Keycloak puts "account" into every token',
      () => sign({ aud: 'account' }),
      {
        claim: 'aud',
        got: '"account"',
        expected: expect.stringContaining(ORIGIN),
        remedy: expect.stringContaining('Audience mapper'),
      },
    ],
    [
      'that the audience is another',
      () => sign({ aud: ['https://graph.test', 7] }),
      { claim: 'aud', got: '["https://graph.test",7]', remedy: expect.stringContaining('auth.oauth.audience') },
    ],
    ['that there is no audience', () => sign({ aud: undefined }), { claim: 'aud', got: 'missing' }],
    [
      'that the issuer is another',
      () => sign({ iss: 'https://evil.test' }),
      { claim: 'iss', got: '"https://evil.test"', expected: ISSUER, remedy: expect.stringContaining('auth.oauth.issuers') },
    ],
    [
      'that the issuer ends with a slash',
      () => sign({ iss: `${ISSUER}/` }),
      { claim: 'iss', got: `"${ISSUER}/"`, expected: ISSUER, remedy: expect.stringContaining('exactly') },
    ],
    [
      'that Entra ID issues tokens of version 1',
      () => sign({ iss: 'https://sts.windows.net/72f988bf/' }),
      { claim: 'iss', remedy: expect.stringContaining('requestedAccessTokenVersion') },
    ],
    ['that it has ended', () => sign({ exp: NOW - 61 }), { cause: 'end', claim: 'exp', got: '2027-01-15T07:58:59.000Z' }],
    ['that it never ends', () => sign({ exp: undefined }), { cause: 'end', claim: 'exp', got: 'missing' }],
    ['that its end is a text', () => sign({ exp: 'soon' as never }), { cause: 'end', got: 'a text' }],
    [
      'that it has not begun',
      () => sign({ nbf: NOW + 61 }),
      { cause: 'beginning', claim: 'nbf', got: '2027-01-15T08:01:01.000Z' },
    ],
    ['that its beginning is a text', () => sign({ nbf: 'soon' as never }), { cause: 'beginning', got: 'a text' }],
    ['that its key is not published', () => sign({}, { kid: 'other' }), { cause: 'key', claim: 'kid', got: '"other"' }],
    ['that it is an ID token', () => sign({}, { typ: 'logout+jwt' }), { cause: 'type', claim: 'typ', got: '"logout+jwt"' }],
    ['that it is bound to a key', () => sign({ cnf: { jkt: 'x' } }), { cause: 'binding', claim: 'cnf' }],
    ['that it names no caller', () => sign({ sub: undefined }), { cause: 'caller', claim: 'sub' }],
    ['that its caller is a number', () => sign({ sub: 7 as never }), { cause: 'caller', claim: 'sub', got: 'a number' }],
    ['that it is not a JWT', async () => 'AAECAwQFBgc', { cause: 'form', got: 'an opaque text' }],
    ['that the longest one is not a JWT', async () => 'x'.repeat(65_536), { cause: 'form', got: 'an opaque text' }],
    [
      'that it is too long',
      async () => 'x'.repeat(65_537),
      { cause: 'form', expected: 'at most 65536 characters (listen.limits.max_header)' },
    ],
  ])('%s', async (_name, token, expected) => {
    const { server, refusals } = set()
    const text = await token()
    expect(await server.verify(text)).toBeUndefined()
    expect(refusals).toEqual([expect.objectContaining(expected)])
    expect(JSON.stringify(refusals)).not.toContain(text)
    expect(JSON.stringify(refusals)).not.toContain('secret-name')
  })

  test.each([
    [{}, {}, [], 'no typ', 'no nbf', 'any'],
    [{ nbf: NOW, groups: ['sre'] }, { typ: 'at+JWT' }, ['ops', 'dev'], 'at+JWT', 'nbf 2027-01-15T08:00:00.000Z', 'ops, dev'],
  ])('what each check found, of a token that is good: %j %j', async (claims, header, toolsets, type, beginning, given) => {
    const rule = { claim: 'groups', issuer: undefined, has: 'sre', is: undefined, toolsets }
    const { checks } = await set({}, toolsets.length === 0 ? [] : [rule]).server.examine(await sign(claims, header))
    expect(checks.map(({ cause, found }) => [cause, found])).toEqual([
      ['issuer', ISSUER],
      ['algorithm', 'ES256'],
      ['type', type],
      ['signature', 'ES256 by key "k"'],
      ['end', 'exp 2027-01-15T08:10:00.000Z'],
      ['beginning', beginning],
      ['binding', 'no cnf'],
      ['audience', `aud "${ORIGIN}"`],
      ['caller', JSON.stringify([ISSUER, 'sub', 'secret-name'])],
      ['toolsets', given],
    ])
  })

  test('every check that failed, not the first alone', async () => {
    const { checks } = await set().server.examine(await sign({ aud: 'account', exp: NOW - 100 }))
    expect(checks.filter(({ refusal }) => refusal !== undefined).map(({ cause }) => cause)).toEqual(['end', 'audience'])
  })

  test('no more than a part of what a stranger writes', async () => {
    const { server, refusals } = set()
    await server.verify(await sign({ aud: 'x'.repeat(10_000) }))
    expect(JSON.stringify(refusals).length).toBeLessThan(2_000)
  })
})

describe('audiences', () => {
  test.each([
    ['api://trunkline', true],
    ['0b7d2f0e-client', true],
    ['api://other', false],
  ])('B234 a token for %s is valid at every endpoint where the configuration names it: %s', async (aud, isGood) => {
    const { server } = set({ otherAudiences: ['api://trunkline', '0b7d2f0e-client'] })
    expect((await server.verify(await sign({ aud })))?.audiences).toEqual(isGood ? [ORIGIN] : undefined)
  })
})

describe('several issuers', () => {
  const both = { otherIssuers: [issuerOf(OTHER, { subject: ['who', 'is.it'] })] }

  test('each has its own callers, by the claim that is configured for it', async () => {
    const { server } = set(both)
    const first = await server.verify(await sign({}))
    const second = await server.verify(await sign({ iss: OTHER, who: { 'is.it': 'alice' } }))
    expect([first, second].map((admitted) => admitted?.identity.principal)).toEqual([
      `["${ISSUER}","sub","secret-name"]`,
      `["${OTHER}","claim",["who","is.it"],"alice"]`,
    ])
  })

  test('a rule of auth.map may hold for one of them alone', async () => {
    const rule: ClaimRule = { claim: 'groups', issuer: OTHER, has: 'dev', is: undefined, toolsets: ['build'] }
    const { server } = set({ otherIssuers: [issuerOf(OTHER)] }, [rule])
    const [own, other] = await Promise.all([sign({ groups: ['dev'] }), sign({ iss: OTHER, groups: ['dev'] })])
    expect((await server.verify(own))?.unmapped).toMatchObject({ claim: 'groups' })
    expect((await server.verify(other))?.identity.toolsets).toEqual(['build'])
  })

  const looking = (endpoint: string) => ({ introspection: { endpoint, clientId: 'us', clientSecret: 'hush' } })
  const FIRST_LOOK = 'https://idp.test/look'
  const SECOND_LOOK = 'https://second.test/look'
  const active = { active: true, aud: ORIGIN, sub: 'alice', exp: NOW + 600 }

  test('an opaque token is good where one of them says so', async () => {
    const facts = { ...looking(FIRST_LOOK), otherIssuers: [issuerOf(OTHER, looking(SECOND_LOOK))] }
    const answers = { 'https://idp.test': { active: false }, 'https://second.test': active }
    const { server, looked } = set(facts, [], answers)
    expect((await server.verify('opaque'))?.identity.principal).toBe(`["${OTHER}","sub","alice"]`)
    expect(looked).toEqual([FIRST_LOOK, SECOND_LOOK])
    await expect(set(facts, [], { 'https://idp.test': { active: false } }).server.verify('opaque')).rejects.toThrow(
      'answered HTTP 500',
    )
  })

  test('with introspect: always a token that looks like a JWT is looked up, and its own claims count for nothing', async () => {
    const facts = { ...looking(FIRST_LOOK), introspectsAll: true }
    const light = await sign({ aud: undefined, sub: 'mallory' })
    const { server, looked } = set(facts, [], { 'https://idp.test': active })
    expect((await server.verify(light))?.identity.principal).toBe(`["${ISSUER}","sub","alice"]`)
    expect(looked).toEqual([FIRST_LOOK])
    const inactive = set(facts, [], { 'https://idp.test': { active: false } })
    expect(await inactive.server.verify(await sign({}))).toBeUndefined()
    expect(inactive.refusals).toEqual([expect.objectContaining({ cause: 'activity', got: 'false' })])
  })
})

describe('the log', () => {
  const refusal = (cause: TokenRefusal['cause']): TokenRefusal => ({ cause, claim: 'aud', expected: 'x', got: 'y', remedy: 'z' })

  test('has one line per cause and minute, which counts those in between', () => {
    const lines: unknown[] = []
    const time = { ms: 0 }
    const note = (level: string) => (facts: object) => void lines.push([level, facts])
    const log = { debug: () => undefined, info: note('info'), warn: note('warn'), error: note('error') }
    const tokens = new TokenLog(log, () => time.ms)
    const facts = { claim: 'aud', expected: 'x', got: 'y', remedy: 'z' }
    for (let at = 0; at < 1_000; at++) tokens.refused(refusal('audience'))
    tokens.refused(refusal('end'))
    expect(lines).toEqual([
      ['warn', facts],
      ['info', facts],
    ])
    time.ms = 60_000
    tokens.refused(refusal('audience'))
    expect(lines.at(-1)).toEqual(['warn', { ...facts, more: 999 }])
  })
})
