/** Which `Host` and `Origin` are accepted, and what pages of other origins may read (T-01, T-02; BRIDGING 5.1). */
import { describe, expect, test } from 'vitest'
import { allowOrigin } from '../../../src/host/http/guard/cors.ts'
import { OriginGuard } from '../../../src/host/http/guard/origin-guard.ts'
import { isAllowedHost, isAllowedOrigin } from '../../../src/host/http/guard/origins.ts'
import { originRulesOf, prefixOf, publicUrlOf } from '../../../src/host/http/public-url.ts'
import type { HostOptions } from '../../../src/host/options.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { oauthOf } from '../../support/credentials.ts'

const RULES = { allowedHosts: new Set(['gw.test']), allowedOrigins: new Set(['https://app.test', 'null']) }

test.each([
  ['localhost', true],
  ['LOCALHOST:8080', true],
  ['127.0.0.1:1', true],
  ['[::1]:8080', true],
  ['gw.test', true],
  ['gw.test:443', true],
  ['gw.test:', false],
  ['gw.test:123456', false],
  ['gw.test.evil.test', false],
  ['evil.test', false],
  ['127.0.0.2', false],
  ['user@localhost', false],
  ['', false],
  [undefined, false],
])('T-01 the Host %j is accepted: %s', (header, isAllowed) => {
  expect(isAllowedHost(header, RULES)).toBe(isAllowed)
})

test.each([
  [undefined, true],
  ['https://app.test', true],
  ['null', true],
  ['http://localhost:5173', true],
  ['https://[::1]', true],
  ['https://app.test:8443', false],
  ['https://gw.test', false],
  ['http://localhost.evil.test', false],
  ['http://evil.test/localhost', false],
  ['ftp://localhost', false],
  ['localhost', false],
  ['http://localhost/', false],
  ['http://127.0.0.1:8080/page', false],
  ['http://localhost?http://evil.test', false],
  ['', false],
])('T-01 the Origin %j is accepted: %s', (header, isAllowed) => {
  expect(isAllowedOrigin(header, RULES)).toBe(isAllowed)
})

describe('the public URL', () => {
  const optionsOf = (facts: object): HostOptions =>
    ({
      publicUrl: undefined,
      auth: undefined,
      path: '/mcp',
      allowedHosts: [],
      allowedOrigins: [],
      ...facts,
    }) as unknown as HostOptions
  const auth = (audience: string) => ({ auth: oauthOf({ issuer: 'https://idp.test' }, audience) })

  test.each([
    [{}, undefined, ''],
    [{ publicUrl: 'https://gw.test' }, 'https://gw.test', ''],
    [{ publicUrl: 'https://gw.test/tools/' }, 'https://gw.test/tools/', '/tools'],
    [auth('https://idp.gw.test/mcp'), 'https://idp.gw.test', ''],
    [auth('https://gw.test/a/b/mcp'), 'https://gw.test/a/b', '/a/b'],
    [{ publicUrl: 'https://one.test', ...auth('https://two.test/mcp') }, 'https://one.test', ''],
    [{ auth: { tokens: [], map: [], oauth: undefined } }, undefined, ''],
  ])('of %j is %s', (facts, url, prefix) => {
    expect([publicUrlOf(optionsOf(facts)), prefixOf(optionsOf(facts))]).toEqual([url, prefix])
  })

  test('is accepted beside what is configured', () => {
    const lists = { allowedHosts: ['Other.TEST'], allowedOrigins: ['https://app.test'] }
    expect(originRulesOf(optionsOf(lists))).toEqual({
      allowedHosts: new Set(['other.test']),
      allowedOrigins: new Set(['https://app.test']),
    })
    expect(originRulesOf(optionsOf({ ...lists, publicUrl: 'https://GW.test:8443/tools' }))).toEqual({
      allowedHosts: new Set(['other.test', 'gw.test']),
      allowedOrigins: new Set(['https://app.test', 'https://gw.test:8443']),
    })
  })
})

