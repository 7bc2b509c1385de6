/** Who passes the guard of all endpoints, and what is told to those who do not (BRIDGING 6.1; T-04). */
import { describe, expect, test, vi } from 'vitest'
import type { Admitted } from '../../../src/auth/identity.ts'
import { CredentialVerifier, VerifierBusy } from '../../../src/auth/inbound/credential-verifier.ts'
import type { AuthOptions, ResourceServerOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import type { Seal } from '../../../src/auth/seal.ts'
import { SubjectTokens } from '../../../src/auth/subject-tokens.ts'
import { Guard } from '../../../src/host/http/guard/guard.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { join } from '../../../src/wire/message/payload.ts'
import type { Parts } from '../../../src/wire/message/payload.ts'

const SCOPES = ['mcp:connect', 'mcp:a', 'mcp:a:write']
const oauth = {
  issuer: 'https://issuer.test',
  otherIssuers: [],
  audience: 'https://gw.test/mcp',
  otherAudiences: [],
  scopes: SCOPES,
  requestScopes: [],
  advertise: 'entrance',
} as Partial<ResourceServerOptions> as ResourceServerOptions

/** A guard whose tokens are those of `admit`. */
const guardOf = (admitted?: Admitted | Promise<Admitted | undefined>, more: Partial<ResourceServerOptions> | 'tokens' = {}) => {
  const admit = vi.spyOn(CredentialVerifier.prototype, 'admit').mockReturnValue(admitted)
  const lines: string[] = []
  const say = (_: object, text: string) => void lines.push(text)
  const denied = vi.fn<(facts: object) => void>()
  const subjects = new SubjectTokens(() => undefined)
  const context = { log: { debug: () => undefined, info: say, warn: say, error: say }, denied, subjects }
  const auth: AuthOptions = { tokens: [], oauth: more === 'tokens' ? undefined : { ...oauth, ...more }, map: [] }
  // Cast: no test comes to a fetch or a seal.
  return {
    guard: new Guard(auth, '/mcp', () => Promise.reject(new Error('none')), {} as Seal, context),
    admit,
    denied,
    subjects,
    lines,
  }
}
const identity = (more: Partial<Admitted['identity']> = {}) => ({
  principal: 'ann',
  toolsets: undefined,
  scopes: undefined,
  ...more,
})
const valid = (more: Partial<Admitted> = {}): Admitted => ({
  identity: identity(),
  untilMs: Infinity,
  audiences: undefined,
  ...more,
})

interface Asked {
  readonly path?: string
  readonly query?: string
  readonly method?: string
  readonly authorization?: string
  readonly count?: number
  readonly notes?: HttpRequest['notes']
}
const ask = ({ path = '/mcp', query = '', method = 'POST', authorization = 'Bearer tok', count = 1, notes }: Asked = {}) => {
  const replies: { status: number; headers: Readonly<Record<string, string>>; body: string }[] = []
  let leave = (): void => undefined
  const request = {
    path,
    query,
    method,
    notes,
    client: '192.0.2.1',
    count: () => count,
    header: () => (authorization === '' ? undefined : authorization),
    onDisconnect: (callback: () => void) => (leave = callback),
    reply: (status: number, headers: Readonly<Record<string, string>>, body: Parts = []) =>
      void replies.push({ status, headers, body: join(body).toString() }),
  } as unknown as HttpRequest
  return { request, replies, leave: () => leave() }
}
const METADATA = 'resource_metadata="https://gw.test/.well-known/oauth-protected-resource/mcp"'

describe('the token', () => {
  test.each([
    ['Bearer tok', 'tok'],
    ['bearer  tok ', 'tok'],
    ['BEARER t', 't'],
  ])('of %j is %s', (authorization, token) => {
    const { guard, admit } = guardOf(valid())
    const { request, replies } = ask({ authorization })
    expect(guard.check(request)).toEqual(valid())
    expect([admit.mock.lastCall?.[0], replies]).toEqual([token, []])
  })

  test('is looked up once for requests with the same head', () => {
    const { guard, admit } = guardOf(valid())
    const notes = { credential: undefined }
    void guard.check(ask({ notes }).request)
    void guard.check(ask({ notes, authorization: 'Bearer other' }).request)
    expect(admit.mock.calls.map(([token]) => token)).toEqual(['tok', 'tok'])
    expect(admit.mock.calls[0]?.[1]).toBe(admit.mock.calls[1]?.[1])
  })

  test.each<[Asked, number, string | undefined]>([
    [{ authorization: '' }, 401, undefined],
    [{ authorization: 'Basic dG9r' }, 401, undefined],
    [{ authorization: 'Bearer ' }, 401, undefined],
    [{ count: 2 }, 400, 'invalid_request'],
    [{ query: 'access_token=tok' }, 400, 'invalid_request'],
    [{ query: 'a=b&access_token=tok' }, 400, 'invalid_request'],
    [{}, 401, 'invalid_token'],
  ])('T-04 nobody passes with %j', (asked, status, error) => {
    const { guard, denied } = guardOf(undefined)
    const { request, replies } = ask(asked)
    expect(guard.check(request)).toBeUndefined()
    const challenge = `Bearer ${error === undefined ? '' : `error="${error}", `}scope="mcp:connect", ${METADATA}`
    expect(replies).toMatchObject([{ status, headers: { 'WWW-Authenticate': challenge } }])
    const { error: told, error_description: text } = JSON.parse(replies[0]?.body ?? '') as Record<string, string>
    expect([told, text]).toEqual([
      error ?? 'invalid_token',
      status === 400
        ? 'an access token belongs in one Authorization header, and nowhere else'
        : 'a valid access token for this endpoint is needed',
    ])
    const reason = status === 400 ? 'invalid' : 'unauthorized'
    const facts = { reason, status, path: '/mcp', client: '192.0.2.1', detail: error ?? 'no token' }
    expect(denied.mock.calls).toEqual([[facts]])
  })

  test('in a query that only looks like one is none of ours', () => {
    expect(guardOf(valid()).guard.check(ask({ query: 'no_access_token=x' }).request)).toEqual(valid())
  })

  test('without an authorization server the challenge names none', () => {
    for (const [authorization, challenge] of [
      ['', 'Bearer realm="trunkline"'],
      ['Bearer x', 'Bearer realm="trunkline", error="invalid_token"'],
    ] as const) {
      const { request, replies } = ask({ authorization })
      void guardOf(undefined, 'tokens').guard.check(request)
      expect(replies[0]?.headers['WWW-Authenticate']).toBe(challenge)
    }
    expect(guardOf(undefined, 'tokens').guard.challenge('/mcp', ['mcp:a'])).toBe(
      'Bearer realm="trunkline", error="insufficient_scope"',
    )
    expect(guardOf().guard.challenge('/mcp', ['mcp:a'])).toBe(
      `Bearer error="insufficient_scope", scope="mcp:connect mcp:a", ${METADATA}`,
    )
  })
})

test.each<[string, readonly string[] | undefined, boolean]>([
  ['/mcp', ['https://gw.test/mcp'], true],
  ['/mcp', ['https://gw.test'], true],
  ['/mcp', ['https://gw.test/servers/a/mcp'], false],
  ['/servers/a/mcp', ['https://gw.test/mcp'], false],
  ['/servers/a/mcp', undefined, true],
])('T-04 at %s a token for %j passes: %s', async (path, audiences, passes) => {
  const { guard, lines, denied } = guardOf(valid({ audiences }))
  const { request, replies } = ask({ path })
  expect(guard.check(request)).toEqual(passes ? valid({ audiences }) : undefined)
  expect(replies.map(({ status }) => status)).toEqual(passes ? [] : [401])
  expect(lines).toEqual(passes ? [] : ['a token was rejected'])
  if (!passes) expect(denied.mock.lastCall?.[0]).toMatchObject({ principal: 'ann', detail: 'invalid_token' })
  if (path === '/mcp') expect(await guard.identityOf('tok')).toEqual(passes ? identity() : undefined)
  if (path === '/mcp') expect(await guard.principalOf('tok')).toBe(passes ? 'ann' : undefined)
})

test('a token that is not known has no principal; without an authorization server each one that is known has', async () => {
  expect(await guardOf(undefined).guard.principalOf('tok')).toBeUndefined()
  expect(await guardOf(valid({ audiences: ['x'] }), 'tokens').guard.principalOf('tok')).toBe('ann')
})

test('who may use nothing is told so, without a challenge', () => {
  const { guard, denied } = guardOf(valid({ unmapped: { cause: 'map' } as unknown as NonNullable<Admitted['unmapped']> }))
  const { request, replies } = ask()
  expect(guard.check(request)).toBeUndefined()
  expect(replies).toMatchObject([{ status: 403, headers: { 'Content-Type': 'application/json' } }])
  expect([replies[0]?.headers['WWW-Authenticate'], JSON.parse(replies[0]?.body ?? '')]).toMatchObject([
    undefined,
    { error: 'access_denied' },
  ])
  expect(denied.mock.lastCall?.[0]).toMatchObject({ reason: 'forbidden', status: 403, principal: 'ann' })
})

describe('where servers exchange tokens', () => {
  const exchanging = (untilMs: number, isStatic = false) => {
    const one = guardOf(valid({ untilMs, audiences: isStatic ? undefined : ['https://gw.test'] }))
    one.subjects.want(true)
    return one
  }

  test('a token is remembered; a static one cannot be exchanged', () => {
    const { guard, subjects } = exchanging(Infinity)
    expect(guard.check(ask().request)).toBeDefined()
    expect(subjects.of('ann')).toBe('tok')
    const other = exchanging(Infinity, true)
    void other.guard.check(ask().request)
    expect(other.subjects.of('ann')).toBeUndefined()
  })

  test('F-27 a token passes only before its expiry, and not once it was refused', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { guard, lines } = exchanging(Date.now() + 60_000)
    const { request, replies } = ask()
    expect(guard.check(request)).toBeUndefined()
    expect([replies.map(({ status }) => status), lines]).toEqual([[401], ['a token was rejected']])
    const later = exchanging(Date.now() + 60_001)
    expect(later.guard.check(ask().request)).toBeDefined()
    later.subjects.refuse('ann', 'tok')
    expect([later.guard.check(ask().request), later.lines]).toEqual([undefined, []])
    expect(later.guard.check(ask({ authorization: 'Bearer new' }).request)).toBeDefined()
  })
})

