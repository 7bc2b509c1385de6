/**
 * `trunkline check --live` reads metadata and keys of every issuer as requests of hosts will need them: what is wrong there is one line with the
 * issuer, its place in the file, the reason and what to change; and no issuer can make it wait.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { expect, test } from 'vitest'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { makeCertificates } from '../../support/certificates.ts'
import { commandLine } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'

const configOf = (issuer: string, more = ''): string =>
  `version: 1\nservers: {}\nauth:\n  oauth:\n    issuer: "${issuer}"\n    audience: https://mcp.example.com\n${more}`

/** What the command prints for a file, and how it ends. */
const check = async (config: string) => {
  await using cli = await commandLine({ 'trunkline.yaml': config })
  const { code, stdout, stderr } = await cli.here('check', '--live')
  return { code, lines: stdout.split('\n').filter((line) => line.includes('issuer')), stderr }
}

type Json = Readonly<Record<string, unknown>>
const EC = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const SHORT = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({ format: 'jwk' })
const BITCOIN = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })

/** An issuer that answers by path; `undefined`: 404. */
const issuerWith = async (pages: (url: string) => Readonly<Record<string, Json | RequestListener | undefined>>) => {
  const own = { url: '' }
  const server = createServer((request, response) => {
    const page = pages(own.url)[request.url ?? '']
    if (typeof page === 'function') page(request, response)
    else if (page === undefined) response.writeHead(404).end()
    else response.end(JSON.stringify(page))
  })
  const started = await listening(server)
  own.url = started.url
  return started
}
const METADATA = '/.well-known/oauth-authorization-server'
const usual = (keys: Json | RequestListener | undefined, more: Json = {}) =>
  issuerWith((url) => ({ [METADATA]: { issuer: url, jwks_uri: `${url}/keys`, ...more }, '/keys': keys }))

test('a real provider, twice: the keys of each are counted', async () => {
  await using one = await startAuthorizationServer()
  await using two = await startAuthorizationServer()
  const { code, lines } = await check(configOf(one.issuer, `    issuers: [{ issuer: "${two.issuer}" }]\n`))
  expect({ code, lines }).toEqual({ code: 0, lines: [`● issuer ${one.issuer}  1 key`, `● issuer ${two.issuer}  1 key`] })
  expect(one.requests.entries).toContain('GET /jwks')
})

test('keys are counted that can check a token', async () => {
  const keys = [
    { ...EC, kid: 'a' },
    { ...EC, kid: 'b', use: 'sig', alg: 'ES256', key_ops: ['verify'] },
    { ...EC, kid: 'c', use: 'enc' },
    { ...EC, kid: 'd', key_ops: ['deriveKey'] },
    { ...EC, kid: 'e', alg: 'HS256' },
    generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }),
    generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({ format: 'jwk' }),
  ]
  await using issuer = await usual({ keys })
  expect((await check(configOf(issuer.url))).lines).toEqual([`● issuer ${issuer.url}  4 keys`])
})

test('what the file says itself is not looked for in metadata', async () => {
  await using issuer = await issuerWith(() => ({ '/mine': { keys: [EC] } }))
  expect((await check(configOf(issuer.url, `    jwks_uri: "${issuer.url}/mine"\n`))).lines).toEqual([
    `● issuer ${issuer.url}  1 key`,
  ])
  const introspection = `    introspection: { endpoint: "${issuer.url}/look", client_id: us, client_secret: hush }\n    introspect: always\n`
  expect((await check(configOf(issuer.url, introspection))).lines).toEqual([`● issuer ${issuer.url}  tokens are introspected`])
})

/** The line of an issuer that cannot be used, without its mark and name. */
const complaint = async (url: string, more?: string) => {
  const { code, lines, stderr } = await check(configOf(url, more))
  expect(code).toBe(4)
  expect(stderr).toContain(`tokens cannot be checked: ${url}`)
  const [line = ''] = lines
  expect(line.startsWith(`✖ issuer ${url} (auth.oauth)  `)).toBe(true)
  return line.replace(/^.*?\(auth\.oauth\) {2}/, '').replaceAll(url, 'ISSUER')
}

test('no metadata: the places that were asked, and that the name may be spelled otherwise', async () => {
  await using issuer = await issuerWith(() => ({}))
  expect(await complaint(issuer.url)).toBe(
    'no metadata of ISSUER: the authorization server cannot be asked (ISSUER/.well-known/openid-configuration answered HTTP 404); ' +
      'write issuer exactly as its tokens do in "iss"; where it has no metadata, set jwks_uri beside issuer',
  )
})

test.each<[what: string, pages: (url: string) => Readonly<Record<string, Json | undefined>>]>([
  ['in the first place', (url) => ({ [METADATA]: { issuer: `${url}/`, jwks_uri: `${url}/keys` } })],
  ['in the second place', (url) => ({ '/.well-known/openid-configuration': { issuer: `${url}/`, jwks_uri: `${url}/keys` } })],
])('metadata of another issuer, %s: both names', async (_what, pages) => {
  await using issuer = await issuerWith(pages)
  const line = await complaint(issuer.url)
  expect(line).toContain('describes the issuer "ISSUER/"')
  expect(line).toContain('; write issuer exactly as its metadata and its tokens do')
})

