/** The guard before every route: what a stranger meets, and where a token belongs (BRIDGING 6.1; T-04, B233, B236, B237). */
import { describe, expect, test, vi } from 'vitest'
import type { AuthOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { corpus } from '../../support/corpus.ts'
import { bearer, oauthOf, staticToken, tokenOf, TWO_TOKENS } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, legacySse, modernHttp } from '../../support/fake-host.ts'
import { request } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { exchangeRaw, inTurn, statuses } from '../../support/fakes/raw-tcp.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const AUDIENCE = 'http://mcp.example.com/mcp'
const OAUTH = oauthOf({ issuer: 'http://127.0.0.1:9' }, AUDIENCE)
const start = (auth: AuthOptions = TWO_TOKENS): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo') }, host: { auth } })
const LIST = request(1, 'tools/list', {})

/** Every route there is and some there are not, with every method that one of them has. */
const ROUTES = [
  '/mcp',
  '/mcp/x',
  '/servers/a/mcp',
  '/servers/zz/mcp',
  '/sse',
  '/sse/x',
  '/messages?sessionId=x',
  '/',
  '/nothing',
  '/mcp/',
].flatMap((path) => ['GET', 'POST', 'DELETE', 'PUT'].map((method) => [method, path] as const))
const CREDENTIALS: readonly (readonly [string, string | undefined])[] = [
  ['no credential', undefined],
  ['an empty one', 'Bearer '],
  ['another scheme', `Basic ${tokenOf('A')}`],
  ['no scheme', tokenOf('A')],
  ['an unknown token', `Bearer ${tokenOf('Z')}`],
  ['a token and more', `Bearer ${tokenOf('A')}x`],
  ['the hash of a token', `Bearer ${TWO_TOKENS.tokens[0]?.hash}`],
  ['a session id', 'Bearer AAAAAAAAAAAAAAAAAAAAAA'],
]

describe.each([
  ['static tokens', TWO_TOKENS, /^Bearer realm="trunkline"/],
  [
    'an authorization server',
    { ...OAUTH, tokens: TWO_TOKENS.tokens },
    /^Bearer .*scope="mcp:connect", resource_metadata="http:\/\/mcp\.example\.com\/\.well-known\/oauth-protected-resource\//,
  ],
] as const)('with %s', (_name, auth, challenge) => {
  test.each(CREDENTIALS)(
    'T-04 B233 %s is answered 401 with a challenge on every route and method',
    async (_credential, authorization) => {
      await using gateway = await start(auth)
      for (const [method, path] of ROUTES) {
        const reply = await send(new URL(path, gateway.url), {
          method,
          headers: { authorization, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...(method === 'POST' && { body: LIST }),
        })
        expect([reply.status, reply.headers['www-authenticate']], `${method} ${path}`).toEqual([
          401,
          expect.stringMatching(challenge),
        ])
        // A request without a credential has made no mistake ([RFC 6750] 3.1).
        const hasBearer = authorization !== undefined && /^Bearer ./.test(authorization)
        expect(reply.headers['www-authenticate']?.includes('error=')).toBe(hasBearer)
        expect(JSON.parse(await reply.body)).toEqual({
          error: 'invalid_token',
          error_description: 'a valid access token for this endpoint is needed',
        })
      }
      expect(gateway.fake('a').received).toEqual([])
    },
  )

  test('T-04 strange spellings of paths lead nobody around the guard', async () => {
    await using gateway = await start(auth)
    for (const path of corpus('paths') as string[]) {
      const text = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
      const [status] = statuses(await exchangeRaw(gateway.url, text))
      expect([400, 401, ...(path.startsWith('/.well-known/') ? [404, 405] : [])], path).toContain(status)
    }
    expect(gateway.fake('a').received).toEqual([])
  })
})

test('whether we live and are ready is said without a credential, in a word', async () => {
  await using gateway = await start()
  for (const [path, word] of [
    ['/healthz', 'ok\n'],
    ['/readyz', 'ready\n'],
  ] as const) {
    const reply = await send(new URL(path, gateway.url), { method: 'GET' })
    expect([reply.status, await reply.body]).toEqual([200, word])
  }
})

test('T-01 T-02 Host and Origin are checked before the credential, and a preflight is answered without one', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.offering('echo') },
    host: { auth: TWO_TOKENS, allowedOrigins: ['https://app.example'] },
  })
  const good = bearer(tokenOf('A'))
  expect((await send(gateway.url, { headers: { ...good, host: 'evil.example' }, body: LIST })).status).toBe(403)
  expect((await send(gateway.url, { headers: { ...good, origin: 'https://evil.example' }, body: LIST })).status).toBe(403)
  const origin = 'https://app.example'
  const preflight = await send(gateway.url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-headers': 'authorization' },
  })
  expect(preflight.status).toBe(204)
  const refused = await send(gateway.url, { headers: { origin }, body: LIST })
  expect(refused.headers['access-control-expose-headers']).toContain('WWW-Authenticate')
  expect(refused.status).toBe(401)
})

