/** With which client a person signs in, what is said to register one, and how long it is used (B245, B246). */
import { describe, expect, test } from 'vitest'
import type { SignInOptions } from '../../../../src/auth/credential-options.ts'
import type { Provider } from '../../../../src/auth/authorization-server/discovery.ts'
import { clientFor } from '../../../../src/auth/authorization-server/registration.ts'
import type { FetchRequest } from '../../../../src/auth/fetch/safe-fetch.ts'
import { TokenStore } from '../../../../src/auth/authorization-server/token-store.ts'
import { Seal } from '../../../../src/auth/seal.ts'
import { PER_USER } from '../../../support/credentials.ts'

const ISSUER = 'https://as.example'
const BACK = 'https://gw.example/connect/callback'
const DOCUMENT = 'https://gw.example/client.json'
const PUBLIC = { secret: undefined, privateKey: undefined, algorithm: '' }

interface Facts {
  readonly provider?: Partial<Provider>
  readonly options?: Partial<SignInOptions>
  readonly redirectUri?: string
  readonly document?: string | undefined
  readonly scope?: string
  readonly unanswered?: string
}
/** A provider that answers each registration in this way, what it was sent, and a clock. */
const scene = (answer: object | Error = {}, status = 201) => {
  const asked: FetchRequest[] = []
  const time = { nowMs: 0 }
  const trouble: { error?: Error } = {}
  const store = new TokenStore(new Seal({ keys: [Buffer.alloc(32, 7)] }), undefined, () => undefined)
  const ask = ({ provider, options, redirectUri = BACK, document, scope, unanswered }: Facts = {}) =>
    clientFor({
      provider: {
        issuer: ISSUER,
        resource: 'https://mcp.example/mcp',
        authorizationEndpoint: `${ISSUER}/authorize`,
        tokenEndpoint: `${ISSUER}/token`,
        registrationEndpoint: `${ISSUER}/register`,
        resourceScopes: undefined,
        scopes: undefined,
        tokenAuth: undefined,
        hasPkce: true,
        tellsIssuer: false,
        takesDocuments: false,
        ...provider,
      },
      options: { ...PER_USER, ...options },
      redirectUri,
      document,
      scope,
      unanswered,
      reach: 'public',
      fetch: async (request) => {
        asked.push(request)
        if (answer instanceof Error) throw answer
        if (trouble.error !== undefined) throw trouble.error
        return { status, text: JSON.stringify({ client_id: `client-${asked.length}`, ...answer }) }
      },
      store,
      now: () => time.nowMs,
    })
  const bodies = (): unknown[] => asked.map(({ body }) => JSON.parse(body ?? '') as unknown)
  return { ask, asked, bodies, time, trouble }
}

test.each([
  [{ error: 'invalid_redirect_uri' }, '"invalid_redirect_uri"'],
  [{ error: 'invalid_redirect_uri', error_description: 'no http' }, '"invalid_redirect_uri" ("no http")'],
  [{ error: 'x', error_description: `see ${'t'.repeat(40)}` }, '"x" ("see …")'],
])('a refused registration has the reason of the authorization server: %j', async (answer, reason) => {
  await expect(scene(answer, 400).ask()).rejects.toMatchObject({
    kind: 'auth_required',
    message: `${ISSUER} did not register us (HTTP 400): the authorization server refused: ${reason}`,
    facts: { status: 400 },
  })
})

test('a configured client comes first, then a document, then a registration', async () => {
  const { ask, asked } = scene()
  const client = { ...PUBLIC, id: 'ours', secret: 's' }
  const provider = { takesDocuments: true }
  expect(await ask({ options: { client }, provider, document: DOCUMENT })).toEqual({ client, auth: undefined })
  expect(await ask({ provider, document: DOCUMENT })).toEqual({ client: { ...PUBLIC, id: DOCUMENT }, auth: 'none' })
  const elsewhere = 'https://elsewhere.example/client.json'
  expect(await ask({ options: { clientDocument: elsewhere }, provider, document: DOCUMENT })).toMatchObject({
    client: { id: elsewhere },
  })
  expect(asked).toEqual([])
  expect(await ask({ document: DOCUMENT })).toMatchObject({ client: { id: 'client-1' } })
  expect(await ask({ provider })).toMatchObject({ client: { id: 'client-1' } })
  await expect(ask({ provider: { registrationEndpoint: undefined } })).rejects.toMatchObject({
    kind: 'auth_required',
    message: `${ISSUER} registers no clients: credentials.oauth needs a client_id`,
  })
})

