/** The way in over HTTP, status by status (BRIDGING 5.1). */
import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { connectHttp, headerText, mirrors } from '../support/fakes/http-hosts.ts'
import type { SessionHost } from '../support/fakes/http-hosts.ts'
import { KEY, MODERN } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { messageOf, messagesOf, send } from '../support/fakes/raw-http.ts'
import type { RawOptions, RawReply } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo', 'hét') }, ...setup })

const META = { [KEY.version]: MODERN, [KEY.capabilities]: {} }
const modern = (method: string, params: JsonMap = {}, meta: JsonMap = META): Message => ({
  jsonrpc: '2.0',
  id: 'm-1',
  method,
  params: { ...params, _meta: meta },
})
const post = (url: URL, message: unknown, headers: RawOptions['headers'] = {}): Promise<RawReply> =>
  send(url, { headers, body: typeof message === 'string' ? message : JSON.stringify(message) })
const postModern = (url: URL, message: Message, headers: RawOptions['headers'] = {}): Promise<RawReply> =>
  post(url, message, { ...mirrors(message), ...headers })
/** What of an answer scripts of a page may read. */
const EXPOSED = ['Mcp-Session-Id', 'MCP-Protocol-Version', 'WWW-Authenticate', 'Retry-After']
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } }
const LIST = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} }

describe('row 1: who may come in', () => {
  test.each(['http://evil.example', 'https://localhost.evil.example', 'null', 'file://'])(
    'B184 T-01 Origin %s is answered 403, for legacy and modern hosts alike',
    async (origin) => {
      await using gateway = await start()
      expect((await post(gateway.url, initialize, { origin })).status).toBe(403)
      expect((await postModern(gateway.url, modern('tools/list'), { origin })).status).toBe(403)
      expect((await send(gateway.url, { method: 'GET', headers: { origin } })).status).toBe(403)
    },
  )
  test('B184 a page of this machine and a listed origin come in', async () => {
    await using gateway = await start({ host: { allowedOrigins: ['https://app.example'] } })
    for (const origin of ['http://localhost:3000', 'https://app.example'])
      expect((await post(gateway.url, initialize, { origin })).status).toBe(200)
  })
  test.each(['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '169.254.169.254'])(
    'B185 T-01 Host %s is answered 403 on loopback',
    async (host) => {
      await using gateway = await start()
      expect((await post(gateway.url, initialize, { host })).status).toBe(403)
    },
  )
  test('B186 it binds to loopback by default', async () => {
    const { DEFAULT_HOST } = await import('../../src/host/options.ts')
    expect(DEFAULT_HOST.addresses.map(({ host }) => host)).toEqual(['127.0.0.1', '::1'])
  })
  test('T-02 a preflight of a listed origin names what may be sent, Mcp-Param-* as asked, and what may be read', async () => {
    await using gateway = await start({ host: { allowedOrigins: ['https://app.example'] } })
    const reply = await send(gateway.url, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type, mcp-param-region, x-other',
      },
    })
    expect(reply.status).toBe(204)
    expect(reply.headers['access-control-allow-origin']).toBe('https://app.example')
    const allowed = String(reply.headers['access-control-allow-headers']).toLowerCase().split(/, */)
    expect(allowed).toEqual(
      expect.arrayContaining([
        'authorization',
        'content-type',
        'accept',
        'mcp-session-id',
        'mcp-protocol-version',
        'last-event-id',
        'mcp-method',
        'mcp-name',
        'mcp-param-region',
        'traceparent',
        'tracestate',
        'baggage',
      ]),
    )
    expect(allowed).not.toContain('x-other')
    expect(String(reply.headers['access-control-allow-methods']).split(/, */)).toEqual(
      expect.arrayContaining(['GET', 'POST', 'DELETE']),
    )
    expect(String(reply.headers['access-control-expose-headers']).split(/, */)).toEqual(EXPOSED)
    expect(Number(reply.headers['access-control-max-age'])).toBeGreaterThanOrEqual(600)
  })
  test('T-02 the answer itself lets a listed origin read it, and no other', async () => {
    await using gateway = await start({ host: { allowedOrigins: ['https://app.example'] } })
    const listed = await post(gateway.url, initialize, { origin: 'https://app.example' })
    expect(listed.headers['access-control-allow-origin']).toBe('https://app.example')
    expect(listed.headers['vary']).toContain('Origin')
    expect(listed.headers['access-control-max-age']).toBeUndefined()
    // Browsers read it from the answer, not from the preflight.
    expect(String(listed.headers['access-control-expose-headers']).split(/, */)).toEqual(EXPOSED)
    const own = await post(gateway.url, initialize)
    expect(own.headers['access-control-allow-origin']).toBeUndefined()
  })
  test('T-02 a refusal lets a listed origin read how long to wait', async () => {
    await using gateway = await start({ host: { allowedOrigins: ['https://app.example'] }, hostLimits: { maxSessions: 0 } })
    const refused = await post(gateway.url, initialize, { origin: 'https://app.example' })
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)])
    expect(refused.headers['access-control-expose-headers']).toContain('Retry-After')
  })
})

