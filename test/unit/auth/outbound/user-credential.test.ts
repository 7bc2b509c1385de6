/** A person's token over its life: renewed by one of many, in one process or several, and never lost to another (F-17). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SignInOptions } from '../../../../src/auth/credential-options.ts'
import { SafeFetch } from '../../../../src/auth/fetch/safe-fetch.ts'
import { TokenStore } from '../../../../src/auth/authorization-server/token-store.ts'
import { UserCredential } from '../../../../src/auth/outbound/user-credential.ts'
import { Seal } from '../../../../src/auth/seal.ts'
import { Browser } from '../../../support/browser.ts'
import { FakeDownstream } from '../../../support/fake-downstream.ts'
import { MemoryStore } from '../../../../src/store/memory-store.ts'
import { StoreDown } from '../../../../src/store/store.ts'
import { FakeIssuer, protect } from '../../../support/fake-issuer.ts'
import { PER_USER } from '../../../support/credentials.ts'

const KEY = Buffer.alloc(32, 7)
const folder = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
const BACK = { redirectUri: 'http://127.0.0.1:9/connect/callback', document: undefined }
afterEach(() => rmSync(join(folder, 'credentials'), { recursive: true, force: true }))

/** `shared`: credentials are of replicas with a folder each and a store that they share. */
const scene = async (shared?: MemoryStore) => {
  let replicas = 0
  const issuer = await FakeIssuer.start({ ttl: 3_600 })
  const server = await FakeDownstream.start({ kind: 'modern http' })
  protect(server, issuer)
  const safe = new SafeFetch()
  let isSilent = false
  let nowMs = 0
  const secrets: string[] = []
  /** As another process would have it. */
  const credential = (principal = 'p', store = shared): UserCredential =>
    new UserCredential(
      {
        key: 'a',
        server: (server.address as { url: URL }).url,
        principal,
        signIn: PER_USER,
      },
      {
        fetch: (request) =>
          isSilent ? Promise.reject(new Error(`${new URL(request.url).origin}: no answer in time`)) : safe.fetch(request),
        store: new TokenStore(
          new Seal({ keys: [KEY] }),
          store === undefined ? folder : join(folder, 'credentials', String(replicas++)),
          (error) => expect(error).toBeUndefined(),
          store,
        ),
        now: () => nowMs,
        subject: () => undefined,
        isCallerIssuer: () => false,
        subjectRefused: () => undefined,
        secrets: (_holder, tokens) => secrets.push(...tokens),
      },
    )
  const signIn = async (who: UserCredential): Promise<void> => {
    const { url, pending } = await who.begin(BACK)
    const { headers } = await new Browser().step(url)
    await who.finish(pending, new URL(headers.get('location') ?? '').searchParams)
  }
  return {
    issuer,
    server,
    credential,
    signIn,
    secrets,
    silence: (silent: boolean) => (isSilent = silent),
    pass: (ms: number) => (nowMs += ms),
    passHour: () => (nowMs += 3_600_000),
    [Symbol.asyncDispose]: async () => {
      for (const item of [safe, server, issuer]) await item[Symbol.asyncDispose]()
    },
  }
}

const SHARING: readonly [string, () => MemoryStore | undefined][] = [
  ['processes of one folder', () => undefined],
  ['replicas of one store', () => new MemoryStore()],
]

