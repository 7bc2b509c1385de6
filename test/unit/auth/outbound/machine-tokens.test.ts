/** Tokens without a person, of a client of its own or exchanged for the caller's: when another is obtained, and how often a server may ask for more. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ExchangeCredential } from '../../../../src/auth/outbound/exchange-credential.ts'
import { MachineCredential } from '../../../../src/auth/outbound/machine-credential.ts'
import type { OAuthEnvironment } from '../../../../src/auth/outbound/environment.ts'
import type { FetchReply } from '../../../../src/auth/fetch/safe-fetch.ts'
import { TokenStore } from '../../../../src/auth/authorization-server/token-store.ts'
import { Seal } from '../../../../src/auth/seal.ts'

const SERVER = new URL('https://mcp.example/mcp')
const ISSUER = 'https://as.example'
const TTL_S = 3_600
const METADATA = { issuer: ISSUER, token_endpoint: `${ISSUER}/token`, grant_types_supported: ['client_credentials'] }
const OPTIONS = {
  issuer: ISSUER,
  client: { id: 'trunkline', secret: 's', privateKey: undefined, algorithm: '' },
  scopes: undefined,
  isPrivate: false,
} as const

/** An issuer whose tokens are `token-1`, `token-2`, … until it is away; the clock stands until it is set. */
const scene = () => {
  const clock = { nowMs: 0, isAway: false, isRefusing: false, asked: 0, busy: undefined as FetchReply | undefined }
  let granted = 0
  const environment: OAuthEnvironment = {
    fetch: async ({ url }) => {
      clock.asked++
      if (clock.isAway) throw new Error('away')
      if (clock.busy !== undefined && url.endsWith('/token')) return clock.busy
      if (clock.isRefusing && url.endsWith('/token')) return { status: 400, text: '{"error":"invalid_grant"}' }
      const answer = url.endsWith('/token')
        ? { access_token: `token-${++granted}`, token_type: 'Bearer', expires_in: TTL_S }
        : METADATA
      return { status: 200, text: JSON.stringify(answer) }
    },
    store: new TokenStore(new Seal({ keys: [Buffer.alloc(32, 7)] }), undefined, () => {}),
    now: () => clock.nowMs,
    subject: () => 'token of the caller',
    isCallerIssuer: (issuer) => issuer === ISSUER,
    subjectRefused: () => {},
    secrets: () => {},
  }
  return { clock, environment }
}

describe.each([
  ['of its own', (environment: OAuthEnvironment) => new MachineCredential(SERVER, { ...OPTIONS, mode: 'client' }, environment)],
  [
    'exchanged',
    (environment: OAuthEnvironment) =>
      new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', environment),
  ],
])('F-17 a token %s', (_whose, credentialFor) => {
  const endMs = TTL_S * 1_000
  /** The token that a request is sent with at a time, and whether the request waits for it. */
  const scenario = () => {
    const { clock, environment } = scene()
    const credential = credentialFor(environment)
    const sentAt = async (nowMs: number) => {
      clock.nowMs = nowMs
      const wait = credential.ready()
      await wait
      return [credential.bearer.value, wait !== undefined]
    }
    return { clock, credential, sentAt }
  }

  test('is used until half a minute before its end, and then while another is obtained', async () => {
    const { credential, sentAt } = scenario()
    expect([await sentAt(0), await sentAt(endMs - 30_001), await sentAt(endMs - 30_000)]).toEqual([
      ['Bearer token-1', true],
      ['Bearer token-1', false],
      ['Bearer token-1', false],
    ])
    await vi.waitFor(() => expect(credential.bearer.value).toBe('Bearer token-2'))
    expect(await sentAt(endMs)).toEqual(['Bearer token-2', false])
  })

  test('is used to its end while the issuer is away, and not after it', async () => {
    const { clock, credential, sentAt } = scenario()
    await sentAt(0)
    clock.isAway = true
    for (const nowMs of [endMs - 30_000, endMs - 1]) {
      expect(await sentAt(nowMs)).toEqual(['Bearer token-1', false])
      // The renewal has failed.
      await credential.renew({ used: 'Bearer token-1', status: 401, challenge: undefined }).catch(() => undefined)
    }
    await expect(sentAt(endMs)).rejects.toThrow()
    clock.isAway = false
    expect(await sentAt(endMs)).toEqual(['Bearer token-2', true])
  })

  test('is used to its end while the issuer says that it is unavailable', async () => {
    const { clock, credential, sentAt } = scenario()
    await sentAt(0)
    clock.busy = { status: 400, text: '{"error":"temporarily_unavailable"}' }
    expect(await sentAt(endMs - 30_000)).toEqual(['Bearer token-1', false])
    await credential.renew({ used: 'Bearer token-1', status: 401, challenge: undefined }).catch(() => undefined)
    clock.busy = undefined
    expect(await sentAt(endMs - 1)).toEqual(['Bearer token-1', false])
  })

  test.each([
    [20_000, 20_000],
    // A pause is waited for as long as that of a server.
    [3_600_000, 30_000],
  ])('is requested again after the pause that the issuer asks for: of %i ms after %i ms', async (asked, waitedMs) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { clock, sentAt } = scenario()
    clock.busy = { status: 429, text: '', retryAfterMs: asked }
    await expect(sentAt(0)).rejects.toMatchObject({ kind: 'unreachable', facts: { status: 429, retryAfterMs: waitedMs } })
    const before = clock.asked
    clock.busy = undefined
    vi.advanceTimersByTime(waitedMs - 1)
    await expect(sentAt(0)).rejects.toMatchObject({ kind: 'unreachable', facts: { retryAfterMs: 1 } })
    expect(clock.asked).toBe(before)
    vi.advanceTimersByTime(1)
    expect(await sentAt(0)).toEqual(['Bearer token-1', true])
  })
})