/** A request with these headers, and how it is answered. */
const requestWith = (headers: Readonly<Record<string, string>>, facts: Partial<HttpRequest> = {}, hosts = 1) => {
  const [added, replies] = [[] as Readonly<Record<string, string>>[], [] as unknown[]]
  // Cast: what is read of a request.
  const request = {
    path: '/mcp',
    client: '10.0.0.7',
    method: 'POST',
    header: (name: string) => headers[name],
    count: () => hosts,
    addHeaders: (more: Readonly<Record<string, string>>) => added.push(more),
    reply: (status: number, _type: unknown, body: unknown) => replies.push([status, String(body)]),
    ...facts,
  } as unknown as HttpRequest
  return { request, added, replies }
}

test('T-02 a page of a listed origin may send headers of parameters, and no other header that it names', () => {
  const names = 'Mcp-Param-Region, x-evil,mcp-param-a.b, mcp-param-, mcp-param-a b'
  const { request, added } = requestWith({ 'access-control-request-headers': names }, { method: 'OPTIONS' })
  allowOrigin(request, 'https://app.test')
  expect(added).toEqual([
    {
      'Access-Control-Allow-Origin': 'https://app.test',
      'Access-Control-Allow-Methods': 'GET, POST, DELETE',
      'Access-Control-Allow-Headers': expect.stringMatching(/^Authorization, .*, baggage, Mcp-Param-Region, mcp-param-a\.b$/),
      'Access-Control-Expose-Headers': 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After',
      'Access-Control-Max-Age': '7200',
      Vary: 'Origin',
    },
  ])
  const plain = requestWith({})
  allowOrigin(plain.request, 'https://app.test')
  expect(plain.added[0]).not.toHaveProperty('Access-Control-Max-Age')
  expect(plain.added[0]?.['Access-Control-Allow-Headers']).toMatch(/, baggage$/)
})

describe('a request', () => {
  const guarded = () => {
    const time = { nowMs: 0 }
    const [logged, denied] = [[] as unknown[], [] as unknown[]]
    const context = { log: { warn: (facts: object) => logged.push(facts) }, denied: (one: object) => denied.push(one) }
    return { guard: new OriginGuard(context as never, () => time.nowMs), time, logged, denied }
  }

  test.each<[string, Readonly<Record<string, string>>, boolean, number, string | undefined]>([
    ['of an accepted name', { host: 'gw.test', origin: 'https://app.test' }, true, 1, undefined],
    ['of another name where names are not checked', { host: 'evil.test' }, false, 1, undefined],
    ['of another name', { host: 'evil.test' }, true, 1, 'Host "evil.test" is not accepted on a loopback address'],
    ['without a name', {}, true, 0, 'a request without a Host header is not accepted'],
    ['without a name where names are not checked', {}, false, 0, undefined],
    ['with two names', { host: 'gw.test' }, false, 2, 'more than one Host header'],
    ['of another page', { host: 'gw.test', origin: 'https://evil.test' }, true, 1, 'Origin "https://evil.test" is not accepted'],
    ['of a page with a long name', { host: 'gw.test', origin: 'x'.repeat(300) }, true, 1, `Origin "${'x'.repeat(255)}" is not`],
  ])('T-01 %s is answered, logged and reported, or passes', (_, headers, checksHost, hosts, text) => {
    const { guard, logged, denied } = guarded()
    const { request, replies } = requestWith(headers, {}, hosts)
    expect(guard.refuses(request, RULES, checksHost)).toBe(text !== undefined)
    if (text === undefined) return expect([replies, logged, denied]).toEqual([[], [], []])
    expect(replies).toEqual([[403, expect.stringContaining(JSON.stringify(text).slice(1, -1))]])
    expect(denied).toEqual([
      { reason: 'origin', status: 403, path: '/mcp', client: '10.0.0.7', detail: expect.stringContaining(text) },
    ])
    expect(logged).toHaveLength(1)
  })

  test('that is refused is logged once in ten seconds, with the number of the others', () => {
    const { guard, time, logged, denied } = guarded()
    for (const nowMs of [0, 1, 9_999, 10_000]) {
      time.nowMs = nowMs
      guard.refuses(requestWith({ host: 'evil.test' }).request, RULES, true)
    }
    expect(denied).toHaveLength(4)
    expect(logged).toEqual([
      { host: 'evil.test', path: '/mcp', count: 1 },
      { host: 'evil.test', path: '/mcp', count: 3 },
    ])
  })
})