test.each(['access_token=', 'a=b&access_token=', 'access_token=x&a='])(
  'B237 a token in the query (?%s…) is refused, good or not',
  async (query) => {
    await using gateway = await start()
    for (const headers of [{}, bearer(tokenOf('A'))]) {
      const reply = await send(new URL(`?${query}${tokenOf('A')}`, gateway.url), { headers, body: LIST })
      expect([reply.status, reply.headers['www-authenticate']]).toEqual([400, expect.stringContaining('error="invalid_request"')])
    }
    expect(gateway.fake('a').received).toEqual([])
  },
)

test.each([legacyHttp, legacySse, modernHttp])(
  'B236 over $name a token lets a host in, and each request brings it again',
  async ({ connect }) => {
    await using gateway = await start()
    let token = tokenOf('A')
    await using host = await connect(gateway, { token: () => token, deaf: true })
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }] })
    token = tokenOf('Z')
    const call = (arguments_: JsonMap) => host.begin('tools/call', { name: 'a__echo', arguments: arguments_ })
    const refused = call({ n: 1 })
    // An HTTP+SSE host takes answers from its stream alone.
    if (connect !== legacySse.connect) await expect(refused.response).resolves.toMatchObject({ error: 'invalid_token' })
    token = tokenOf('A')
    expect((await call({ n: 2 }).response).result).toMatchObject({ content: [{ text: '{"n":2}' }] })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  },
)

test('what comes on a pipe is asked for nothing', async () => {
  await using gateway = await start()
  for (const { connect } of everyTransport.filter(({ name }) => name.endsWith('stdio'))) {
    await using host = await connect(gateway)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }] })
  }
})

test('a token that has expired is refused, also while it is remembered', async () => {
  const expiresMs = Date.now() + 30_000
  await using gateway = await start({
    ...TWO_TOKENS,
    tokens: [staticToken('A', { expiresMs }), staticToken('B', { expiresMs: Date.now() - 1 })],
  })
  const statusOf = async (letter: string): Promise<number> =>
    (await send(gateway.url, { method: 'GET', headers: { ...bearer(tokenOf(letter)), accept: 'text/event-stream' } })).status
  vi.useFakeTimers({ toFake: ['Date'], now: expiresMs - 1 })
  expect(await statusOf('A')).toBe(400)
  expect(await statusOf('B')).toBe(401)
  vi.setSystemTime(expiresMs)
  expect(await statusOf('A')).toBe(401)
})

