/**
 * A provider that gives no answer in time, or one that says it cannot serve now: every part of Trunkline that asks one says "not reachable",
 * never that a token is bad, a grant refused or a sign-in needed; and asks again as soon as the provider is back (F-17).
 */
import { createHash, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { AuthorizationProxy } from '../../../src/auth/inbound/authorization-proxy.ts'
import { BrowserSignIns } from '../../../src/auth/inbound/browser-sign-in.ts'
import type { ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { IssuerUnreachable } from '../../../src/auth/inbound/verify/issuer.ts'
import { ResourceServer } from '../../../src/auth/inbound/verify/resource-server.ts'
import type { OAuthEnvironment } from '../../../src/auth/outbound/environment.ts'
import { ExchangeCredential } from '../../../src/auth/outbound/exchange-credential.ts'
import { MachineCredential } from '../../../src/auth/outbound/machine-credential.ts'
import { AnswerTimeout } from '../../../src/auth/fetch/safe-fetch.ts'
import type { Fetch } from '../../../src/auth/fetch/safe-fetch.ts'
import { GrantRefused } from '../../../src/auth/authorization-server/token-endpoint.ts'
import { TokenStore } from '../../../src/auth/authorization-server/token-store.ts'
import { UserCredential } from '../../../src/auth/outbound/user-credential.ts'
import { Seal } from '../../../src/auth/seal.ts'
import type { Purpose } from '../../../src/auth/seal.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { oauthOf } from '../../support/credentials.ts'

const ISSUER = 'https://idp.example'
const ORIGIN = 'https://gw.example'
const AUDIENCE = `${ORIGIN}/mcp`
const SERVER = new URL('https://mcp.example/mcp')
const BACK = 'http://127.0.0.1:9/callback'
const WALL_MS = 1_800_000_000_000
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const TRUNKLINE = { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' }
const AT_ISSUER = { client: TRUNKLINE, scopes: undefined, sendsResource: true }
const INTROSPECTION = { endpoint: undefined, clientId: 'us', clientSecret: 'hush' }
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const seal = new Seal({ keys: [Buffer.alloc(32, 7)] })

type Part = 'resource' | 'metadata' | 'keys' | 'introspection' | 'register' | 'token'
const PARTS: readonly (readonly [Part, string])[] = [
  ['resource', 'oauth-protected-resource'],
  ['metadata', '/.well-known/'],
  ['keys', '/keys'],
  ['introspection', '/introspect'],
  ['register', '/register'],
  ['token', '/token'],
]

/** A provider one part of which is away: it does not answer in time, or answers with a status. */
const provider = () => {
  const asked: Part[] = []
  const state: { away: Part | undefined; how: 'silent' | number; nowMs: number; nonce: string | undefined } = {
    away: undefined,
    how: 'silent',
    nowMs: 0,
    nonce: undefined,
  }
  const answerOf = async (part: Part): Promise<object> => {
    switch (part) {
      case 'resource':
        return { resource: SERVER.href, authorization_servers: [ISSUER] }
      case 'metadata':
        return {
          issuer: ISSUER,
          authorization_endpoint: `${ISSUER}/authorize`,
          token_endpoint: `${ISSUER}/token`,
          registration_endpoint: `${ISSUER}/register`,
          introspection_endpoint: `${ISSUER}/introspect`,
          jwks_uri: `${ISSUER}/keys`,
          code_challenge_methods_supported: ['S256'],
        }
      case 'keys':
        return { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }] }
      case 'introspection':
        return { active: true, sub: 'alice', aud: AUDIENCE, exp: WALL_MS / 1_000 + 600 }
      case 'register':
        return { client_id: 'registered' }
      case 'token':
        return {
          access_token: 'access',
          token_type: 'Bearer',
          expires_in: 60,
          refresh_token: 'refresh',
          id_token: await jwt({ aud: TRUNKLINE.id, nonce: state.nonce }),
        }
    }
  }
  const fetch: Fetch = async ({ url }) => {
    const [part] = PARTS.find(([, path]) => url.includes(path)) ?? ['metadata']
    asked.push(part)
    if (part !== state.away) return { status: part === 'register' ? 201 : 200, text: JSON.stringify(await answerOf(part)) }
    if (state.how === 'silent') throw new AnswerTimeout(`${new URL(url).origin}: no answer within 5 s`)
    return { status: state.how, text: '<html>try again later</html>' }
  }
  return { fetch, asked, state }
}
type Provider = ReturnType<typeof provider>

const jwt = (claims: object = {}, kid = 'one'): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: WALL_MS / 1_000 + 600, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid })
    .sign(privateKey)

