/** A person's token over its life: renewed by one of many, in one process or several, and never lost to another (F-17). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { SafeFetch } from '../../../../src/auth/oauth/safe-fetch.ts'
import { TokenStore } from '../../../../src/auth/oauth/token-store.ts'
import { UserCredential } from '../../../../src/auth/oauth/user-credential.ts'
import { Seal } from '../../../../src/auth/seal.ts'
import { Browser } from '../../../support/browser.ts'
import { FakeDownstream } from '../../../support/fake-downstream.ts'
import { MemoryStore } from '../../../../src/store/memory-store.ts'
import { FakeIssuer, protect } from '../../../support/fake-issuer.ts'

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
  const credential = (principal = 'p'): UserCredential =>
    new UserCredential(
      {
        key: 'a',
        server: (server.address as { url: URL }).url,
        principal,
        signIn: {
          mode: 'user',
          perUser: true,
          client: undefined,
          clientDocument: undefined,
          scopes: undefined,
          isPrivate: false,
        },
      },
      {
        fetch: (request) =>
          isSilent ? Promise.reject(new Error(`${new URL(request.url).origin}: no answer in time`)) : safe.fetch(request),
        store: new TokenStore(
          new Seal({ keys: [KEY] }),
          shared === undefined ? folder : join(folder, 'credentials', String(replicas++)),
          (error) => expect(error).toBeUndefined(),
          shared,
        ),
        now: () => nowMs,
        subject: () => undefined,
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
