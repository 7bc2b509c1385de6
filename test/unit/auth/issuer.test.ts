/** What an authorization server is asked, how often, and where it may send us (BRIDGING 6.2.9; T-07, T-09). */
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { AnswerTimeout, SafeFetch } from '../../../src/auth/fetch/safe-fetch.ts'
import type { Fetch, FetchRequest } from '../../../src/auth/fetch/safe-fetch.ts'
import { Issuer, IssuerUnreachable } from '../../../src/auth/inbound/verify/issuer.ts'
import { ResourceServer } from '../../../src/auth/inbound/verify/resource-server.ts'
import { oauthOf } from '../../support/credentials.ts'
import { listening } from '../../support/listening.ts'
import type { ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'

const ISSUER = 'https://idp.test/realm'
const AUDIENCE = 'https://gw.test/mcp'
const WALL_MS = 1_800_000_000_000
const makeKey = (id: string) => ({ id, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) })
type Key = ReturnType<typeof makeKey>

const tokenBy = ({ id, privateKey }: Key, claims: object = {}): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: WALL_MS / 1_000 + 600, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: id })
    .sign(privateKey)

/** An authorization server on a socket. */
const answering = (answer: (request: { readonly url: string }) => object | undefined) => {
  const server = createServer((request, response) => {
    const found = answer({ url: request.url ?? '' })
    if (found === undefined) response.writeHead(404).end()
    else response.end(JSON.stringify(found))
  })
  return listening(server)
}

/** A resource server whose authorization server is a function, and whose time stands still. */
const set = (answer: (url: string) => string | number | Promise<string>, facts: Partial<ResourceServerOptions> = {}) => {
  const asked: FetchRequest[] = []
  const time = { monotonicMs: 0 }
  const fetch: Fetch = async (request) => {
    asked.push(request)
    const reply = await answer(request.url)
    return typeof reply === 'number' ? { status: reply, text: '' } : { status: 200, text: reply }
  }
  const { oauth } = oauthOf({ issuer: ISSUER }, AUDIENCE, facts)
  const server = new ResourceServer(oauth!, [], fetch, { wallMs: () => WALL_MS, monotonicMs: () => time.monotonicMs })
  return { server, asked, time, urls: () => asked.map(({ url }) => url) }
}
const METADATA = `https://idp.test/.well-known/oauth-authorization-server/realm`
const metadata = (facts: object = {}): string =>
  JSON.stringify({ issuer: ISSUER, jwks_uri: 'https://idp.test/keys', introspection_endpoint: 'https://idp.test/look', ...facts })
const jwks = (...keys: readonly Key[]): string =>
  JSON.stringify({ keys: keys.map(({ id, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid: id, alg: 'ES256' })) })

const [first, second, strange] = ['first', 'second', 'strange'].map(makeKey) as [Key, Key, Key]

describe('metadata', () => {
  test('is looked for in three places, and only by that issuer itself', async () => {
    const { server, urls } = set((url) =>
      url.includes('realm/.well-known') ? metadata() : url.endsWith('/keys') ? jwks(first) : 404,
    )
    expect(await server.verify(await tokenBy(first))).toMatchObject({ identity: { scopes: [] } })
    expect(urls()).toEqual([
      METADATA,
      'https://idp.test/.well-known/openid-configuration/realm',
      'https://idp.test/realm/.well-known/openid-configuration',
      'https://idp.test/keys',
    ])
  })
  test.each(['https://idp.test/realm/', 'https://idp.test', 'https://evil.test/realm', undefined])(
    'that says it is of %s is not believed',
    async (issuer) => {
      const { server } = set((url) => (url.endsWith('/keys') ? jwks(first) : metadata({ issuer })))
      await expect(server.verify(await tokenBy(first))).rejects.toThrow(IssuerUnreachable)
    },
  )
  test('is asked for once by many at a time, not at all without a token, and again at the earliest after 2 s where it failed', async () => {
    let isDown = true
    const { server, asked, time } = set((url) => (isDown ? 503 : url.endsWith('/keys') ? jwks(first) : metadata()))
    expect(asked).toEqual([])
    const token = await tokenBy(first)
    const ends = await Promise.allSettled(Array.from({ length: 20 }, () => server.verify(token)))
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(asked).toHaveLength(3)
    isDown = false
    time.monotonicMs = 1_999
    await expect(server.verify(token)).rejects.toThrow(IssuerUnreachable)
    expect(asked).toHaveLength(3)
    time.monotonicMs = 2_000
    expect(await server.verify(token)).toBeDefined()
  })
})