const clockOf = ({ state }: Provider) => ({ wallMs: () => WALL_MS, monotonicMs: () => state.nowMs })
const oauth = (facts: Partial<ResourceServerOptions> = {}): ResourceServerOptions =>
  oauthOf({ issuer: ISSUER }, AUDIENCE, facts).oauth!

const environmentOf = ({ fetch, state }: Provider): OAuthEnvironment => ({
  fetch,
  store: new TokenStore(seal, undefined, () => undefined),
  now: () => WALL_MS + state.nowMs,
  subject: () => 'token of the caller',
  isCallerIssuer: () => true,
  subjectRefused: (_principal, token) => expect.fail(`"${token}" was called refused`),
  secrets: () => undefined,
})

/** Something that asks the provider, again and again. */
type Asking = () => Promise<unknown>

const verifying =
  (token: string, facts: Partial<ResourceServerOptions> = {}) =>
  async (of: Provider): Promise<Asking> => {
    const server = new ResourceServer(oauth(facts), [], of.fetch, clockOf(of))
    const value = token === 'jwt' ? await jwt() : token
    return async () => expect(await server.verify(value)).toBeDefined()
  }

const proxyOf = (of: Provider): AuthorizationProxy =>
  new AuthorizationProxy(oauth({ client: AT_ISSUER, proxiesRegistration: true }), AT_ISSUER, seal, of.fetch, clockOf(of))
const REQUEST = { clientId: 'host', redirectUri: BACK, challenge: CHALLENGE, state: 's', scope: undefined, resource: undefined }
const CODE: Purpose<{ c: string; r: string; p: string; k: string }> = 'oauth code'
const REFRESH: Purpose<{ c: string; k: string }> = 'oauth refresh'

const departing = async (of: Provider): Promise<Asking> => {
  const proxy = proxyOf(of)
  return () => proxy.begin(REQUEST, 'browser', ORIGIN)
}
/** A person is back while Trunkline knows nothing of the provider yet, as after a restart. */
const arriving = async (of: Provider): Promise<Asking> => {
  const url = new URL(await proxyOf(provider()).begin(REQUEST, 'browser', ORIGIN))
  const proxy = proxyOf(of)
  const answer = new URLSearchParams({ state: url.searchParams.get('state') ?? '', code: 'c' })
  return async () => expect(await proxy.finish(answer, 'browser', ORIGIN)).toContain('code=')
}
const redeeming =
  (form: () => Record<string, string>) =>
  async (of: Provider): Promise<Asking> => {
    const proxy = proxyOf(of)
    const params = new URLSearchParams({ client_id: 'host', ...form() })
    return async () => expect(await proxy.token(params, ORIGIN)).toMatchObject({ status: 200 })
  }
const byCode = () => ({
  grant_type: 'authorization_code',
  code: seal.seal(CODE, { c: 'host', r: BACK, p: CHALLENGE, k: 'of the provider' }),
  redirect_uri: BACK,
  code_verifier: VERIFIER,
})
const byRefresh = () => ({
  grant_type: 'refresh_token',
  refresh_token: seal.seal(REFRESH, { c: 'host', k: 'of the provider' }),
})