describe('row 3: methods', () => {
  test.each(['PUT', 'PATCH', 'HEAD'])('%s is answered 405 with what is allowed', async (method) => {
    await using gateway = await start()
    const reply = await send(gateway.url, { method })
    expect(reply.status).toBe(405)
    expect(reply.headers['allow']).toContain('POST')
  })
  test.each(['GET', 'DELETE'])('B201 a modern %s without a session is answered 405', async (method) => {
    await using gateway = await start()
    const headers = { accept: 'text/event-stream', 'mcp-protocol-version': MODERN }
    expect((await send(gateway.url, { method, headers })).status).toBe(405)
  })
})

describe('rows 4 to 8: the body', () => {
  test.each([undefined, 'text/plain', 'application/jsonx', 'application/x-www-form-urlencoded'])(
    'row 4: Content-Type %s is answered 415',
    async (type) => {
      await using gateway = await start()
      expect((await post(gateway.url, initialize, { 'content-type': type })).status).toBe(415)
      expect((await postModern(gateway.url, modern('tools/list'), { 'content-type': type })).status).toBe(415)
    },
  )
  test('row 4: parameters and case of the media type do not matter', async () => {
    await using gateway = await start()
    expect((await post(gateway.url, initialize, { 'content-type': 'Application/JSON; charset=utf-8' })).status).toBe(200)
  })
  test.each(['application/json', 'text/event-stream', 'text/html', ''])(
    'row 5: POST with Accept "%s" is answered 406',
    async (accept) => {
      await using gateway = await start()
      expect((await post(gateway.url, initialize, { accept })).status).toBe(406)
      expect((await postModern(gateway.url, modern('tools/list'), { accept })).status).toBe(406)
    },
  )
  test('row 5: a POST without Accept is answered 406, as by the official SDKs', async () => {
    await using gateway = await start()
    const body = JSON.stringify(initialize)
    const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
    const { hostname, port, pathname } = gateway.url
    const sent = request({ hostname, port, path: pathname, method: 'POST', headers }).end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    expect(response.statusCode).toBe(406)
  })
  test.each(['*/*', 'application/*, text/*', 'text/event-stream;q=0.5, application/json'])(
    'row 5: Accept %s is enough',
    async (accept) => {
      await using gateway = await start()
      expect((await post(gateway.url, initialize, { accept })).status).toBe(200)
    },
  )
  test('row 5: a GET that does not accept events is answered 406', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    expect((await send(gateway.url, { method: 'GET', headers: { ...host.headers(), accept: 'application/json' } })).status).toBe(
      406,
    )
  })
  test('row 6: a body over the limit is answered 413, announced or not', async () => {
    await using gateway = await start({ hostLimits: { maxBodyBytes: 1000 } })
    const body = JSON.stringify({ ...initialize, more: 'x'.repeat(1000) })
    expect((await post(gateway.url, body)).status).toBe(413)
    expect((await post(gateway.url, body, { 'transfer-encoding': 'chunked' })).status).toBe(413)
  })
  test('row 6: headers over the limit are answered 431', async () => {
    await using gateway = await start()
    expect((await post(gateway.url, initialize, { 'x-long': 'x'.repeat(20_000) })).status).toBe(431)
  })
  test.each(['{', 'nonsense', '{"jsonrpc":"2.0","id":1,"method":"ping"}}', '', '{"jsonrpc":"2.0",}'])(
    'row 7: B259 %j is answered 400 and -32700 without an id',
    async (body) => {
      await using gateway = await start()
      for (const headers of [{}, mirrors(modern('tools/list'))]) {
        const reply = await post(gateway.url, body, headers)
        expect(reply.status).toBe(400)
        const message = await messageOf(reply)
        expect(message.error?.code).toBe(-32700)
        expect(message.id ?? null).toBeNull()
      }
    },
  )
  test('row 7: a body that is not UTF-8 is answered 400 and -32700', async () => {
    await using gateway = await start()
    const body = Buffer.from(JSON.stringify({ ...initialize, note: '\u00ff' }), 'latin1')
    const reply = await send(gateway.url, { body })
    expect(reply.status).toBe(400)
    expect((await messageOf(reply)).error?.code).toBe(-32700)
  })
  test('rows 7 to 16 echo the id whenever it could be read', async () => {
    await using gateway = await start()
    for (const id of [5, 'five']) {
      const wrong = { jsonrpc: '1.0', id, method: 'tools/list' }
      expect((await messageOf(await post(gateway.url, wrong))).id).toBe(id)
      const message = { ...modern('tools/list'), id }
      expect((await messageOf(await postModern(gateway.url, message, { 'mcp-method': 'x' }))).id).toBe(id)
      expect((await messageOf(await post(gateway.url, { ...LIST, id }))).id).toBe(id)
    }
  })
  test('row 8: B206 an array is refused with 400 and -32600, of a modern host and of later legacy sessions', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-06-18' })
    for (const headers of [mirrors(modern('tools/list')), host.headers()]) {
      const reply = await post(gateway.url, [LIST], headers)
      expect(reply.status).toBe(400)
      expect((await messageOf(reply)).error?.code).toBe(-32600)
    }
  })
})