describe('a registration', () => {
  test.each<[string, readonly string[] | undefined, string, string, string]>([
    ['without a secret, if that is possible', ['client_secret_post', 'none'], BACK, 'none', 'web'],
    ['with a secret in the header', ['client_secret_post', 'client_secret_basic'], BACK, 'client_secret_basic', 'web'],
    ['with a secret in the form', ['client_secret_post'], BACK, 'client_secret_post', 'web'],
    ['with a secret where nothing is said', undefined, BACK, 'client_secret_basic', 'web'],
    ['without a secret where nothing known is offered', ['tls_client_auth'], BACK, 'none', 'web'],
    ['of an application on this machine', ['none'], 'http://127.0.0.1:9/callback', 'none', 'native'],
  ])('is one %s', async (_, tokenAuth, redirectUri, auth, type) => {
    const { ask, asked, bodies } = scene()
    await ask({ provider: { tokenAuth }, redirectUri })
    expect(asked).toMatchObject([{ url: `${ISSUER}/register`, headers: { 'content-type': 'application/json' } }])
    expect(bodies()).toEqual([
      {
        client_name: 'Trunkline',
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: auth,
        application_type: type,
      },
    ])
  })

  test.each<[object, string | undefined, string | undefined]>([
    [{}, undefined, 'none'],
    [{ client_secret: 's' }, 's', undefined],
    [{ client_secret: 7 }, undefined, 'none'],
    [{ client_secret: 's', token_endpoint_auth_method: 'client_secret_post' }, 's', 'client_secret_post'],
    [{ client_secret: 's', token_endpoint_auth_method: 'private_key_jwt' }, 's', undefined],
  ])('that is answered with %j gives the secret %s and proves itself by %s', async (answer, secret, auth) => {
    expect(await scene(answer).ask()).toMatchObject({ client: { ...PUBLIC, id: 'client-1', secret }, auth })
  })

  test.each([408, 429, 500, 503])('that is answered with HTTP %i can be tried again', async (status) => {
    await expect(scene({}, status).ask()).rejects.toMatchObject({
      kind: 'unreachable',
      message: `we could not be registered: ${ISSUER} answered HTTP ${status}`,
    })
  })

  test.each<[number, object]>([
    [300, {}],
    [400, {}],
    [499, {}],
    [201, { client_id: 7 }],
  ])('that is answered with HTTP %i and %j is refused', async (status, answer) => {
    await expect(scene(answer, status).ask()).rejects.toMatchObject({
      kind: 'auth_required',
      message: `${ISSUER} did not register us (HTTP ${status})`,
      facts: { status },
    })
  })

  test('that is not answered can be tried again, with scopes as well', async () => {
    for (const facts of [{}, { scope: 'read' }]) {
      const { ask, asked } = scene(new Error('refused'))
      await expect(ask(facts)).rejects.toMatchObject({ kind: 'unreachable', message: 'we could not be registered: refused' })
      expect(asked).toHaveLength(1)
    }
  })

  test('that is refused without scopes is sent with them, if there are any', async () => {
    const [without, some] = [scene({}, 400), scene({}, 400)]
    await expect(without.ask()).rejects.toThrow('did not register us')
    await expect(some.ask({ scope: 'read' })).rejects.toThrow('did not register us')
    const scopesOf = ({ bodies }: typeof some): unknown[] => bodies().map((body) => (body as { scope?: string }).scope)
    expect([scopesOf(without), scopesOf(some)]).toEqual([[undefined], [undefined, 'read']])
  })
})

test('a registered client is used until ten minutes before its end, and at its own issuer and address only', async () => {
  const { ask, time } = scene({ client_secret_expires_at: 3_600 })
  const idAt = async (nowMs: number, facts: Facts = {}): Promise<string> => {
    time.nowMs = nowMs
    return (await ask(facts)).client.id
  }
  expect(await idAt(0)).toBe('client-1')
  expect(await idAt(0, { redirectUri: 'http://127.0.0.1:9/callback' })).toBe('client-2')
  expect(await idAt(0, { provider: { issuer: 'https://other.example' } })).toBe('client-3')
  expect([await idAt(3_000_000 - 1), await idAt(3_000_000)]).toEqual(['client-1', 'client-4'])
  const forever = scene({ client_secret_expires_at: 0 })
  for (const nowMs of [0, 1e15]) {
    forever.time.nowMs = nowMs
    expect(await forever.ask()).toMatchObject({ client: { id: 'client-1' } })
  }
})

test('B245 a registered client that got no answer is replaced, and used again if there is no other', async () => {
  const { ask, asked, trouble } = scene()
  const idAfter = async (unanswered?: string): Promise<string> =>
    (await ask({ ...(unanswered !== undefined && { unanswered }) })).client.id
  expect([await idAfter(), await idAfter('another'), await idAfter('client-1'), await idAfter()]).toEqual([
    'client-1',
    'client-1',
    'client-2',
    'client-2',
  ])
  trouble.error = new Error('refused')
  expect([await idAfter('client-2'), asked.length]).toEqual(['client-2', 3])
})