test('a token whose renewal the issuer refuses is not sent any more, although it is valid for some seconds', async () => {
  const { clock, environment } = scene()
  const credential = new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', environment)
  await credential.ready()
  Object.assign(clock, { nowMs: TTL_S * 1_000 - 30_000, isRefusing: true })
  expect(credential.ready()).toBeUndefined()
  await vi.waitFor(() => expect(credential.bearer.value).toBeUndefined())
  await expect(credential.ready()).rejects.toThrow()
})

test('a token that cannot be exchanged again is not sent any more, nor by what goes out without a new one', async () => {
  const { clock, environment } = scene()
  const credential = new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', environment)
  await credential.ready()
  Object.assign(clock, { nowMs: TTL_S * 1_000, isAway: true })
  await expect(credential.ready()).rejects.toThrow()
  expect(credential.bearer.value).toBeUndefined()
})

describe('B245 the secret of a client', () => {
  const OTHER = 'https://other.example'
  /** A server that names an issuer, which the test changes, and the token endpoints that got the secret. */
  const naming = () => {
    const server = { issuer: ISSUER, isKnown: true }
    const { environment } = scene()
    const sent: string[] = []
    const fetch: OAuthEnvironment['fetch'] = async ({ url }) => {
      if (url.endsWith('/token')) {
        sent.push(url)
        if (!server.isKnown) return { status: 401, text: '{"error":"invalid_client"}' }
        return {
          status: 200,
          text: JSON.stringify({ access_token: `token-${sent.length}`, token_type: 'Bearer', expires_in: 1 }),
        }
      }
      const { origin } = new URL(url)
      const document = url.includes('oauth-protected-resource')
        ? { resource: SERVER.href, authorization_servers: [server.issuer] }
        : { ...METADATA, issuer: origin, token_endpoint: `${origin}/token` }
      return { status: 200, text: JSON.stringify(document) }
    }
    const credential = (issuer?: string) =>
      new MachineCredential(SERVER, { ...OPTIONS, mode: 'client', issuer }, { ...environment, fetch })
    return { server, sent, credential }
  }

  test('is sent to no other issuer than the one that has accepted it, also by the next process', async () => {
    const { server, sent, credential } = naming()
    await credential().ready()
    server.issuer = OTHER
    await expect(credential().ready()).rejects.toMatchObject({
      kind: 'auth_required',
      message: `client_id is of ${ISSUER}, and the server names ${OTHER} now; if that is right, set issuer beside client_id`,
    })
    expect(sent).toEqual([`${ISSUER}/token`])
  })

  test('is sent to the configured issuer, which also replaces the one before', async () => {
    const { server, sent, credential } = naming()
    await credential().ready()
    server.issuer = OTHER
    await credential(OTHER).ready()
    await credential().ready()
    expect(sent).toEqual([`${ISSUER}/token`, `${OTHER}/token`, `${OTHER}/token`])
  })

  test('belongs to no issuer that refuses it', async () => {
    const { server, sent, credential } = naming()
    Object.assign(server, { issuer: OTHER, isKnown: false })
    await expect(credential().ready()).rejects.toMatchObject({ kind: 'auth_required' })
    Object.assign(server, { issuer: ISSUER, isKnown: true })
    await credential().ready()
    expect(sent).toEqual([`${OTHER}/token`, `${ISSUER}/token`])
  })
})

test('B247 a server may ask for more scopes as often again once it has refused a token as such', async () => {
  const { environment } = scene()
  const credential = new MachineCredential(SERVER, { ...OPTIONS, mode: 'client' }, environment)
  await credential.ready()
  const refuse = (status: 401 | 403): Promise<void> =>
    credential.renew({ used: credential.bearer.value, status, challenge: undefined })
  const stepsUntilRefused = async (): Promise<number> => {
    for (let steps = 0; steps < 10; steps++) {
      try {
        await refuse(403)
      } catch {
        return steps
      }
    }
    return Infinity
  }
  expect([await stepsUntilRefused(), await stepsUntilRefused()]).toEqual([2, 0])
  await refuse(401)
  expect(await stepsUntilRefused()).toBe(2)
})