describe('rows 9 and 10: sessions and versions of legacy hosts', () => {
  const sessionOf = (host: SessionHost, more: RawOptions['headers'] = {}): RawOptions['headers'] => ({
    ...host.headers(),
    ...more,
  })

  test('row 9: B198 without a session id 400, with an unknown one 404', async () => {
    await using gateway = await start()
    expect((await post(gateway.url, LIST)).status).toBe(400)
    expect((await post(gateway.url, LIST, { 'mcp-session-id': 'AAAAAAAAAAAAAAAAAAAAAA' })).status).toBe(404)
    for (const method of ['GET', 'DELETE']) {
      const accept = 'text/event-stream'
      expect((await send(gateway.url, { method, headers: { accept } })).status).toBe(400)
      expect((await send(gateway.url, { method, headers: { accept, 'mcp-session-id': 'nope' } })).status).toBe(404)
    }
  })
  test('row 9: unknown, ended and foreign sessions get the same body', async () => {
    await using gateway = await start({ servers: { a: fake.offering('echo'), b: fake.offering('echo') } })
    await using ended = await connectHttp(gateway)
    await send(gateway.url, { method: 'DELETE', headers: ended.headers() })
    await using elsewhere = await connectHttp(gateway, { path: '/servers/a/mcp' })
    const replies = await Promise.all([
      post(gateway.url, LIST, { 'mcp-session-id': 'nope' }),
      post(gateway.url, LIST, ended.headers()),
      post(gateway.url, LIST, elsewhere.headers()),
      post(new URL('/servers/b/mcp', gateway.url), LIST, elsewhere.headers()),
    ])
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 404, 404])
    expect(new Set(await Promise.all(replies.map(({ body }) => body))).size).toBe(1)
  })
  test('row 9: a stale session id on initialize is ignored', async () => {
    await using gateway = await start()
    const reply = await post(gateway.url, initialize, { 'mcp-session-id': 'stale' })
    expect(reply.status).toBe(200)
    expect(reply.headers['mcp-session-id']).not.toBe('stale')
  })
  test.each([MODERN, '2024-11-05', '2099-01-01'])(
    'row 9: B034 initialize is legacy, although a header names %s',
    async (version) => {
      await using gateway = await start()
      const reply = await post(gateway.url, initialize, { 'mcp-protocol-version': version, 'mcp-method': 'initialize' })
      expect(reply.status).toBe(200)
      expect(reply.headers['mcp-session-id']).toBeDefined()
      expect(await messageOf(reply)).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } })
    },
  )
  test('row 9: B201 a modern request ignores a session id and is given none', async () => {
    await using gateway = await start()
    const reply = await postModern(gateway.url, modern('tools/list'), { 'mcp-session-id': 'nope', 'last-event-id': 'x-1' })
    expect(reply.status).toBe(200)
    expect(reply.headers['mcp-session-id']).toBeUndefined()
  })
  test('row 10: B194 an unsupported or malformed version header is answered 400', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    for (const version of ['2020-01-01', 'nonsense', ''])
      expect((await post(gateway.url, LIST, sessionOf(host, { 'mcp-protocol-version': version }))).status).toBe(400)
  })
  test('row 10: B194 so it is on GET and DELETE, which change nothing', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    for (const version of ['2020-01-01', 'nonsense', ''])
      for (const method of ['GET', 'DELETE']) {
        const headers = { ...host.headers(), accept: 'text/event-stream', 'mcp-protocol-version': version }
        const reply = await send(gateway.url, { method, headers })
        expect(reply.status).toBe(400)
        expect((await messageOf(reply)).error?.message).toBe(`unsupported MCP-Protocol-Version "${version}"`)
      }
    expect((await post(gateway.url, LIST, sessionOf(host))).status).toBe(200)
  })
  test('row 10: B195 no header, or another supported version, is served by the version of the session', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    for (const version of [undefined, '2025-03-26', '2025-06-18']) {
      const reply = await post(gateway.url, LIST, sessionOf(host, { 'mcp-protocol-version': version }))
      expect(reply.status).toBe(200)
      expect((await messageOf(reply)).result).toHaveProperty('tools')
    }
  })
})