describe('B238 the scopes of a token', () => {
  test.each<[path: string, granted: readonly string[] | undefined, required: string | undefined]>([
    ['/mcp', ['mcp:connect'], undefined],
    ['/mcp', undefined, undefined],
    ['/mcp', [], 'mcp:connect'],
    ['/mcp', ['mcp:a'], 'mcp:connect'],
    ['/mcp', ['mcp:connect:write'], 'mcp:connect'],
    ['/servers/a/mcp', ['mcp:connect'], 'mcp:connect mcp:a'],
    ['/servers/a/mcp', ['mcp:connect', 'mcp:a'], undefined],
    ['/servers/a/mcp', ['mcp:connect', 'mcp:a:write'], undefined],
    ['/servers/b/mcp', ['mcp:connect'], undefined],
  ])('at %s, granted %j: lacking of %s', (path, scopes, required) => {
    const { guard } = guardOf(valid({ identity: identity({ scopes }) }))
    const { request, replies } = ask({ path })
    expect(guard.check(request) === undefined).toBe(required !== undefined)
    expect(replies.map(({ status }) => status)).toEqual(required === undefined ? [] : [403])
    if (required !== undefined)
      expect(replies[0]?.headers['WWW-Authenticate']).toContain(`error="insufficient_scope", scope="${required}", `)
  })

  test('are of no interest where none are configured', () => {
    expect(guardOf(valid({ identity: identity({ scopes: [] }) }), { scopes: [] }).guard.check(ask().request)).toBeDefined()
  })
})

