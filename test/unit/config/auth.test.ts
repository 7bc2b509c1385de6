/** `auth` of a configuration: what it becomes, and what of it is refused (BRIDGING 6.1). */
import { describe, expect, test } from 'vitest'
import { hashLine } from '../../../src/auth/inbound/static-tokens.ts'
import { yaml } from './workspace.ts'

const HASH = hashLine('a')
const TOKEN = `{ id: ci, hash: "${HASH}" }`
const OAUTH = 'issuer: https://idp.test, audience: https://gw.test/mcp'

test('everything said arrives under its name in code', async () => {
  await using files = await yaml(`
auth:
  mode: any
  tokens: [{ id: ci, hash: "${HASH}", toolsets: [review], expires: 2037-06-30 }, { id: b.2, hash: "${hashLine('b')}" }]
  oauth:
    issuer: https://idp.test/realms/one
    audience: https://gw.test/tools/mcp
    scopes: [mcp:connect, "mcp:a", "mcp:a:write"]
    request_scopes: [openid]
    jwks_uri: https://keys.test/jwks
    introspection: { client_id: us, client_secret: hush-hush, endpoint: https://idp.test/introspect }
    legacy_metadata: true
  map: [{ when: { claim: groups, has: sre }, toolsets: [ops, review] }, { when: { claim: tier, is: gold }, toolsets: [all] }]
listen: { limits: { max_header: 32KiB } }
servers: { a: { command: x } }
toolsets: { review: {}, ops: {}, all: {} }
`)
  const { host, secrets } = await files.load()
  expect(host.auth).toEqual({
    tokens: [
      { id: 'ci', hash: HASH.slice(7), toolsets: ['review'], expiresMs: Date.parse('2037-07-01T00:00:00Z'), isOperator: false },
      { id: 'b.2', hash: hashLine('b').slice(7), toolsets: undefined, expiresMs: Infinity, isOperator: false },
    ],
    oauth: {
      issuer: 'https://idp.test/realms/one',
      audience: 'https://gw.test/tools/mcp',
      subject: 'sub',
      advertise: 'reads',
      scopes: ['mcp:connect', 'mcp:a', 'mcp:a:write'],
      requestScopes: ['openid'],
      maxTokenCharacters: 32 * 1_024,
      jwksUri: 'https://keys.test/jwks',
      introspection: { endpoint: 'https://idp.test/introspect', clientId: 'us', clientSecret: 'hush-hush' },
      introspectsAll: false,
      allowsHttp: false,
      client: undefined,
      otherIssuers: [],
      otherAudiences: [],
      proxiesRegistration: false,
      hostClients: [],
      relaysMetadata: true,
    },
    map: [
      { claim: 'groups', issuer: undefined, has: 'sre', is: undefined, toolsets: ['ops', 'review'] },
      { claim: 'tier', issuer: undefined, has: undefined, is: 'gold', toolsets: ['all'] },
    ],
  })
  expect(secrets).toEqual([HASH.slice(7), hashLine('b').slice(7), 'hush-hush'])
})

test.each([
  ['audience: https://gw.test', undefined, 'https://gw.test/mcp', []],
  ['audience: [https://gw.test, api://gw, 0b7d2f0e]', undefined, 'https://gw.test/mcp', ['api://gw', '0b7d2f0e']],
  ['audience: api://gw', 'https://gw.test/tools', 'https://gw.test/tools/mcp', ['api://gw']],
  ['audience: https://api.test/', 'https://gw.test', 'https://gw.test/mcp', ['https://api.test/']],
  ['audience: [api://gw, https://gw.test/tools/mcp]', undefined, 'https://gw.test/tools/mcp', ['api://gw']],
  ['scopes: []', 'https://gw.test', 'https://gw.test/mcp', []],
])('oauth { %s } at public_url %s: our endpoint, and what else tokens may be for', async (oauth, publicUrl, audience, others) => {
  const listen = publicUrl === undefined ? '' : `listen: { http: { public_url: ${publicUrl} } }\n`
  await using files = await yaml(`auth: { oauth: { issuer: http://10.0.0.7, allow_http: true, ${oauth} } }\n${listen}`)
  expect((await files.load()).host.auth?.oauth).toMatchObject({ audience, otherAudiences: others, allowsHttp: true })
})