describe('rows 10 to 12: headers and _meta of modern hosts', () => {
  const refused = async (reply: RawReply, code: number): Promise<Message> => {
    const message = await messageOf(reply)
    expect([reply.status, message.error?.code, message.id]).toEqual([400, code, 'm-1'])
    return message
  }
  test('row 10: B190 MCP-Protocol-Version absent or differing: -32020', async () => {
    await using gateway = await start()
    await refused(await postModern(gateway.url, modern('tools/list'), { 'mcp-protocol-version': undefined }), -32020)
    await refused(await postModern(gateway.url, modern('tools/list'), { 'mcp-protocol-version': '2025-11-25' }), -32020)
    const older = modern('tools/list', {}, { ...META, [KEY.version]: '2025-11-25' })
    await refused(await postModern(gateway.url, older, { 'mcp-protocol-version': MODERN }), -32020)
  })
  test('row 10: B194 B030 B031 an unsupported version: -32022 with what is supported per request', async () => {
    await using gateway = await start()
    const future = modern('tools/list', {}, { ...META, [KEY.version]: '2099-01-01' })
    const { error } = await refused(await postModern(gateway.url, future, { 'mcp-protocol-version': '2099-01-01' }), -32022)
    expect(error?.data).toEqual({ supported: [MODERN], requested: '2099-01-01' })
  })
  test('row 11: B014 a header that names the version and a body that does not: -32602 naming the key', async () => {
    await using gateway = await start()
    const { error } = await refused(await postModern(gateway.url, modern('tools/list', {}, { other: 1 })), -32602)
    expect(error?.message).toContain(KEY.version)
    await refused(await postModern(gateway.url, { ...modern('tools/list'), params: {} }), -32602)
  })
  test.each([undefined, 'all', [], null])('row 11: B014 clientCapabilities %j: -32602 naming the key', async (capabilities) => {
    await using gateway = await start()
    const message = modern(
      'tools/list',
      {},
      { [KEY.version]: MODERN, ...(capabilities !== undefined && { [KEY.capabilities]: capabilities }) },
    )
    expect((await refused(await postModern(gateway.url, message), -32602)).error?.message).toContain(KEY.capabilities)
  })
  test('row 11: B015 clientInfo is never required', async () => {
    await using gateway = await start()
    expect((await postModern(gateway.url, modern('tools/list'))).status).toBe(200)
  })
  test.each([undefined, 'tools/call', 'TOOLS/LIST', 'tools/list '.concat('x')])(
    'row 12: B190 Mcp-Method %s: -32020',
    async (method) => {
      await using gateway = await start()
      await refused(await postModern(gateway.url, modern('tools/list'), { 'mcp-method': method }), -32020)
    },
  )
  test.each([undefined, 'a__nope', 'A__echo', '=?base64?!!?=', '=?base64?YV9fZWNobw?=', '=?base64?/w==?='])(
    'row 12: B190 B191 Mcp-Name %s for a__echo: -32020',
    async (name) => {
      await using gateway = await start()
      await refused(await postModern(gateway.url, modern('tools/call', { name: 'a__echo' }), { 'mcp-name': name }), -32020)
    },
  )
  test('row 12: B191 a name in the Base64 sentinel is decoded before it is compared', async () => {
    await using gateway = await start()
    const sentinel = `=?base64?${Buffer.from('a__echo').toString('base64')}?=`
    expect((await postModern(gateway.url, modern('tools/call', { name: 'a__echo' }), { 'mcp-name': sentinel })).status).toBe(200)
  })
  test('row 12: Mcp-Name is asked of the three methods that name something, and of no other', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ prompts: ['p'], resources: ['file:///r'] }) } })
    await refused(await postModern(gateway.url, modern('prompts/get', { name: 'a__p' }), { 'mcp-name': undefined }), -32020)
    await refused(
      await postModern(gateway.url, modern('resources/read', { uri: 'a+file:///r' }), { 'mcp-name': undefined }),
      -32020,
    )
    const ref = { type: 'ref/prompt', name: 'a__p' }
    const completion = modern('completion/complete', { ref, argument: { name: 'x', value: '' } })
    expect((await postModern(gateway.url, completion)).status).toBe(200)
  })
  test('header names compare without case', async () => {
    await using gateway = await start()
    const message = modern('tools/list')
    const reply = await post(gateway.url, message, { 'MCP-PROTOCOL-VERSION': MODERN, 'MCP-METHOD': 'tools/list' })
    expect(reply.status).toBe(200)
  })
})