test.each<[what: string, page: RequestListener, reason: RegExp]>([
  [
    'a page for people',
    (_request, response) => response.end('<html>'),
    /oauth-authorization-server is no JSON object; write issuer exactly/,
  ],
  [
    'HTTP 503',
    (_request, response) => response.writeHead(503).end(),
    /answered HTTP 503\); the issuer cannot serve requests now/,
  ],
  [
    'a redirect',
    (_request, response) => response.writeHead(302, { location: '/login' }).end(),
    /redirect .*\/login.*not followed/,
  ],
  ['1 MB', (_request, response) => response.end(' '.repeat(1_048_576)), /more than 262144 bytes/],
  ['half of it', (_request, response) => (response.writeHead(200).write('{'), response.destroy()), /cannot be asked \(ISSUER: /],
])('metadata that is %s', async (_what, page, reason) => {
  await using issuer = await issuerWith(() => ({ [METADATA]: page, '/.well-known/openid-configuration': page }))
  expect(await complaint(issuer.url)).toMatch(reason)
})

test('an issuer that cannot be connected to', async () => {
  const { url } = await (async () => {
    await using gone = await issuerWith(() => ({}))
    return gone
  })()
  expect(await complaint(url)).toMatch(/ECONNREFUSED.*; check that the issuer runs, the network from here, and HTTPS_PROXY$/)
})

test('keys that cannot be reached: their address, and where it comes from', async () => {
  await using issuer = await issuerWith((url) => ({ [METADATA]: { issuer: url, jwks_uri: 'http://127.0.0.1:9/keys' } }))
  expect(await complaint(issuer.url)).toMatch(
    /^no keys at http:\/\/127\.0\.0\.1:9\/keys \(jwks_uri of the metadata\): .*ECONNREFUSED.*; check that the issuer runs/,
  )
  await using other = await usual({ keys: [EC] })
  expect(await complaint(other.url, '    jwks_uri: http://127.0.0.1:9/mine\n')).toMatch(
    /^no keys at http:\/\/127\.0\.0\.1:9\/mine \(jwks_uri beside issuer\): /,
  )
})

test('metadata without keys or without an introspection endpoint says which option is needed', async () => {
  await using issuer = await issuerWith((url) => ({ [METADATA]: { issuer: url } }))
  expect(await complaint(issuer.url)).toBe('the metadata of ISSUER names no jwks_uri; set jwks_uri beside issuer')
  await using opaque = await usual({ keys: [EC] })
  expect(await complaint(opaque.url, '    introspection: { client_id: us, client_secret: hush }\n')).toBe(
    'the metadata of ISSUER names no introspection_endpoint; set auth.oauth.introspection.endpoint',
  )
})

test.each<[what: string, keys: Json, reason: RegExp]>([
  ['none', { keys: [] }, /^ISSUER\/keys holds no keys; have the issuer publish one for RS256/],
  ['no list', { keys: 'x' }, /^ISSUER\/keys is no set of keys; set jwks_uri/],
  [
    'for encryption',
    { keys: [{ ...EC, use: 'enc' }] },
    /^ISSUER\/keys holds no key that can check a token \(1 of other kinds\); have/,
  ],
  ['too short', { keys: [SHORT] }, /no key that can check a token/],
  ['of another curve', { keys: [BITCOIN] }, /no key that can check a token/],
  ['a shared secret', { keys: [{ kty: 'oct', k: 'c2VjcmV0' }, null, 7] }, /no key that can check a token \(3 of other kinds\)/],
  ['broken', { keys: [{ ...EC, x: '!' }] }, /no key that can check a token/],
])('keys that are %s', async (_what, keys, reason) => {
  await using issuer = await usual(keys)
  expect(await complaint(issuer.url)).toMatch(reason)
})

test('a certificate of an authority that is not known here: how to name it', async () => {
  using certificates = makeCertificates('localhost')
  const options = { key: certificates.text('server.key'), cert: certificates.text('server') }
  const server = createTlsServer(options, (_request, response) => response.end())
  await using started = await listening(server)
  const url = started.url.replace('127.0.0.1', 'localhost')
  expect(await complaint(url)).toMatch(/certificate.*; name the authority of its certificate with NODE_EXTRA_CA_CERTS$/)
})

test('https at a port that does not speak it', async () => {
  await using issuer = await issuerWith(() => ({}))
  expect(await complaint(issuer.url.replace('http:', 'https:'))).toMatch(/; check that TLS is spoken at this port$/)
})

test('issuers that accept connections and answer nothing, or byte by byte, are given up after five seconds', async () => {
  const silent: RequestListener = () => undefined
  const dripping: RequestListener = (_request, response) => {
    const timer = setInterval(() => response.write(' '), 100)
    response.on('close', () => clearInterval(timer))
  }
  await using one = await issuerWith(() => ({ [METADATA]: silent, '/.well-known/openid-configuration': silent }))
  await using two = await issuerWith(() => ({ [METADATA]: dripping, '/.well-known/openid-configuration': dripping }))
  await using three = await usual(silent)
  const { code, lines } = await check(configOf(one.url, `    issuers: [{ issuer: "${two.url}" }, { issuer: "${three.url}" }]\n`))
  expect(code).toBe(4)
  const remedy = 'check that the issuer runs, the network from here, and HTTPS_PROXY'
  expect(lines).toEqual([
    `✖ issuer ${one.url} (auth.oauth)  no metadata of ${one.url}: the authorization server cannot be asked (${one.url}: no answer within 5 s); ${remedy}`,
    `✖ issuer ${two.url} (auth.oauth.issuers[0])  no metadata of ${two.url}: the authorization server cannot be asked (${two.url}: no answer within 5 s); ${remedy}`,
    `✖ issuer ${three.url} (auth.oauth.issuers[1])  no keys at ${three.url}/keys (jwks_uri of the metadata): the authorization server cannot be asked (${three.url}: no answer within 5 s); ${remedy}`,
  ])
})
