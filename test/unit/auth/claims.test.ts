import { describe, expect, test } from 'vitest'
import { isForResource, judgeClaims, SKEW_MS } from '../../../src/auth/inbound/verify/claims.ts'
import type { ClaimReading } from '../../../src/auth/inbound/verify/claims.ts'
import type { ClaimRule } from '../../../src/auth/inbound/verify/inbound-options.ts'

const ORIGIN = 'https://gw.test'
const good = { sub: 'alice', exp: 1_000, aud: `${ORIGIN}/mcp` }
const READING: ClaimReading = {
  issuer: { issuer: 'https://idp.test', subject: 'sub' },
  resource: { audience: `${ORIGIN}/mcp`, otherAudiences: [] },
  map: [],
  source: 'jwt',
  nowMs: 0,
}
const admit = (claims: object, map: readonly ClaimRule[] = []) =>
  judgeClaims({ ...good, ...claims }, { ...READING, map }).admitted
const rule = (facts: Partial<ClaimRule>, ...toolsets: string[]): ClaimRule => ({
  claim: 'groups',
  issuer: undefined,
  has: undefined,
  is: undefined,
  toolsets,
  ...facts,
})

describe('who it is', () => {
  test('good until its end, and a minute longer', () => {
    expect(admit({})?.untilMs).toBe(1_000_000 + SKEW_MS)
    const isGoodAt = (nowMs: number): boolean => judgeClaims(good, { ...READING, nowMs }).admitted !== undefined
    expect([1_000_000, 1_000_000 + SKEW_MS - 1, 1_000_000 + SKEW_MS].map(isGoodAt)).toEqual([true, true, false])
  })
  test('good from its beginning on, and a minute earlier; a beginning that is no time is refused', () => {
    const beginning = (nbf: unknown, nowMs: number): boolean =>
      judgeClaims({ ...good, exp: 9_000, nbf }, { ...READING, nowMs }).admitted !== undefined
    const early = 1_000_000 - SKEW_MS
    expect([beginning(1_000, early - 1), beginning(1_000, early), beginning(1_000, 1_000_000)]).toEqual([false, true, true])
    expect([beginning('0', 0), beginning(null, 0)]).toEqual([false, false])
  })
  test('T-07 refused where it is bound to a key in whatever form', () => {
    for (const cnf of [{ jkt: 'x' }, {}, 'x', 0, false, null]) expect(admit({ cnf })).toBeUndefined()
  })
  test('its claims are kept only where rules read them', () => {
    const kept = (keepsClaims: boolean | undefined): unknown =>
      judgeClaims({ ...good, dept: 'x' }, { ...READING, ...(keepsClaims !== undefined && { keepsClaims }) }).admitted?.identity
        .claims
    expect([kept(undefined), kept(false)]).toEqual([undefined, undefined])
    expect(kept(true)).toMatchObject({ dept: 'x' })
  })
  test.each([
    [{ scope: 'a b  c' }, ['a', 'b', 'c']],
    [{ scp: ['a', 'b'] }, ['a', 'b']],
    [{ scp: 'a b' }, ['a', 'b']],
    [{ scope: 7 }, []],
    [{}, []],
  ])('scopes of %j', (claims, scopes) => {
    expect(admit(claims)?.identity.scopes).toEqual(scopes)
  })
})