test('B247 each operation may need scopes of its own, however many there are', async () => {
  const { environment } = scene()
  const credential = new MachineCredential(SERVER, { ...OPTIONS, mode: 'client' }, environment)
  await credential.ready()
  const need = (scope: string): Promise<void> =>
    credential.renew({
      used: credential.bearer.value,
      status: 403,
      challenge: `Bearer error="insufficient_scope", scope="${scope}"`,
    })
  for (const scope of ['read', 'write', 'delete', 'share']) await need(scope)
  expect(credential.bearer.value).toBe('Bearer token-5')
  // More of the same does not help.
  await need('share')
  await expect(need('share')).rejects.toMatchObject({ kind: 'scope_required' })
  // Nor do scopes that a server invents.
  for (let made = 4; made < 32; made++) await need(`made-up-${made}`)
  await expect(need('made-up')).rejects.toMatchObject({ kind: 'scope_required' })
})

test('an exchanged token that a server refuses is exchanged again, once for all, and never for more rights', async () => {
  const { environment } = scene()
  const credential = new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', environment)
  await credential.ready()
  const renew = (used: string | undefined, status: 401 | 403 = 401): Promise<void> =>
    credential.renew({ used, status, challenge: undefined })
  await expect(renew('Bearer token-1', 403)).rejects.toMatchObject({ kind: 'forbidden', facts: { status: 403 } })
  await Promise.all([renew('Bearer token-1'), renew('Bearer token-1'), renew('Bearer token-1', 403)])
  expect(credential.bearer.value).toBe('Bearer token-2')
  // A request that was sent with the old one.
  await renew('Bearer token-1')
  await renew('Bearer token-1', 403)
  expect(credential.bearer.value).toBe('Bearer token-2')
})

test.each([
  ['invalid_grant', ['ann', 'token of the caller']],
  ['invalid_request', ['ann', 'token of the caller']],
  ['invalid_token', ['ann', 'token of the caller']],
  ['invalid_target', undefined],
])("the error %s of an exchange blames the caller's token, or not", async (error, blamed) => {
  const { environment } = scene()
  const refused: unknown[] = []
  const fetch: OAuthEnvironment['fetch'] = async ({ url }) =>
    url.endsWith('/token') ? { status: 400, text: JSON.stringify({ error }) } : { status: 200, text: JSON.stringify(METADATA) }
  const credential = new ExchangeCredential(SERVER, { ...OPTIONS, mode: 'exchange', audience: undefined }, 'ann', {
    ...environment,
    fetch,
    subjectRefused: (...names) => void refused.push(names),
  })
  await expect(credential.ready()).rejects.toMatchObject({ kind: 'auth_required' })
  expect(refused).toEqual(blamed === undefined ? [] : [blamed])
})

test('6.3.1 a caller’s token is sent to no other issuer than its own', async () => {
  const { environment } = scene()
  const sent: string[] = []
  const fetch: OAuthEnvironment['fetch'] = (request) => {
    if (request.body !== undefined) sent.push(request.body)
    return environment.fetch(request)
  }
  const callerOf = (issuer: string, isCallerIssuer = environment.isCallerIssuer): ExchangeCredential =>
    new ExchangeCredential(
      SERVER,
      { ...OPTIONS, mode: 'exchange', audience: undefined },
      JSON.stringify([issuer, 'sub', 'ann']),
      { ...environment, fetch, isCallerIssuer },
    )
  await expect(callerOf('https://partner.example').ready()).rejects.toMatchObject({
    kind: 'auth_required',
    message: 'the caller signed in at another issuer than credentials.exchange.issuer, which cannot exchange its token',
  })
  expect(sent).toEqual([])
  // Frameworks add a slash.
  for (const issuer of [ISSUER, `${ISSUER}/`]) await callerOf(issuer).ready()
  expect(sent).toHaveLength(2)
  // The operator chose an issuer for all callers, where none of them signs in.
  await callerOf('https://partner.example', () => false).ready()
  expect(sent).toHaveLength(3)
})

test('B242 a token is requested where the challenge says, if no well-known place does', async () => {
  const { environment } = scene()
  const named = 'https://mcp.example/metadata'
  const sent: string[] = []
  const fetch: OAuthEnvironment['fetch'] = async (request) => {
    const { url, body } = request
    if (body !== undefined) sent.push(url)
    if (url === named) return { status: 200, text: JSON.stringify({ resource: SERVER.href, authorization_servers: [ISSUER] }) }
    return new URL(url).origin === SERVER.origin ? { status: 404, text: '' } : environment.fetch(request)
  }
  const options = { ...OPTIONS, mode: 'client', issuer: undefined } as const
  const credential = new MachineCredential(SERVER, options, { ...environment, fetch })
  await credential.ready()
  // The server itself may be no authorization server: the secret is not tried there.
  expect([credential.bearer.value, sent]).toEqual([undefined, []])
  await credential.renew({ used: undefined, status: 401, challenge: `Bearer resource_metadata="${named}"` })
  expect([credential.bearer.value, sent]).toEqual(['Bearer token-1', [`${ISSUER}/token`]])
  // A server of 2025-03-26 names none in its challenge either.
  const old = new MachineCredential(SERVER, options, { ...environment, fetch, store: scene().environment.store })
  await old.ready()
  await expect(old.renew({ used: undefined, status: 401, challenge: undefined })).rejects.toThrow('no token')
  expect(sent.at(-1)).toBe(`${SERVER.origin}/token`)
})