test.each(SHARING)(
  'F-17 fifty that find it expired, in two %s, make one grant of a rotation-strict server',
  async (_name, store) => {
    await using stage = await scene(store())
    const one = stage.credential()
    await stage.signIn(one)
    const two = stage.credential()
    await vi.waitFor(() => expect(two.isSignedIn).toBe(true))
    stage.passHour()
    await Promise.all(Array.from({ length: 50 }, async (_, at) => (at % 2 === 0 ? one : two).ready()))
    expect(stage.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
    expect(one.bearer.value).toBe(two.bearer.value)
    expect(stage.issuer.find(one.bearer.value?.replace('Bearer ', ''))).toBeDefined()
  },
)

test('F-17 a replica learns of a sign-in at another one, and of what renews its token', async () => {
  await using stage = await scene(new MemoryStore())
  const [one, two] = [stage.credential(), stage.credential()]
  let changes = 0
  two.onChange(() => changes++)
  await stage.signIn(one)
  await vi.waitFor(() => expect([two.isSignedIn, changes]).toEqual([true, 1]))
  expect(two.bearer.value).toBe(one.bearer.value)
  stage.issuer.expire()
  await one.renew({ used: one.bearer.value, status: 401, challenge: undefined })
  await vi.waitFor(() => expect(two.bearer.value).toBe(one.bearer.value))
  expect(stage.credential('another').isSignedIn).toBe(false)
})

test.each([
  ['was started', true],
  ['was not told of it', false],
])('F-28 a sign-in is found that a replica missed because it %s while the store was away', async (_, isLate) => {
  let isAway = false
  const shared = new (class extends MemoryStore {
    override async get(key: string): Promise<string | undefined> {
      if (isAway) throw new StoreDown('away')
      return super.get(key)
    }
    override async publish(channel: string, message: string): Promise<void> {
      if (!isAway) await super.publish(channel, message)
    }
  })()
  await using stage = await scene(shared)
  const one = stage.credential()
  const early = stage.credential()
  if (isLate) await stage.signIn(one)
  isAway = true
  const two = isLate ? stage.credential() : early
  if (!isLate) await stage.signIn(one)
  isAway = false
  await two.renew({ used: undefined, status: 401, challenge: 'Bearer' })
  expect(two.bearer.value).toBe(one.bearer.value)
})

test('F-17 F-28 a replica whose refresh token another one has used meanwhile, while it could not reach the store, gets the new tokens and removes none', async () => {
  const all = new MemoryStore()
  let isAway = false
  const away = <T>(work: () => Promise<T>): Promise<T> => (isAway ? Promise.reject(new StoreDown('away')) : work())
  /** The same store for a replica that cannot always reach it. */
  const cut = new (class extends MemoryStore {
    override get = (key: string) => away(() => all.get(key))
    override set = (key: string, value: string, ttlMs: number) => away(() => all.set(key, value, ttlMs))
    override delete = (key: string) => away(() => all.delete(key))
    override claim = (...args: Parameters<MemoryStore['claim']>) => away(() => all.claim(...args))
    override release = (key: string, value: string) => away(() => all.release(key, value))
  })()
  await using stage = await scene(all)
  const [one, two] = [stage.credential(), stage.credential('p', cut)]
  await stage.signIn(one)
  await two.ready()
  await two.renew({ used: undefined, status: 401, challenge: 'Bearer' })
  expect(two.bearer.value).toBe(one.bearer.value)
  stage.passHour()
  isAway = true
  await one.ready()
  stage.issuer.refuses = () => {
    isAway = false
    return true
  }
  stage.issuer.refusal = { error: 'invalid_grant' }
  await two.ready()
  expect([two.isSignedIn, two.bearer.value]).toEqual([true, one.bearer.value])
  const three = stage.credential()
  await vi.waitFor(() => expect(three.bearer.value).toBe(one.bearer.value))
})

test('F-17 where a server gives no refresh tokens, a sign-in at another process is found once the token is refused', async () => {
  await using stage = await scene()
  const other = new TokenStore(new Seal({ keys: [KEY] }), folder, (error) => expect(error).toBeUndefined())
  const signIn = (accessToken: string): void =>
    other.write(['tokens', 'a', (stage.server.address as { url: URL }).url.href, 'p'], {
      accessToken,
      provider: { issuer: stage.issuer.url, tokenEndpoint: `${stage.issuer.url}/token` },
      registered: { client: { id: 'c' } },
    })
  signIn('old')
  const one = stage.credential()
  expect(one.bearer.value).toBe('Bearer old')
  const refused = { used: 'Bearer old', status: 401, challenge: 'Bearer' } as const
  await expect(one.renew(refused)).rejects.toMatchObject({ facts: { signIn: true } })
  signIn('new')
  await one.renew(refused)
  expect(one.bearer.value).toBe('Bearer new')
})

test('F-17 a sign-in at another process of the folder is used by the next call, which has the server tried again', async () => {
  await using stage = await scene()
  const [one, two] = [stage.credential(), stage.credential()]
  await expect(two.renew({ used: undefined, status: 401, challenge: 'Bearer' })).rejects.toMatchObject({
    facts: { signIn: true },
  })
  const changed = vi.fn<() => void>()
  two.onChange(changed)
  await stage.signIn(one)
  await two.ready()
  expect([two.bearer.value, changed.mock.calls.length]).toEqual([one.bearer.value, 1])
  await two.ready()
  expect(changed).toHaveBeenCalledOnce()
})

test.each(SHARING)('6.4 a sign-in that has ended is reported once, with the reason, among two %s', async (_name, store) => {
  const shared = store()
  await using stage = await scene(shared)
  const one = stage.credential()
  await stage.signIn(one)
  const two = stage.credential()
  await vi.waitFor(() => expect(two.isSignedIn).toBe(true))
  const ended: string[] = []
  one.onEnd(({ message }) => ended.push(`one ${message}`))
  two.onEnd(({ message }) => ended.push(`two ${message}`))
  stage.issuer.refuses = () => true
  stage.issuer.refusal = { error: 'invalid_grant', error_description: 'the session was closed' }
  stage.passHour()
  await expect(one.ready()).rejects.toMatchObject({ facts: { signIn: true } })
  // Without a store it learns of that by its own attempt.
  await Promise.resolve(two.ready()).catch(() => undefined)
  await Promise.resolve(one.ready())
  const why = 'needs sign-in: the sign-in has ended: the authorization server refused: "invalid_grant" ("the session was closed")'
  const other = shared === undefined ? 'needs sign-in: no longer signed in' : 'needs sign-in: the sign-in has ended'
  await vi.waitFor(() => expect(ended).toEqual([`one ${why}`, `two ${other}`]))
})

test('F-28 where nobody has signed in anywhere, a sign-in is asked for', async () => {
  await using stage = await scene(new MemoryStore())
  const one = stage.credential()
  await expect(one.renew({ used: undefined, status: 401, challenge: 'Bearer' })).rejects.toMatchObject({ kind: 'auth_required' })
  await expect(one.ready()).rejects.toMatchObject({ facts: { signIn: true } })
})

test('F-17 a credential that is closed learns of nothing more, and does not hold its server', async () => {
  await using stage = await scene(new MemoryStore())
  const [one, two, third] = [stage.credential(), stage.credential(), stage.credential()]
  const changed = vi.fn<() => void>()
  two.onChange(changed)
  two.close()
  await stage.signIn(one)
  await vi.waitFor(() => expect(third.isSignedIn).toBe(true))
  expect([two.isSignedIn, changed.mock.calls]).toEqual([false, []])
})

test.each(SHARING)(
  'F-17 a refused token that another of two %s has renewed is replaced, not renewed and not deleted',
  async (_name, store) => {
    await using stage = await scene(store())
    const one = stage.credential()
    await stage.signIn(one)
    const two = stage.credential()
    await vi.waitFor(() => expect(two.isSignedIn).toBe(true))
    const used = one.bearer.value
    stage.issuer.expire()
    await two.renew({ used, status: 401, challenge: undefined })
    await one.renew({ used, status: 401, challenge: undefined })
    expect(one.bearer.value).toBe(two.bearer.value)
    expect(stage.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
  },
)

test('B245 where the server names another authorization server, no refresh token is used, and the person is asked again', async () => {
  await using stage = await scene()
  await using other = await FakeIssuer.start()
  const one = stage.credential()
  await stage.signIn(one)
  protect(stage.server, other)
  const { headers } = await fetch((stage.server.address as { url: URL }).url, { method: 'POST' })
  const rejection = { used: one.bearer.value, status: 401, challenge: headers.get('www-authenticate') ?? undefined } as const
  await expect(one.renew(rejection)).rejects.toMatchObject({ kind: 'auth_required', facts: { signIn: true } })
  expect([stage.issuer.grants, other.grants]).toEqual([['authorization_code'], []])
})

test('B240 the code and the refresh token are exchanged for tokens of this server', async () => {
  await using stage = await scene()
  const one = stage.credential()
  await stage.signIn(one)
  stage.passHour()
  await one.ready()
  const { url } = stage.server.address as { url: URL }
  expect(stage.issuer.exchanges.map((params) => [params.get('grant_type'), params.get('resource')])).toEqual([
    ['authorization_code', url.href],
    ['refresh_token', url.href],
  ])
})

test('B245 B247 the scopes of a sign-in are asked for again at its own authorization server, and at no other', async () => {
  await using stage = await scene()
  await using other = await FakeIssuer.start()
  const one = stage.credential()
  const scopeAsked = async (): Promise<string | null> => new URL((await one.begin(BACK)).url).searchParams.get('scope')
  const refused = (challenge: string): Promise<void> => one.renew({ used: one.bearer.value, status: 401, challenge })
  await expect(refused('Bearer scope="read"')).rejects.toMatchObject({ kind: 'auth_required' })
  await stage.signIn(one)
  expect((await scopeAsked())?.split(' ')).toContain('read')
  protect(stage.server, other)
  expect((await scopeAsked()) ?? '').not.toContain('read')
})

test.each([503, 404] as const)(
  'B245 a person is asked again where the server has moved to another authorization server and the old one renews nothing (%s)',
  async (away) => {
    await using stage = await scene()
    await using other = await FakeIssuer.start()
    const one = stage.credential()
    await stage.signIn(one)
    protect(stage.server, other)
    stage.issuer.away = away
    stage.passHour()
    await expect(one.ready()).rejects.toMatchObject({ kind: 'auth_required', facts: { signIn: true } })
    await stage.signIn(one)
    expect(other.find(one.bearer.value?.replace('Bearer ', ''))).toBeDefined()
    expect(other.registrations).toHaveLength(1)
  },
)

test('F-17 a token that is good for some seconds more is used while it is renewed, and while it cannot be', async () => {
  await using stage = await scene()
  const one = stage.credential()
  await stage.signIn(one)
  const before = one.bearer.value
  stage.pass(3_590_000)
  stage.silence(true)
  await one.ready()
  expect(one.bearer.value).toBe(before)
  stage.silence(false)
  await vi.waitFor(async () => {
    await one.ready()
    expect(one.bearer.value).not.toBe(before)
  })
  expect(stage.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
})

test('what cannot be renewed asks for a sign-in, here and wherever it is read again', async () => {
  await using stage = await scene()
  const one = stage.credential()
  await stage.signIn(one)
  stage.issuer.revoke()
  await expect(one.renew({ used: one.bearer.value, status: 401, challenge: undefined })).rejects.toMatchObject({
    kind: 'auth_required',
    facts: { signIn: true },
  })
  expect([one.isSignedIn, stage.credential().isSignedIn]).toEqual([false, false])
})

describe('B245 an authorization server that has forgotten our registration', () => {
  test.each(['invalid_client', 'unauthorized_client'])('and says so (%s) registers us again', async (error) => {
    await using stage = await scene()
    const one = stage.credential()
    await stage.signIn(one)
    Object.assign(stage.issuer, { refuses: () => true, refusal: { error } })
    stage.passHour()
    await expect(one.ready()).rejects.toMatchObject({ facts: { signIn: true } })
    stage.issuer.refuses = () => false
    await stage.signIn(one)
    expect(stage.issuer.authorizations.map((params) => params.get('client_id'))).toEqual(['client-1', 'client-2'])
  })

  test('and says so when it gets the code registers us again', async () => {
    await using stage = await scene()
    const one = stage.credential()
    Object.assign(stage.issuer, { refuses: () => true, refusal: { error: 'invalid_client' } })
    await expect(stage.signIn(one)).rejects.toMatchObject({ kind: 'auth_required' })
    stage.issuer.refuses = () => false
    await stage.signIn(one)
    expect(stage.issuer.authorizations.map((params) => params.get('client_id'))).toEqual(['client-1', 'client-2'])
  })

  test('and shows an error in the browser registers us again for the next attempt, and another error does not', async () => {
    await using stage = await scene()
    const one = stage.credential()
    const clientOf = async (): Promise<string | null> => new URL((await one.begin(BACK)).url).searchParams.get('client_id')
    expect([await clientOf(), await clientOf()]).toEqual(['client-1', 'client-2'])
    const { pending } = await one.begin(BACK)
    const denied = new URLSearchParams({ error: 'access_denied', iss: stage.issuer.url })
    await expect(one.finish(pending, denied)).rejects.toThrow('access_denied')
    expect([await clientOf(), stage.issuer.registrations.length]).toEqual(['client-3', 3])
  })
})

test('B250 a token is read by nobody but its principal', async () => {
  await using stage = await scene()
  await stage.signIn(stage.credential('p'))
  expect([stage.credential('p').isSignedIn, stage.credential('q').isSignedIn]).toEqual([true, false])
})

test('T-14 every token is named as a secret before it is used', async () => {
  await using stage = await scene()
  const one = stage.credential()
  await stage.signIn(one)
  expect(stage.secrets).toContain(one.bearer.value?.replace('Bearer ', ''))
})

test.each([503, 500, 429, 'silent'] as const)(
  'F-17 an authorization server that is away (%s) makes the server not reachable; nothing is forgotten, and no sign-in is asked for',
  async (away) => {
    await using stage = await scene()
    const one = stage.credential()
    await stage.signIn(one)
    stage.passHour()
    if (away === 'silent') stage.silence(true)
    else stage.issuer.away = away
    const failure = await one.ready()?.catch((error: unknown) => error)
    expect(failure).toMatchObject({ kind: 'unreachable', facts: { retryable: true } })
    expect(failure).not.toHaveProperty('facts.signIn')
    expect([one.isSignedIn, stage.credential().isSignedIn]).toEqual([true, true])
    stage.issuer.away = undefined
    stage.silence(false)
    await one.ready()
    expect(stage.issuer.grants).toEqual(['authorization_code', 'refresh_token'])
  },
)

describe('before and after a sign-in', () => {
  /** A credential at a provider that answers a grant with these members, and what it was asked. */
  const at = (
    signIn: Partial<SignInOptions> = {},
    store = new TokenStore(new Seal({ keys: [KEY] }), undefined, () => undefined),
  ) => {
    const provider: {
      issuer: string
      path: string
      old: number | undefined
      tokens: object
      status: number
      retryAfterMs?: number
    } = {
      issuer: 'https://as.example',
      path: '/token',
      /** Status at other paths; `undefined`: nothing answers there. */
      old: 404,
      tokens: { access_token: 'a1', token_type: 'Bearer' },
      status: 200,
    }
    const client = { id: 'trunkline', secret: undefined, privateKey: undefined, algorithm: '' }
    const who = new UserCredential(
      {
        key: 'a',
        server: new URL('https://mcp.example/mcp'),
        principal: 'p',
        signIn: {
          mode: 'user',
          perUser: true,
          client,
          clientDocument: undefined,
          scopes: undefined,
          isPrivate: false,
          ...signIn,
        },
      },
      {
        fetch: async ({ url }) => {
          const { issuer, old, path, tokens, status, retryAfterMs } = provider
          if (url.endsWith('/token') && !url.endsWith(path)) {
            if (old === undefined) throw new Error('connect ECONNREFUSED')
            return { status: old, text: '' }
          }
          if (url.endsWith('/token')) return { status, text: JSON.stringify(tokens), retryAfterMs }
          const document = url.includes('oauth-protected-resource')
            ? { resource: 'https://mcp.example/mcp', authorization_servers: [issuer] }
            : {
                issuer,
                authorization_endpoint: `${issuer}/authorize`,
                token_endpoint: `${issuer}${path}`,
                code_challenge_methods_supported: ['S256'],
                scopes_supported: ['offline_access'],
              }
          return { status: 200, text: JSON.stringify(document) }
        },
        store,
        now: () => 0,
        subject: () => undefined,
        isCallerIssuer: () => false,
        subjectRefused: () => undefined,
        secrets: () => undefined,
      },
    )
    const scopeAsked = async (): Promise<string | null> => new URL((await who.begin(BACK)).url).searchParams.get('scope')
    const signedIn = async (): Promise<void> => {
      const { pending } = await who.begin(BACK)
      await who.finish(pending, new URLSearchParams({ code: 'c', state: pending.state }))
    }
    const refused = (status: 401 | 403, challenge?: string): Promise<void> =>
      who.renew({ used: who.bearer.value, status, challenge })
    return { who, provider, store, signedIn, scopeAsked, refused }
  }
  const needed = (kind: string, why: string) => ({ kind, message: `needs sign-in: ${why}`, facts: { signIn: true } })

  test('a request goes out without a token until the server asks for one', async () => {
    const { who, signedIn, refused } = at()
    expect([who.ready(), who.bearer.value, who.isSignedIn, who.principal]).toEqual([undefined, undefined, false, 'p'])
    await expect(refused(401)).rejects.toMatchObject(needed('auth_required', 'the server refuses the token'))
    await expect(who.ready()).rejects.toMatchObject(needed('auth_required', 'not signed in yet'))
    let changes = 0
    who.onChange(() => changes++)
    await signedIn()
    expect([who.ready(), who.bearer.value, who.isSignedIn, changes]).toEqual([undefined, 'Bearer a1', true, 1])
    // A request of before says nothing about the new token.
    await who.renew({ used: undefined, status: 401, challenge: undefined })
  })

  test('F-17 a refresh token stays where the answer to its use names no other', async () => {
    const { who, provider, signedIn, refused } = at()
    provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
    await signedIn()
    for (const access of ['a2', 'a3']) {
      provider.tokens = { access_token: access, token_type: 'Bearer' }
      await refused(401)
      expect(who.bearer.value).toBe(`Bearer ${access}`)
    }
  })

  test.each([404, undefined])(
    'F-17 a token endpoint that has moved (the old one: %s) is found in the metadata of its issuer',
    async (old) => {
      const { who, provider, store, signedIn, refused } = at()
      provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
      await signedIn()
      Object.assign(provider, { old, path: '/oauth2/token', tokens: { access_token: 'a2', token_type: 'Bearer' } })
      await refused(401)
      expect(who.bearer.value).toBe('Bearer a2')
      expect(store.read(['tokens', 'a', 'https://mcp.example/mcp', 'p'])).toMatchObject({
        provider: { tokenEndpoint: 'https://as.example/oauth2/token' },
      })
      provider.issuer = 'https://another.example'
      provider.tokens = { access_token: 'a3', token_type: 'Bearer' }
      await refused(401).catch(() => undefined)
      expect(who.bearer.value).not.toBe('Bearer a3')
    },
  )

  describe('B247 a server that wants more scopes', () => {
    const more = (scope: string): string => `Bearer error="insufficient_scope", scope="${scope}"`

    test('gets two sign-ins for the same ones', async () => {
      const { signedIn, scopeAsked, refused } = at()
      await signedIn()
      for (let times = 0; times < 2; times++) {
        await expect(refused(403, more('write'))).rejects.toMatchObject(needed('scope_required', 'the server wants more scopes'))
        expect(await scopeAsked()).toContain('write')
        await signedIn()
      }
      await expect(refused(403, more('write'))).rejects.toMatchObject({
        kind: 'forbidden',
        message: 'the server wants more scopes than signing in has brought',
        facts: { status: 403 },
      })
      await expect(refused(403, more('admin'))).rejects.toMatchObject(needed('scope_required', 'the server wants more scopes'))
    })

    test('gets two more once the sign-in has ended', async () => {
      const { who, provider, signedIn, refused } = at()
      const tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
      provider.tokens = tokens
      await signedIn()
      for (let times = 0; times < 2; times++) {
        await expect(refused(403, more('write'))).rejects.toMatchObject({ kind: 'scope_required' })
        await signedIn()
      }
      Object.assign(provider, { status: 400, tokens: { error: 'invalid_grant' } })
      await expect(refused(401)).rejects.toMatchObject(
        needed('auth_required', 'the sign-in has ended: the authorization server refused: "invalid_grant"'),
      )
      expect(who.isSignedIn).toBe(false)
      Object.assign(provider, { status: 200, tokens })
      await signedIn()
      await expect(refused(403, more('write'))).rejects.toMatchObject({ kind: 'scope_required' })
    })

    test('gets them however many calls are refused before the person signs in', async () => {
      const { signedIn, scopeAsked, refused } = at()
      await signedIn()
      for (let calls = 0; calls < 5; calls++)
        await expect(refused(403, more('write'))).rejects.toMatchObject(needed('scope_required', 'the server wants more scopes'))
      expect(await scopeAsked()).toContain('write')
    })

    test.each([
      ['names none', 'Bearer error="insufficient_scope"'],
      ['names offline_access, which is not requested', more('write offline_access')],
    ])('gets two where its challenge %s', async (_, challenge) => {
      const { signedIn, refused } = at({ offline: false })
      for (let times = 0; times < 2; times++) {
        await signedIn()
        await expect(refused(403, challenge)).rejects.toMatchObject({ kind: 'scope_required' })
      }
      await signedIn()
      await expect(refused(403, challenge)).rejects.toMatchObject({ kind: 'forbidden' })
    })
  })

  test('B247 a sign-in that has ended is followed by one for all scopes that were requested before', async () => {
    const { who, provider, signedIn, scopeAsked, refused } = at()
    provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
    await expect(refused(401, 'Bearer scope="read"')).rejects.toMatchObject({ kind: 'auth_required' })
    await signedIn()
    await expect(refused(403, 'Bearer error="insufficient_scope", scope="write"')).rejects.toMatchObject({
      kind: 'scope_required',
    })
    await signedIn()
    Object.assign(provider, { tokens: { error: 'invalid_grant' }, status: 400 })
    await expect(refused(401, 'Bearer scope="read"')).rejects.toMatchObject({ kind: 'auth_required' })
    expect(who.isSignedIn).toBe(false)
    expect((await scopeAsked())?.split(' ')).toEqual(expect.arrayContaining(['read', 'write']))
  })

  test('configured scopes are a limit, which the operator is told of', async () => {
    const { signedIn, refused } = at({ scopes: ['read', 'write'] })
    await signedIn()
    await expect(refused(403, 'Bearer scope="read admin"')).rejects.toMatchObject({
      kind: 'forbidden',
      message: 'the server wants the scopes read admin; credentials.oauth.scopes does not name all of them',
    })
    for (const challenge of ['Bearer scope="read write"', 'Bearer'])
      await expect(refused(403, challenge)).rejects.toMatchObject(needed('scope_required', 'the server wants more scopes'))
  })

  test('offline_access is asked for, unless that is switched off', async () => {
    expect(await at().scopeAsked()).toContain('offline_access')
    expect(await at({ offline: false }).scopeAsked()).toBeNull()
  })

  test('B245 a configured client is sent to the issuer where it was first used, and to no other', async () => {
    const { provider, store, scopeAsked } = at()
    await scopeAsked()
    await scopeAsked()
    provider.issuer = 'https://other.example'
    await expect(scopeAsked()).rejects.toMatchObject({
      kind: 'auth_required',
      message:
        'client_id is of https://as.example, and the server names https://other.example now; if that is right, set issuer beside client_id',
    })
    const other = { id: 'another', secret: undefined, privateKey: undefined, algorithm: '' }
    const second = at({ client: other }, store)
    second.provider.issuer = 'https://other.example'
    expect(await second.scopeAsked()).toContain('offline_access')
    // The operator decides otherwise.
    const configured = at({ issuer: 'https://other.example' }, store)
    configured.provider.issuer = 'https://other.example'
    expect(await configured.scopeAsked()).toContain('offline_access')
    expect(await scopeAsked()).toContain('offline_access')
  })

  test.each([
    ['invalid_grant', 'auth_required', 'needs sign-in: the sign-in has ended', false],
    ['invalid_client', 'auth_required', 'needs sign-in: the sign-in has ended', false],
    // GitHub.
    ['bad_refresh_token', 'auth_required', 'needs sign-in: the sign-in has ended', false],
    // Slack.
    ['invalid_refresh_token', 'auth_required', 'needs sign-in: the sign-in has ended', false],
    // Entra ID.
    ['interaction_required', 'auth_required', 'needs sign-in: the sign-in has ended', false],
    ['invalid_request', 'auth_required', 'the token could not be renewed', true],
    // Entra ID.
    ['temporarily_unavailable', 'unreachable', 'the token could not be renewed', true],
    ['server_error', 'unreachable', 'the token could not be renewed', true],
  ])('a renewal that ends with %s is %s', async (error, kind, message, isSignedIn) => {
    const { who, provider, signedIn, refused } = at()
    provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
    await signedIn()
    Object.assign(provider, { tokens: { error }, status: 400 })
    await expect(refused(401)).rejects.toMatchObject({ kind, message: expect.stringContaining(message) })
    expect(who.isSignedIn).toBe(isSignedIn)
  })

  test('F-17 no renewal is tried before the pause that an authorization server asks for (Retry-After) has passed', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { who, provider, signedIn, refused } = at()
    provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
    await signedIn()
    Object.assign(provider, { tokens: {}, status: 429, retryAfterMs: 20_000 })
    const paused = (retryAfterMs: number) => ({ kind: 'unreachable', facts: { status: 429, retryAfterMs, retryable: true } })
    await expect(refused(401)).rejects.toMatchObject(paused(20_000))
    Object.assign(provider, { tokens: { access_token: 'a2', token_type: 'Bearer' }, status: 200 })
    vi.advanceTimersByTime(19_999)
    await expect(refused(401)).rejects.toMatchObject(paused(1))
    expect(who.isSignedIn).toBe(true)
    vi.advanceTimersByTime(1)
    await refused(401)
    expect(who.bearer.value).toBe('Bearer a2')
  })

  test.each([400, 401, 403, 404])(
    'a renewal that ends with HTTP %i and no reason offers a sign-in, and is tried again',
    async (status) => {
      const { who, provider, signedIn, refused } = at()
      provider.tokens = { access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' }
      await signedIn()
      Object.assign(provider, { tokens: 'Forbidden', status })
      await expect(refused(401)).rejects.toMatchObject({
        kind: 'auth_required',
        facts: { signIn: true },
        message: `needs sign-in: the token could not be renewed (HTTP ${status})`,
      })
      // The answer may be that of a proxy in between.
      Object.assign(provider, { tokens: { access_token: 'a2', token_type: 'Bearer' }, status: 200 })
      await refused(401)
      expect(who.bearer.value).toBe('Bearer a2')
    },
  )
})