describe('rows 13 and 14: methods and params', () => {
  test('row 13: B188 a method that the modern era lacks: 404 and -32601 with the id', async () => {
    await using gateway = await start()
    for (const method of ['no/such', 'ping', 'logging/setLevel', 'resources/subscribe', 'initialize', 'tasks/list']) {
      const reply = await postModern(gateway.url, modern(method))
      expect([method, reply.status]).toEqual([method, 404])
      expect(await messageOf(reply)).toMatchObject({ id: 'm-1', error: { code: -32601 } })
    }
  })
  test('row 13: B188 methods of tasks where tasks are not offered: 404 and -32601 with the id', async () => {
    await using gateway = await start({ gateway: { tasks: false } })
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const reply = await postModern(gateway.url, modern(method, { taskId: 't' }), { 'mcp-name': 't' })
      expect([method, reply.status]).toEqual([method, 404])
      expect(await messageOf(reply)).toMatchObject({ id: 'm-1', error: { code: -32601 } })
    }
  })
  test('row 13: B189 a method that a revision lacks, or that tasks are not offered for: -32601 in-band, HTTP 200', async () => {
    await using gateway = await start({ gateway: { tasks: false } })
    for (const revision of ['2025-06-18', '2025-11-25']) {
      await using host = await connectHttp(gateway, { revision })
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
        const reply = await post(gateway.url, { ...LIST, method, params: { taskId: 't' } }, host.headers())
        expect([method, reply.status]).toEqual([method, 200])
        expect((await messagesOf(reply))[0]).toMatchObject({ id: 7, error: { code: -32601 } })
      }
    }
  })
  test('row 13: B189 a method that the legacy era lacks: -32601 in-band, HTTP 200', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    for (const method of ['no/such', 'server/discover', 'subscriptions/listen']) {
      const reply = await post(gateway.url, { ...LIST, method }, host.headers())
      expect([method, reply.status]).toEqual([method, 200])
      expect((await messagesOf(reply))[0]).toMatchObject({ id: 7, error: { code: -32601 } })
    }
  })
  test.each([
    ['tools/call', {}],
    ['tools/call', { name: 5 }],
    ['resources/read', {}],
    ['prompts/get', { name: null }],
    ['completion/complete', { ref: 'x' }],
  ])('row 14: %s with params %j: -32602 in-band', async (method, params) => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const legacy = await post(gateway.url, { ...LIST, method, params }, host.headers())
    expect(legacy.status).toBe(200)
    expect((await messageOf(legacy)).error?.code).toBe(-32602)
  })
})