describe('metadata of an issuer that is asked again', () => {
  /** An issuer that answers each request in this way; the error, if it is not reached. */
  const issuerAt = (answer: (url: string) => { status: number; text: string } | Error, name = ISSUER) => {
    const [asked, time] = [[] as string[], { nowMs: 0 }]
    const fetch: Fetch = async ({ url }) => {
      asked.push(url)
      const found = answer(url)
      if (found instanceof Error) throw found
      return found
    }
    const issuer = new Issuer(name, fetch, () => time.nowMs)
    const errorOf = (asking: Promise<unknown>): Promise<IssuerUnreachable> =>
      asking.then(
        () => expect.fail('it was reached'),
        (error: unknown) => (error instanceof IssuerUnreachable ? error : expect.fail(String(error))),
      )
    return { issuer, asked, time, errorOf }
  }
  const found = (text: string) => ({ status: 200, text })
  const missing = { status: 404, text: '' }

  test('is read again after ten minutes, and kept where it cannot be read', async () => {
    let text: string | undefined = metadata()
    const { issuer, asked, time } = issuerAt(() => (text === undefined ? missing : found(text)))
    const at = async (nowMs: number) => {
      time.nowMs = nowMs
      return [(await issuer.metadata()).jwksUri, asked.length]
    }
    expect([await at(5), await at(600_004)]).toEqual([
      ['https://idp.test/keys', 1],
      ['https://idp.test/keys', 1],
    ])
    text = metadata({ jwks_uri: 'https://idp.test/new' })
    expect(await at(600_005)).toEqual(['https://idp.test/new', 2])
    text = undefined
    expect([await at(1_200_005), await at(1_200_006)]).toEqual([
      ['https://idp.test/new', 5],
      ['https://idp.test/new', 5],
    ])
  })

  test('is not read again within 2 s after it was not found', async () => {
    const { issuer, asked, time, errorOf } = issuerAt(() => missing)
    for (const [nowMs, count] of [
      [0, 3],
      [1_999, 3],
      [2_000, 6],
    ] as const) {
      time.nowMs = nowMs
      const { message, remedy } = await errorOf(issuer.metadata())
      expect([message, remedy, asked.length]).toEqual([
        `no metadata of ${ISSUER}: the authorization server cannot be asked ` +
          `(${ISSUER}/.well-known/openid-configuration answered HTTP 404)`,
        'write issuer exactly as its tokens do in "iss"; where it has no metadata, set jwks_uri beside issuer',
        count,
      ])
    }
  })

  test.each([
    [
      metadata({ issuer: 'https://other.test' }),
      'describes the issuer "https://other.test"',
      'as its metadata and its tokens do',
    ],
    [metadata({ issuer: undefined }), 'describes the issuer nothing', 'as its metadata and its tokens do'],
    ['x', 'is no JSON object', 'as its tokens do in "iss"'],
  ])('a wrong document tells more than missing ones: %s', async (text, why, remedy) => {
    for (const place of [METADATA, `${ISSUER}/.well-known/openid-configuration`]) {
      const { issuer, errorOf } = issuerAt((url) => (url === place ? found(text) : missing))
      const error = await errorOf(issuer.metadata())
      expect(error.message).toBe(`no metadata of ${ISSUER}: ${place} ${why}`)
      expect(error.remedy).toContain(`write issuer exactly ${remedy}`)
    }
  })

  test.each([
    [404, ''],
    [429, 'the issuer cannot serve requests now'],
    [499, ''],
    [500, 'the issuer cannot serve requests now'],
  ])('an answer with status %i has the remedy "%s"', async (status, remedy) => {
    const { issuer, errorOf } = issuerAt(() => ({ status, text: '' }))
    const error = await errorOf(issuer.request('https://idp.test/keys?secret=1', true))
    expect([error.name, error.message, error.remedy]).toEqual([
      'IssuerUnreachable',
      `the authorization server cannot be asked (https://idp.test/keys answered HTTP ${status})`,
      remedy,
    ])
    expect((await errorOf(issuer.request('nonsense', false))).message).toContain('(the address answered HTTP')
  })

  const CHECK = 'check that the issuer runs, the network from here, and HTTPS_PROXY'
  test.each([
    ['ENOTFOUND', 'check the name in issuer, the resolver from here, and HTTPS_PROXY'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'use the name that its certificate is for'],
    ['CERT_HAS_EXPIRED', 'renew its certificate, or set the clock'],
    ['CERT_NOT_YET_VALID', 'renew its certificate, or set the clock'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'name the authority of its certificate with NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'name the authority of its certificate with NODE_EXTRA_CA_CERTS'],
    ['EPROTO', 'check that TLS is spoken at this port'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'check that TLS is spoken at this port'],
    ['ECONNREFUSED', CHECK],
    [undefined, ''],
  ])('a connection that ends with %s has the remedy "%s"', async (code, remedy) => {
    const cause = Object.assign(new Error('why'), code !== undefined && { code })
    const { issuer, errorOf } = issuerAt(() => new Error('failed', { cause }))
    const error = await errorOf(issuer.request('https://idp.test/keys', true))
    expect([error.message, error.remedy]).toEqual(['the authorization server cannot be asked (failed)', remedy])
  })

  test('one that gives no answer in time is asked at one place, and the remedy is kept', async () => {
    const { issuer, asked, errorOf } = issuerAt(() => new AnswerTimeout('no answer within 5 s'))
    const error = await errorOf(issuer.metadata())
    expect([error.remedy, new IssuerUnreachable('no keys', error).remedy, asked]).toEqual([CHECK, CHECK, [METADATA]])
  })
})

describe('keys', () => {
  const serving = (published: { keys: string | number }) => set((url) => (url.endsWith('/keys') ? published.keys : metadata()))

  test('a key that is not known is looked for once; strangers cause six fetches, then one in five seconds, and between them nothing is said of their tokens', async () => {
    const published = { keys: jwks(first) }
    const { server, asked, time } = serving(published)
    expect(await server.verify(await tokenBy(first))).toBeDefined()
    const fetched = asked.length
    published.keys = jwks(first, second)
    const tokens = await Promise.all([tokenBy(second), tokenBy(strange), tokenBy(strange, { sub: 'bob' })])
    const verified = await Promise.all(tokens.map((token) => server.verify(token)))
    expect(verified.map((admitted) => admitted !== undefined)).toEqual([true, false, false])
    for (let at = 0; at < 10; at++) await server.verify(await tokenBy(makeKey(`k${at}`))).catch(() => undefined)
    expect(asked.length - fetched).toBeLessThanOrEqual(6)
    await expect(server.verify(await tokenBy(makeKey('m')))).rejects.toThrow(IssuerUnreachable)
    const before = asked.length
    time.monotonicMs = 5_000
    for (let at = 0; at < 10; at++) await server.verify(await tokenBy(makeKey(`n${at}`))).catch(() => undefined)
    expect(asked).toHaveLength(before + 1)
  })
  test('a key that was looked for and is not there is looked for again after 5 s, for tokens that name it', async () => {
    const published = { keys: jwks(first) }
    const { server, asked, time } = serving(published)
    const token = await tokenBy(strange)
    expect(await server.verify(token)).toBeUndefined()
    published.keys = jwks(first, strange)
    const before = asked.length
    time.monotonicMs = 4_999
    expect(await server.verify(await tokenBy(strange, { jti: 'a' }))).toBeUndefined()
    expect(asked).toHaveLength(before)
    time.monotonicMs = 5_000
    expect(await server.verify(await tokenBy(strange, { jti: 'b' }))).toBeDefined()
  })
  test('F-17 a key that is published a moment after a stranger named another one: its tokens are never refused', async () => {
    const published = { keys: jwks(first) }
    const { server, time } = serving(published)
    expect(await server.verify(await tokenBy(first))).toBeDefined()
    expect(await server.verify(await tokenBy(strange))).toBeUndefined()
    for (let at = 0; at < 20; at++) await server.verify(await tokenBy(makeKey(`k${at}`))).catch(() => undefined)
    published.keys = jwks(first, second)
    await expect(server.verify(await tokenBy(second))).rejects.toThrow(IssuerUnreachable)
    time.monotonicMs = 5_000
    expect(await server.verify(await tokenBy(second))).toBeDefined()
  })
  test('a key that is not known, while the issuer is away, says nothing about the token; it is looked for again after 2 s', async () => {
    const published: { keys: string | number } = { keys: jwks(first) }
    const { server, time } = serving(published)
    expect(await server.verify(await tokenBy(first))).toBeDefined()
    published.keys = 503
    await expect(server.verify(await tokenBy(second))).rejects.toThrow(IssuerUnreachable)
    // Also where it is not asked again yet.
    await expect(server.verify(await tokenBy(second))).rejects.toThrow(IssuerUnreachable)
    expect(await server.verify(await tokenBy(first, { jti: 'x' }))).toBeDefined()
    published.keys = jwks(first, second)
    time.monotonicMs = 2_000
    expect(await server.verify(await tokenBy(second))).toBeDefined()
    expect(await server.verify(await tokenBy(strange))).toBeUndefined()
  })
  test('a key that is published no more stops being good after ten minutes', async () => {
    const published = { keys: jwks(first) }
    const { server, time } = serving(published)
    const token = await tokenBy(first)
    time.monotonicMs = 100_000
    expect(await server.verify(token)).toBeDefined()
    published.keys = jwks(second)
    time.monotonicMs = 699_999
    expect(await server.verify(token)).toBeDefined()
    time.monotonicMs = 700_000
    expect(await server.verify(token)).toBeUndefined()
  })
  test('F-17 of an issuer that names no key in its tokens, each of its keys is tried, as while it changes them', async () => {
    const { server } = serving({ keys: jwks(first, second) })
    const unnamed = async (key: Key): Promise<string> => tokenBy({ ...key, id: undefined as unknown as string })
    const verified = await Promise.all([first, second, strange].map(async (key) => server.verify(await unnamed(key))))
    expect(verified.map((admitted) => admitted !== undefined)).toEqual([true, true, false])
    const { checks } = await server.examine(await unnamed(strange))
    expect(checks.at(-1)?.refusal).toMatchObject({ cause: 'signature', got: 'another' })
  })
  test('F-17 of an issuer that names no key in its tokens, a new key is looked for once a signature fits none, at the rate of unknown keys', async () => {
    const published = { keys: jwks(first) }
    const { server, asked, time } = serving(published)
    const unnamed = async (key: Key, claims: object = {}): Promise<string> =>
      tokenBy({ ...key, id: undefined as unknown as string }, claims)
    expect(await server.verify(await unnamed(first))).toBeDefined()
    const forged = await unnamed(strange)
    expect(await server.verify(forged)).toBeUndefined()
    const before = asked.length
    expect(await server.verify(forged)).toBeUndefined()
    expect(asked).toHaveLength(before)
    published.keys = jwks(first, second)
    expect(await server.verify(await unnamed(second))).toBeDefined()
    expect(asked).toHaveLength(before + 1)
    // Invented signatures: nothing is said of their tokens once the rate is used up, since the key may be new.
    const ends = [before]
    for (let at = 0; at < 10; at++)
      await server.verify(await unnamed(strange, { jti: `${at}` })).catch((error: unknown) => {
        expect(error).toBeInstanceOf(IssuerUnreachable)
        ends.push(at)
      })
    expect([asked.length - before <= 6, ends.length > 1]).toEqual([true, true])
    expect(await server.verify(await unnamed(first, { jti: 'x' }))).toBeDefined()
    time.monotonicMs = 5_000
    expect(await server.verify(await unnamed(strange, { jti: 'y' }))).toBeUndefined()
  })
  test('keys that cannot be fetched again stay good; without any, nothing is said about a token', async () => {
    const published: { keys: string | number } = { keys: 500 }
    const { server, time } = serving(published)
    const token = await tokenBy(first)
    await expect(server.verify(token)).rejects.toThrow(IssuerUnreachable)
    published.keys = jwks(first)
    time.monotonicMs = 2_000
    expect(await server.verify(token)).toBeDefined()
    published.keys = 'no JSON'
    time.monotonicMs = 1_000_000
    expect(await server.verify(token)).toBeDefined()
  })
})

describe('where its document may send us', () => {
  test.each([
    [ISSUER, 'https://idp.test/keys', 'private'],
    [ISSUER, 'https://idp.test:8443/keys', 'public'],
    [ISSUER, 'https://elsewhere.test/keys', 'public'],
    [ISSUER, 'http://169.254.169.254/latest', 'public'],
    [ISSUER, 'nonsense', 'public'],
  ])('T-09 of %s to %s: addresses that are %s', async (_issuer, jwksUri, reach) => {
    const { server, asked } = set((url) => (url === jwksUri ? jwks(first) : metadata({ jwks_uri: jwksUri })))
    await server.verify(await tokenBy(first))
    expect(asked.map((request) => [request.url, request.reach])).toEqual([
      [METADATA, 'private'],
      [jwksUri, reach],
    ])
  })
  test('what the operator has named may be anywhere', async () => {
    const { server, asked } = set(() => jwks(first), { jwksUri: 'https://10.0.0.1/keys' })
    expect(await server.verify(await tokenBy(first))).toBeDefined()
    expect(asked.map((request) => [request.url, request.reach])).toEqual([['https://10.0.0.1/keys', 'private']])
  })
})

describe('introspection', () => {
  const introspection = { endpoint: undefined, clientId: 'us & them', clientSecret: 'hush:hush' }
  const active = { active: true, sub: 'alice', aud: AUDIENCE, exp: WALL_MS / 1_000 + 600, scope: 'mcp:connect' }
  const looking = (answer: object | string | number) =>
    set((url) => (url.endsWith('/look') ? (typeof answer === 'object' ? JSON.stringify(answer) : answer) : metadata()), {
      introspection,
    })

  test('asks as ourselves, and posts the token', async () => {
    const { server, asked } = looking(active)
    expect(await server.verify('opaque+token')).toMatchObject({ identity: { scopes: ['mcp:connect'] }, audiences: [AUDIENCE] })
    expect(asked.at(-1)).toMatchObject({
      url: 'https://idp.test/look',
      body: 'token=opaque%2Btoken&token_type_hint=access_token',
      headers: { authorization: `Basic ${Buffer.from('us%20%26%20them:hush%3Ahush').toString('base64')}` },
    })
  })
  test.each<[string, object | string]>([
    ['not active', { ...active, active: false }],
    ['active in words', { ...active, active: 'true' }],
    ['of another issuer', { ...active, iss: 'https://evil.test' }],
    ['for somebody else', { ...active, aud: 'https://other.test' }],
    ['for nobody', { ...active, aud: undefined }],
    ['past its end', { ...active, exp: WALL_MS / 1_000 - 61 }],
    ['without an end', { ...active, exp: undefined }],
    ['before its beginning', { ...active, nbf: WALL_MS / 1_000 + 61 }],
    ['bound to a key', { ...active, cnf: { jkt: 'x' } }],
    ['of a client alone', { ...active, sub: undefined, client_id: 'app' }],
    ['of a user without sub', { ...active, sub: undefined, client_id: 'app', username: 'bob' }],
    ['null', 'null'],
    ['no JSON', 'active'],
  ])('a token that is %s is refused', async (_name, answer) => {
    expect(await looking(answer).server.verify('opaque')).toBeUndefined()
  })
  test('T-22 an answer with 10,000 groups is read, and all of them can choose toolsets; one above 256 KiB is not', async () => {
    const groups = (count: number) => Array.from({ length: count }, (_, at) => `team-${at}`)
    await using issuer = await answering(({ url }) => (url === '/look' ? { ...active, groups: groups(10_000) } : undefined))
    const ask = async (endpoint: string) => {
      await using safe = new SafeFetch()
      const { oauth } = oauthOf({ issuer: ISSUER }, AUDIENCE, { introspection: { ...introspection, endpoint } })
      const rule = { claim: 'groups', issuer: undefined, has: 'team-9999', is: undefined, toolsets: ['build'] }
      const clock = { wallMs: () => WALL_MS, monotonicMs: () => 0 }
      return await new ResourceServer(oauth!, [rule], safe.fetch, clock).verify('opaque')
    }
    expect(await ask(`${issuer.url}/look`)).toMatchObject({ identity: { toolsets: ['build'] } })
    await using larger = await answering(() => ({ ...active, groups: groups(100_000) }))
    await expect(ask(`${larger.url}/look`)).rejects.toThrow('more than 262144 bytes')
  })
  test('nothing is said about a token where nobody answers', async () => {
    await expect(looking(500).server.verify('opaque')).rejects.toThrow(IssuerUnreachable)
  })
  test('a JWT is never sent there, nor anything where it is not configured', async () => {
    const { server, asked } = looking(active)
    await server.verify(await tokenBy(strange)).catch(() => undefined)
    expect(asked.some(({ url }) => url.endsWith('/look'))).toBe(false)
    const without = set(() => metadata())
    expect(await without.server.verify('opaque')).toBeUndefined()
    expect(without.asked).toEqual([])
  })
})