describe('a token that is being verified', () => {
  test('passes, or is refused, once that is known', async () => {
    expect(await guardOf(Promise.resolve(valid())).guard.check(ask().request)).toEqual(valid())
    const { request, replies } = ask()
    expect(await guardOf(Promise.resolve(undefined)).guard.check(request)).toBeUndefined()
    expect(replies.map(({ status }) => status)).toEqual([401])
  })

  test('passes nothing for a host that has left', async () => {
    const { request, leave } = ask()
    const checked = guardOf(Promise.resolve(valid())).guard.check(request)
    leave()
    expect(await checked).toBeUndefined()
  })

  test.each([
    [new VerifierBusy('busy'), 429],
    [new Error('no route'), 503],
  ])('and cannot be: %s', async (failure, status) => {
    const { guard, denied, lines } = guardOf(Promise.reject(failure))
    const { request, replies } = ask()
    expect(await guard.check(request)).toBeUndefined()
    expect(replies).toEqual([{ status, headers: { 'Retry-After': '2' }, body: '' }])
    expect(denied.mock.lastCall?.[0]).toMatchObject({ reason: 'overloaded', status, path: '/mcp' })
    expect(lines).toEqual(['a token could not be verified'])
  })
})

describe('documents for hosts without a credential', () => {
  const PROTECTED = '/.well-known/oauth-protected-resource'
  const ISSUER = '/.well-known/oauth-authorization-server'
  const serve = (asked: Asked, more?: Partial<ResourceServerOptions> | 'tokens') => {
    const one = guardOf(undefined, more)
    const { request, replies } = ask({ method: 'GET', ...asked })
    return { ...one, replies, isServed: one.guard.serves(request) }
  }

  test('are those of the endpoints, with GET alone', () => {
    const { replies, isServed } = serve({ path: PROTECTED })
    expect([isServed, replies[0]?.status, JSON.parse(replies[0]?.body ?? '')]).toMatchObject([
      true,
      200,
      { resource: 'https://gw.test/mcp' },
    ])
    expect(serve({ path: PROTECTED, method: 'POST' }).replies).toEqual([{ status: 405, headers: { Allow: 'GET' }, body: '' }])
  })

  test.each<[string, (Partial<ResourceServerOptions> | 'tokens')?]>([
    ['/.well-known/other'],
    [ISSUER],
    [PROTECTED, 'tokens'],
    ['/.well-known/other', { relaysMetadata: true }],
  ])('are no others: %s', (path, more) => {
    const { replies, isServed, denied } = serve({ path }, more)
    expect([isServed, replies.map(({ status }) => status)]).toEqual([true, [404]])
    expect(denied.mock.calls).toEqual([[{ reason: 'path', status: 404, path, client: '192.0.2.1' }]])
  })

  test('leave other paths alone', () => {
    expect(serve({ path: '/mcp' })).toMatchObject({ isServed: false, replies: [] })
  })

  test('of the issuer are relayed where that is configured', async () => {
    const metadata = vi.spyOn(CredentialVerifier.prototype, 'issuerMetadata').mockResolvedValue('{"issuer":"x"}')
    const { replies } = serve({ path: ISSUER }, { relaysMetadata: true })
    await Promise.resolve()
    expect(replies).toMatchObject([{ status: 200, body: '{"issuer":"x"}' }])
    metadata.mockRejectedValue(new Error('down'))
    const other = serve({ path: ISSUER }, { relaysMetadata: true })
    await new Promise(setImmediate)
    expect(other.replies).toEqual([{ status: 503, headers: { 'Retry-After': '2' }, body: '' }])
    expect(other.lines).toEqual(['the metadata of the authorization server cannot be relayed'])
  })
})