describe('what its claims give', () => {
  test('without rules any toolset, and with rules none for whom none of them holds', () => {
    expect(admit({})?.identity.toolsets).toBeUndefined()
    expect(admit({ groups: ['dev'] }, [rule({ has: 'sre' }, 'ops')])?.identity.toolsets).toEqual([])
  })
  test('a rule of one issuer holds for its tokens alone; who has no toolset by any rule is told of it', () => {
    const of = (issuer: string | undefined) => admit({ groups: ['sre'] }, [rule({ has: 'sre', issuer }, 'ops')])
    expect([of(undefined), of('https://idp.test')].map((admitted) => admitted?.identity.toolsets)).toEqual([['ops'], ['ops']])
    expect(of('https://idp.test')).not.toHaveProperty('unmapped')
    expect(of('https://other.test')).toMatchObject({
      identity: { toolsets: [] },
      unmapped: { cause: 'toolsets', claim: 'groups' },
    })
  })
  test('all rules that hold, in their order, each toolset once', () => {
    const map = [rule({ has: 'sre' }, 'ops', 'review'), rule({ has: 'none' }, 'x'), rule({ has: 'dev' }, 'review', 'build')]
    expect(admit({ groups: ['dev', 'sre'] }, map)?.identity.toolsets).toEqual(['ops', 'review', 'build'])
  })
  test.each<[object, Partial<ClaimRule>, boolean]>([
    [{ groups: ['sre'] }, { has: 'sre' }, true],
    [{ groups: ['sre-interns'] }, { has: 'sre' }, false],
    [{ groups: ['/sre'] }, { has: 'sre' }, true],
    [{ groups: ['sre'] }, { has: '/sre' }, true],
    [{ groups: '/sre' }, { has: 'sre' }, true],
    [{ groups: ['/team/sre'] }, { has: 'sre' }, false],
    [{ groups: ['/team/sre'] }, { has: 'team/sre' }, true],
    [{ groups: ['//sre'] }, { has: 'sre' }, false],
    [{ groups: ['/sre'] }, { is: 'sre' }, false],
    [{ groups: [{ name: 'sre' }, 7, null] }, { has: 'sre' }, false],
    [
      { resource_access: { 'my.client': { roles: ['sre'] } } },
      { claim: ['resource_access', 'my.client', 'roles'], has: 'sre' },
      true,
    ],
    [{ resource_access: { 'my.client': { roles: ['sre'] } } }, { claim: 'resource_access.my.client.roles', has: 'sre' }, false],
    [{ groups: Array.from({ length: 10_000 }, (_, at) => `g${at}`) }, { has: 'g9999' }, true],
    [{ groups: ['a sre b'] }, { has: 'sre' }, false],
    [{ groups: 'dev sre' }, { has: 'sre' }, true],
    [{ groups: 'sre' }, { is: 'sre' }, true],
    [{ groups: ['sre'] }, { is: 'sre' }, false],
    [{ groups: 'dev sre' }, { is: 'sre' }, false],
    [{ groups: true }, { is: 'true' }, true],
    [{ groups: 3 }, { is: '3' }, true],
    [{ groups: null }, { is: 'null' }, false],
    [{ groups: undefined }, { is: 'undefined' }, false],
    [{ groups: { sre: true } }, { has: 'sre' }, false],
    [{ realm_access: { roles: ['sre'] } }, { claim: 'realm_access.roles', has: 'sre' }, true],
    [{ 'https://x.test/groups': ['sre'] }, { claim: 'https://x.test/groups', has: 'sre' }, true],
    [{ groups: ['sre'] }, { claim: 'constructor.name', is: 'Object' }, false],
    [{ groups: ['sre'] }, { claim: 'groups.length', is: '1' }, false],
    [{}, { has: 'sre' }, false],
  ])('%j against %j: %s', (claims, condition, isMet) => {
    expect(admit(claims, [rule(condition, 'ops')])?.identity.toolsets).toEqual(isMet ? ['ops'] : [])
  })
})

test.each(['https://gw.test.evil', `${ORIGIN}:8443`, 'https://gw', 'https://gw.test@evil'])(
  'B234 T-07 %s is no URI of ours, and a token for it no token for any of our endpoints',
  (aud) => {
    const { admitted, checks } = judgeClaims({ ...good, aud }, READING)
    expect([admitted, checks.find(({ refusal }) => refusal !== undefined)?.cause]).toEqual([undefined, 'audience'])
  },
)

test.each([
  [`${ORIGIN}/mcp`, '/mcp', true],
  [`${ORIGIN}/mcp`, '/mcp/review', true],
  [`${ORIGIN}/mcp/review`, '/mcp', false],
  [`${ORIGIN}/mcp/review`, '/mcp/review', true],
  [`${ORIGIN}/mcp/rev`, '/mcp/review', false],
  [`${ORIGIN}/mcp`, '/servers/a/mcp', false],
  [`${ORIGIN}/servers`, '/servers/a/mcp', true],
  [`${ORIGIN}/servers/b`, '/servers/a/mcp', false],
  [ORIGIN, '/sse', true],
  [`${ORIGIN}/`, '/sse', true],
  [`${ORIGIN}/mcp`, '/sse', false],
  ['HTTPS://GW.Test', '/sse', true],
  ['https://GW.test/mcp', '/mcp', true],
  [`${ORIGIN}/MCP`, '/mcp', false],
  ['https://GW.test@evil.test/mcp', '/mcp', false],
  ['https://gw.test.evil', '/mcp', false],
  ['https:/', '/mcp', false],
])('B234 a token for %s at %s: %s', (aud, path, isGood) => {
  const admitted = admit({ aud })
  expect(admitted?.audiences !== undefined && isForResource(admitted.audiences, ORIGIN + path)).toBe(isGood)
})