const identityOf = (of: Provider) =>
  new BrowserSignIns(oauth({ client: AT_ISSUER }), of.fetch, clockOf(of)).of(JSON.stringify([ISSUER, 'sub', 'alice']))!
const identifying = async (of: Provider): Promise<Asking> => {
  const at = identityOf(of)
  return () => at.begin(`${ORIGIN}/connect/identity`, false)
}
const identified = async (of: Provider): Promise<Asking> => {
  const at = identityOf(of)
  const { url, pending } = await at.begin(`${ORIGIN}/connect/identity`, false)
  of.state.nonce = pending.nonce
  const answer = new URLSearchParams({ state: new URL(url).searchParams.get('state') ?? '', code: 'c' })
  return () => at.finish(pending, answer)
}

const personOf = (of: Provider, issuer?: string): UserCredential =>
  new UserCredential(
    {
      key: 'a',
      server: SERVER,
      principal: 'p',
      signIn: {
        mode: 'user',
        perUser: true,
        client: undefined,
        clientDocument: undefined,
        scopes: undefined,
        issuer,
        isPrivate: false,
      },
    },
    environmentOf(of),
  )
const RETURN = { redirectUri: BACK, document: undefined }
const beginning =
  (issuer?: string) =>
  async (of: Provider): Promise<Asking> => {
    const person = personOf(of, issuer)
    return () => person.begin(RETURN)
  }
const finishing = async (of: Provider): Promise<Asking> => {
  const person = personOf(of)
  const { pending } = await person.begin(RETURN)
  return () => person.finish(pending, new URLSearchParams({ code: 'c', state: pending.state }))
}
const refreshing = async (of: Provider): Promise<Asking> => {
  const person = personOf(of)
  const { pending } = await person.begin(RETURN)
  await person.finish(pending, new URLSearchParams({ code: 'c', state: pending.state }))
  of.state.nowMs += 60_000
  return async () => {
    await person.ready()
    expect(person.isSignedIn).toBe(true)
  }
}

const machine =
  (issuer?: string) =>
  async (of: Provider): Promise<Asking> => {
    const options = { mode: 'client', client: TRUNKLINE, scopes: undefined, issuer, isPrivate: false } as const
    const credential = new MachineCredential(SERVER, options, environmentOf(of))
    return async () => credential.ready()
  }
const exchanging = async (of: Provider): Promise<Asking> => {
  const options = {
    mode: 'exchange',
    issuer: ISSUER,
    client: TRUNKLINE,
    audience: 'orders',
    scopes: undefined,
    isPrivate: false,
  } as const
  const credential = new ExchangeCredential(SERVER, options, 'ann', environmentOf(of))
  return async () => credential.ready()
}

const MODES: readonly (readonly [mode: string, away: Part, make: (of: Provider) => Promise<Asking>])[] = [
  ['auth.oauth: a JWT', 'metadata', verifying('jwt')],
  ['auth.oauth: a JWT', 'keys', verifying('jwt')],
  ['auth.oauth.introspection: an opaque token', 'metadata', verifying('opaque', { introspection: INTROSPECTION })],
  ['auth.oauth.introspection: an opaque token', 'introspection', verifying('opaque', { introspection: INTROSPECTION })],
  [
    'auth.oauth.introspect: always, a JWT',
    'introspection',
    verifying('jwt', { introspection: INTROSPECTION, introspectsAll: true }),
  ],
  ['auth.oauth.registration: proxy, on the way to the provider', 'metadata', departing],
  ['auth.oauth.registration: proxy, on the way back', 'metadata', arriving],
  ['auth.oauth.registration: proxy, a code', 'metadata', redeeming(byCode)],
  ['auth.oauth.registration: proxy, a code', 'token', redeeming(byCode)],
  ['auth.oauth.registration: proxy, a refresh token', 'token', redeeming(byRefresh)],
  ['auth.oauth.client: a person on the way to the issuer', 'metadata', identifying],
  ['auth.oauth.client: a person who is back', 'token', identified],
  ['auth.oauth.client: a person who is back', 'keys', identified],
  ['credentials.oauth: the server of a sign-in', 'resource', beginning()],
  ['credentials.oauth: a sign-in', 'metadata', beginning()],
  ['credentials.oauth: a sign-in at issuer', 'metadata', beginning(ISSUER)],
  ['credentials.oauth: a registration', 'register', beginning()],
  ['credentials.oauth: a code', 'token', finishing],
  ['credentials.oauth: a refresh token', 'token', refreshing],
  ['credentials.oauth: client credentials', 'resource', machine()],
  ['credentials.oauth: client credentials', 'metadata', machine()],
  ['credentials.oauth: client credentials at issuer', 'metadata', machine(ISSUER)],
  ['credentials.oauth: client credentials', 'token', machine()],
  ['credentials.exchange', 'metadata', exchanging],
  ['credentials.exchange', 'token', exchanging],
]