test('T-14 tokens and their hashes stand in no log line', async () => {
  await using gateway = await start()
  await using host = await modernHttp.connect(gateway, { token: () => tokenOf('A') })
  await host.call('tools/call', { name: 'a__echo', arguments: {} })
  await send(gateway.url, { headers: bearer(tokenOf('Z')), body: LIST })
  await send(new URL(`/mcp?access_token=${tokenOf('B')}`, gateway.url), { body: LIST })
  const log = JSON.stringify(gateway.log.entries)
  expect(log).toContain('a request was refused')
  for (const secret of ['A', 'B', 'Z'].flatMap((letter) => [tokenOf(letter), staticToken(letter).hash]))
    expect(log).not.toContain(secret)
})

test("T-04 each request on a connection is its own token's, however alike the requests are", async () => {
  await using gateway = await start()
  const post = (token: string, more = ''): string =>
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
    `Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nContent-Length: ${LIST.length}\r\n${more}\r\n${LIST}`
  const tokens = [tokenOf('A'), tokenOf('A'), tokenOf('Z'), tokenOf('B'), tokenOf('Z')]
  // 400: let in, and has no session. One request after the other, each when the one before was answered.
  expect(
    await inTurn(
      gateway.url,
      tokens.map((token) => post(token)),
    ),
  ).toEqual([400, 400, 401, 400, 401])
})

/** One request with these headers; the fast path takes it where its form allows. */
const post = (path: string, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
  `Accept: application/json, text/event-stream\r\n${headers}Content-Length: ${LIST.length}\r\n\r\n${LIST}`

describe.each(['own', 'node'] as const)('read by the %s HTTP server', (httpServer) => {
  const open = (auth: AuthOptions | undefined) =>
    startGateway({ servers: { a: fake.offering('echo') }, host: { ...(auth !== undefined && { auth }), httpServer } })
  const GOOD = `Authorization: Bearer ${tokenOf('A')}\r\n`

  test.each([
    `${GOOD}Authorization: Bearer ${tokenOf('B')}\r\n`,
    `${GOOD}${GOOD}`,
    `Authorization: Bearer ${tokenOf('Z')}\r\n${GOOD.toLowerCase()}`,
    `${GOOD}AUTHORIZATION: Basic eDp5\r\n`,
  ])('T-04 two Authorization headers are refused, whichever of them is good (%#)', async (headers) => {
    await using gateway = await open(TWO_TOKENS)
    const answerTo = (path: string, credential: string): Promise<string> =>
      exchangeRaw(gateway.url, post(path, `${credential}Connection: close\r\n`))
    for (const path of ['/mcp', '/servers/a/mcp', '/sse', '/messages?sessionId=x']) {
      const answer = await answerTo(path, headers)
      expect([statuses(answer), answer], path).toEqual([[400], expect.stringContaining('one Authorization header')])
    }
    expect(await answerTo('/mcp', GOOD)).not.toContain('Authorization')
  })

  test.each(['gzip', 'br', 'GZIP', 'identity, gzip', 'x'])(
    'T-20 a body in Content-Encoding %s is refused before it is read, on every path',
    async (encoding) => {
      await using gateway = await open(undefined)
      const header = `Content-Encoding: ${encoding}\r\n`
      for (const path of ['/mcp', '/servers/a/mcp', '/messages?sessionId=x', `/connect/${'x'.repeat(22)}`, '/nothing'])
        expect(await inTurn(gateway.url, [post(path, header)]), path).toEqual([415])
      // A refused one and a good one on one connection, in both orders.
      const [plain] = await inTurn(gateway.url, [post('/mcp', '')])
      expect(plain).not.toBe(415)
      expect(await inTurn(gateway.url, [post('/mcp', ''), post('/mcp', header), post('/mcp', '')])).toEqual([plain, 415, plain])
      expect(await inTurn(gateway.url, [post('/mcp', 'Content-Encoding: identity\r\n')])).toEqual([plain])
      const answer = await exchangeRaw(gateway.url, post('/mcp', `${header}Connection: close\r\n`))
      expect(answer).toContain('a body with Content-Encoding is not taken')
    },
  )
})