describe('row 15: Mcp-Param-*', () => {
  const REGION = {
    name: 'where',
    inputSchema: {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        count: { type: 'integer', 'x-mcp-header': 'Count' },
        dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      },
    },
  }
  const call = async (args: JsonMap, headers: RawOptions['headers']): Promise<[number, number | undefined]> => {
    await using gateway = await startGateway({ servers: { a: fake.offering(REGION) } })
    const reply = await postModern(gateway.url, modern('tools/call', { name: 'a__where', arguments: args }), headers)
    return [reply.status, (await messageOf(reply)).error?.code]
  }
  const OK = [200, undefined]
  const MISMATCH = [400, -32020]
  test.each<[string, JsonMap, RawOptions['headers'], unknown]>([
    ['equal text', { region: 'eu' }, { 'mcp-param-region': 'eu' }, OK],
    ['B192 missing for a value in the body', { region: 'eu' }, {}, MISMATCH],
    ['B192 differing', { region: 'eu' }, { 'mcp-param-region': 'us' }, MISMATCH],
    ['B192 differing in case', { region: 'eu' }, { 'mcp-param-region': 'EU' }, MISMATCH],
    ['B192 undecodable', { region: 'eu' }, { 'mcp-param-region': '=?base64?%%?=' }, MISMATCH],
    ['B191 in the sentinel', { region: 'é' }, { 'mcp-param-region': headerText('é') }, OK],
    ['B192 a header without the argument', {}, { 'mcp-param-region': 'eu' }, MISMATCH],
    ['B192 a header for null', { region: null }, { 'mcp-param-region': 'eu' }, MISMATCH],
    ['B192 null needs no header', { region: null }, {}, OK],
    ['B193 integers compare as numbers', { count: 5 }, { 'mcp-param-count': '5.0' }, OK],
    ['B193 other integers differ', { count: 5 }, { 'mcp-param-count': '6' }, MISMATCH],
    ['booleans', { dry: true }, { 'mcp-param-dry': 'true' }, OK],
    ['booleans differ', { dry: true }, { 'mcp-param-dry': 'false' }, MISMATCH],
    ['unknown ones are ignored', {}, { 'mcp-param-unknown': 'x' }, OK],
  ])('%s', async (_name, args, headers, expected) => {
    expect(await call(args, headers)).toEqual(expected)
  })
})

describe('notifications and responses', () => {
  test('B187 accepted notifications and legacy responses are answered 202 without a body', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const said = [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/unheard_of', params: {} },
      { jsonrpc: '2.0', id: 'late', result: {} },
      { jsonrpc: '2.0', id: 99, error: { code: -1, message: 'no' } },
    ]
    for (const message of said) {
      const reply = await post(gateway.url, message, host.headers())
      expect([reply.status, await reply.body]).toEqual([202, ''])
    }
    const notice: Message = { jsonrpc: '2.0', method: 'notifications/unheard_of', params: { _meta: META } }
    const reply = await post(gateway.url, notice, { 'mcp-protocol-version': MODERN })
    expect([reply.status, await reply.body]).toEqual([202, ''])
  })
  test('a response posted by a modern host is answered 400 and -32600', async () => {
    await using gateway = await start()
    const reply = await post(gateway.url, { jsonrpc: '2.0', id: 1, result: {} }, { 'mcp-protocol-version': MODERN })
    expect(reply.status).toBe(400)
    expect((await messageOf(reply)).error?.code).toBe(-32600)
  })
})