describe.each(['silent', 408, 429, 502, 503, 504] as const)('a provider that is away (%s)', (how) => {
  test.each(MODES)('F-17 %s (%s) is not reachable, and reached when it is back', async (mode, away, make) => {
    const of = provider()
    const ask = await make(of)
    of.state.how = how
    of.state.away = away
    of.asked.length = 0
    const error: unknown = await ask().then(
      () => expect.fail('it was reached'),
      (failure: unknown) => failure,
    )
    if (error instanceof Failure) expect(error.kind).toBe('unreachable')
    // The proxy's pages answer a token request 503 for every error that is not the grant's.
    else if (mode.startsWith('auth.oauth.registration: proxy, a ')) expect(error).not.toBeInstanceOf(GrantRefused)
    else expect(error).toBeInstanceOf(IssuerUnreachable)
    expect(error).not.toHaveProperty('facts.signIn')
    // Nothing waits twice for one server.
    if (how === 'silent') expect(of.asked.filter((part) => part === away)).toHaveLength(1)
    of.state.away = undefined
    of.state.nowMs += 2_000
    await ask()
  })
})

test('F-17 while the keys cannot be read again, tokens by known keys do not wait for them', async () => {
  const of = provider()
  const reading: { wait: Promise<void> | undefined } = { wait: undefined }
  const fetch: Fetch = async (request) => {
    if (request.url.endsWith('/keys')) await reading.wait
    return of.fetch(request)
  }
  const server = new ResourceServer(oauth(), [], fetch, clockOf(of))
  expect(await server.verify(await jwt())).toBeDefined()
  of.state.away = 'keys'
  of.state.nowMs = 600_000
  expect(await server.verify(await jwt({ jti: 'first' }))).toBeDefined()
  // From now on an attempt to read them lasts as long as the test wants.
  const { promise, resolve } = Promise.withResolvers<void>()
  reading.wait = promise
  of.state.nowMs += 2_000
  expect(await server.verify(await jwt({ jti: 'second' }))).toBeDefined()
  const unknown = server.verify(await jwt({}, 'two'))
  resolve()
  await expect(unknown).rejects.toThrow(IssuerUnreachable)
})

test('F-17 the registration proxy goes on with what the provider said before, and asks it once for many', async () => {
  const of = provider()
  const proxy = proxyOf(of)
  const begin = (): Promise<string> => proxy.begin(REQUEST, 'browser', ORIGIN)
  await Promise.all([begin(), begin(), begin()])
  of.state.nowMs = 599_999
  await begin()
  expect(of.asked).toEqual(['metadata'])
  of.state.nowMs = 600_000
  of.state.away = 'metadata'
  for (let times = 0; times < 3; times++) expect(await begin()).toContain(`${ISSUER}/authorize`)
  expect(of.asked).toEqual(['metadata', 'metadata'])
  of.state.nowMs += 30_000
  await begin()
  expect(of.asked).toHaveLength(3)
})