test.each([
  ['auth:', ' auth: is empty; name what hosts need, such as tokens, or write mode: none'],
  ['auth: {}', ' auth: asks hosts for no credential; add tokens or oauth, or write mode: none'],
  [
    'auth: { map: [{ when: { claim: groups, has: sre }, toolsets: [all] }] }',
    ' auth: asks hosts for no credential; add tokens or oauth, or write mode: none',
  ],
])('T-03 authentication that names no credential is refused, and is not none: %s', async (auth, message) => {
  await using files = await yaml(`toolsets: { all: {} }\n${auth}\n`)
  expect(await files.errors()).toEqual([`trunkline.yaml:2:1${message}`])
})

test('a moment is an end as well, and what has ended is told at the start', async () => {
  await using files = await yaml(`auth: { tokens: [{ id: old, hash: "${HASH}", expires: "2020-01-01T12:00:00+01:00" }] }`)
  const { host, warnings } = await files.load()
  expect(host.auth?.tokens[0]?.expiresMs).toBe(Date.parse('2020-01-01T11:00:00Z'))
  expect(warnings).toContain('auth: the token "old" has expired; make another with trunkline token new --id old')
})

describe('refused, with the place and what to do', () => {
  test.each([
    [`tokens: [{ id: "a b", hash: "${HASH}" }]`, 'auth.tokens[0].id: expected a name of letters'],
    [`tokens: [{ hash: "${HASH}" }]`, 'auth.tokens[0]: expected a name of letters'],
    ['tokens: [{ id: a }]', 'auth.tokens[0]: expected the hash of a token'],
    [`tokens: [{ id: a, hash: "${HASH.slice(7)}" }]`, 'make a token and its hash with trunkline token new'],
    [`tokens: [{ id: a, hash: "${HASH.toUpperCase()}" }]`, 'expected the hash of a token'],
    ['tokens: [{ id: a, hash: "sha256:${NOT_SET}" }]', 'variable NOT_SET is not set'],
    [`tokens: [{ id: a, hash: "${HASH}", expires: 2037-02-30 }]`, 'auth.tokens[0].expires: expected a date such as 2027-06-30'],
    [`tokens: [{ id: a, hash: "${HASH}", expires: soon }]`, 'expected a date such as 2027-06-30'],
    [`tokens: [{ id: a, hash: "${HASH}", scopes: [x] }]`, 'unknown key "scopes"'],
    [`tokens: [${TOKEN}, ${TOKEN}]`, 'auth.tokens[1].id: is the id of another token already'],
    [`tokens: [${TOKEN}, { id: b, hash: "${HASH}" }]`, 'auth.tokens[1].hash: is the hash of another token already'],
    ['mode: tokens', 'auth.mode: mode tokens needs tokens'],
    ['mode: oauth', 'auth.mode: mode oauth needs an authorization server'],
    ['mode: any', 'auth.mode: mode any needs tokens, oauth or both'],
    [`mode: oauth, oauth: { ${OAUTH} }, tokens: [${TOKEN}]`, 'auth.tokens: are not accepted in mode oauth'],
    [`mode: tokens, oauth: { ${OAUTH} }, tokens: [${TOKEN}]`, 'auth.oauth: is not used in mode tokens'],
    ['mode: open', 'auth.mode: expected one of none, tokens, oauth, any'],
    ['oauth: { audience: https://gw.test/mcp }', 'auth.oauth: expected an https URL'],
    ['oauth: { issuer: http://idp.test, audience: https://gw.test/mcp }', 'inside a private network alone, set allow_http: true'],
    ['oauth: { issuer: "https://idp.test?x=1", audience: https://gw.test/mcp }', 'auth.oauth.issuer: expected an https URL'],
    ['oauth: { issuer: "https://u:p@idp.test", audience: https://gw.test/mcp }', 'auth.oauth.issuer: expected an https URL'],
    ['oauth: { issuer: https://idp.test, audience: https://gw.test/mcp/ }', 'auth.oauth.audience: names neither the origin'],
    ['oauth: { issuer: https://idp.test, audience: "https://gw.test/mcp#x" }', 'auth.oauth.audience: names neither the origin'],
    ['oauth: { issuer: https://idp.test, audience: "api://default" }', 'auth.oauth.audience: names neither the origin'],
    [
      'oauth: { issuer: https://idp.test, audience: https://gw.test/x }',
      'auth.oauth.audience: names neither the origin of our endpoints nor the URL of /mcp',
    ],
    ['oauth: { issuer: https://idp.test }', 'set listen.http.public_url, or auth.oauth.audience'],
    [`oauth: { ${OAUTH}, introspect: always }`, 'auth.oauth.introspect: needs introspection'],
    [`oauth: { ${OAUTH}, issuers: [{ issuer: https://idp.test }] }`, 'auth.oauth.issuers[0].issuer: is named already'],
    [`oauth: { ${OAUTH}, issuers: [{ issuer: http://b.test }] }`, 'auth.oauth.issuers[0].issuer: tokens and keys are not'],
    [`oauth: { ${OAUTH}, subject: [] }`, 'auth.oauth.subject: expected a claim'],
    [`oauth: { ${OAUTH} }, map: [{ when: { claim: [], has: x }, toolsets: [a] }]`, 'expected a claim, such as groups'],
    [
      `oauth: { ${OAUTH} }, map: [{ when: { claim: g, issuer: https://c.test, has: x }, toolsets: [a] }]`,
      'auth.map[0].when.issuer: is not an issuer of auth.oauth',
    ],
    [`oauth: { ${OAUTH}, scopes: ["a b"] }`, 'auth.oauth.scopes[0]: expected a scope'],
    [`oauth: { ${OAUTH}, scopes: [x, offline_access] }`, 'auth.oauth.scopes[1]: offline_access is between hosts and'],
    [`oauth: { ${OAUTH}, scopes: ["mcp:nope:write"] }`, 'names the server "nope", which is not configured'],
    [`oauth: { ${OAUTH}, introspection: { client_id: x } }`, 'auth.oauth.introspection: expected a header value'],
    [`oauth: { ${OAUTH}, algorithms: [none] }`, 'unknown key "algorithms"'],
    [`tokens: [${TOKEN}], map: [{ when: { claim: g, has: x }, toolsets: [a] }]`, 'auth.map: maps claims of OAuth tokens'],
    [`oauth: { ${OAUTH} }, map: [{ when: { claim: g }, toolsets: [a] }]`, 'auth.map[0].when: expects either "has" or "is"'],
    [`oauth: { ${OAUTH} }, map: [{ when: { claim: g, has: x, is: y }, toolsets: [a] }]`, 'expects either "has" or "is"'],
    [`oauth: { ${OAUTH} }, map: [{ when: { has: x }, toolsets: [a] }]`, 'auth.map[0].when: expected a claim'],
    [`oauth: { ${OAUTH} }, map: [{ when: { claim: g, has: x }, toolsets: [] }]`, 'auth.map[0].toolsets'],
    [
      `oauth: { ${OAUTH} }, map: [{ when: { claim: g, has: x }, toolsets: [a, nope] }]`,
      'auth.map[0].toolsets[1]: there is no toolset "nope"',
    ],
    [`tokens: [{ id: a, hash: "${HASH}", toolsets: [nope] }]`, 'auth.tokens[0].toolsets[0]: there is no toolset "nope"'],
  ])('{ %s }', async (section, message) => {
    await using files = await yaml(`auth: { ${section} }\nservers: { a: { command: x } }\ntoolsets: { a: {} }\n`)
    expect((await files.errors()).join('\n')).toContain(message)
  })

  test('T-14 a token that was written in place of its hash is not repeated', async () => {
    await using files = await yaml('auth: { tokens: [{ id: a, hash: tlk_a-secret-of-somebody }] }')
    expect((await files.errors()).join('\n')).not.toContain('tlk_')
  })
})
