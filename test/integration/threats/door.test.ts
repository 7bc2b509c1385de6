/** What a stranger meets at the HTTP door (RELIABILITY 3): wrong names, wrong forms, broken HTTP, slow bodies, paths that lead nowhere. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { corpus, unpack } from '../../support/corpus.ts'
import type { Packed } from '../../support/corpus.ts'
import { fake } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { mirrors } from '../../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../../support/fakes/messages.ts'
import type { JsonMap, Message } from '../../support/fakes/messages.ts'
import { messageOf, send } from '../../support/fakes/raw-http.ts'
import { exchangeRaw, statuses } from '../../support/fakes/raw-tcp.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'

const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo') }, ...setup })
const LIST = request(1, 'tools/list', {})
const FORM = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n'

/** Every route there is, and some there are not. */
const ROUTES = [
  ...['GET', 'POST', 'DELETE', 'OPTIONS', 'PUT'].map((method) => [method, '/mcp'] as const),
  ['POST', '/servers/a/mcp'],
  ['GET', '/sse'],
  ['POST', '/messages?sessionId=x'],
  ['GET', '/nothing'],
  ['GET', '/'],
  ['GET', '/healthz/'],
] as const
const HEALTH_ROUTES = [
  ['GET', '/healthz'],
  ['HEAD', '/healthz'],
  ['GET', '/readyz'],
  ['OPTIONS', '/'],
] as const

type Spelling = readonly [header: 'host' | 'origin', value: string]
const { refused, taken } = corpus('hosts-and-origins') as { refused: Spelling[]; taken: Spelling[] }

const knock = (gateway: TestGateway, method: string, path: string, headers: string): Promise<string> =>
  exchangeRaw(gateway.url, `${method} ${path} HTTP/1.1\r\n${headers}${FORM}Content-Length: ${LIST.length}\r\n\r\n${LIST}`)
const named = ([header, value]: Spelling): string =>
  header === 'host' ? `Host: ${value}\r\n` : `Host: localhost\r\nOrigin: ${value}\r\n`

test.each(ROUTES)(
  'T-01 T-04 %s %s is guarded: 80 strange spellings of Host and Origin are answered 403',
  async (method, path) => {
    await using gateway = await start()
    for (const spelling of refused) {
      const text = Buffer.from(named(spelling), 'utf8').toString('latin1')
      expect(statuses(await knock(gateway, method, path, text)), spelling.join(': ')).toEqual([403])
    }
    for (const doubled of ['Host: localhost\r\nHost: evil.example\r\n', 'Host: evil.example\r\nHost: localhost\r\n'])
      expect(statuses(await knock(gateway, method, path, doubled))).toEqual([403])
    expect(gateway.fake('a').received).toEqual([])
  },
)

test.each(HEALTH_ROUTES)(
  'T-01 a health check %s %s may name any Host, or none in HTTP/1.0, but no foreign Origin',
  async (method, path) => {
    await using gateway = await start()
    for (const spelling of refused.filter(([header]) => header === 'host')) {
      const text = Buffer.from(named(spelling), 'utf8').toString('latin1')
      expect(statuses(await knock(gateway, method, path, text)), spelling.join(': ')).toEqual([200])
    }
    for (const origin of refused.filter(([header]) => header === 'origin'))
      expect(statuses(await knock(gateway, method, path, named(origin))), origin.join(': ')).toEqual([403])
    expect(statuses(await exchangeRaw(gateway.url, `${method} ${path} HTTP/1.0\r\n\r\n`))).toEqual([200])
    expect(statuses(await knock(gateway, method, path, 'Host: a.example\r\nHost: b.example\r\n'))).toEqual([403])
  },
)

test('T-01 a refused Host is told in JSON and in one log line with the name that came and the option that admits it', async () => {
  await using gateway = await start()
  for (let round = 0; round < 20; round++)
    for (const [method, path] of [...ROUTES, ['GET', '/connect/x']]) {
      if (method === undefined || path === undefined) continue
      const reply = await send(new URL(path, gateway.url), { method, headers: { host: 'gw.example:8443' } })
      expect(reply.headers['content-type']).toBe('application/json')
      expect(JSON.parse(await reply.body)).toEqual({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: expect.stringMatching(/"gw\.example:8443".*listen\.http\.allowed_hosts/) },
      })
    }
  const told = gateway.log.entries.filter(({ text }) => text.includes('listen.http.allowed_hosts'))
  expect(told).toMatchObject([{ level: 'warn', facts: { host: 'gw.example:8443', count: 1 } }])
})

test('T-01 a refused Origin is told likewise, and a request without a Host', async () => {
  await using gateway = await start()
  const reply = await send(gateway.url, { headers: { origin: 'https://app.example' }, body: LIST })
  expect(JSON.parse(await reply.body)).toMatchObject({
    error: { message: expect.stringMatching(/"https:\/\/app\.example".*listen\.http\.allowed_origins/) },
  })
  expect(await exchangeRaw(gateway.url, `GET /mcp HTTP/1.0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 [^]*without a Host header/)
})

test.each(taken)('T-01 %s %s is the machine itself', async (header, value) => {
  await using gateway = await start()
  expect(statuses(await knock(gateway, 'DELETE', '/mcp', named([header, value])))).toEqual([400])
})

test('T-01 an absolute target (RFC 9112 3.2.2) is its path, and its authority is checked in place of Host', async () => {
  await using gateway = await start()
  const { host } = gateway.url
  for (const [method, path] of [...ROUTES, ...HEALTH_ROUTES]) {
    // A stream would not end.
    if (path === '/sse') continue
    const plain = statuses(await knock(gateway, method, path, `Host: ${host}\r\n`))
    for (const target of [`http://${host}${path}`, `HTTP://localhost${path}`, `https://[::1]:1${path}`])
      expect(statuses(await knock(gateway, method, target, 'Host: evil.example\r\n')), target).toEqual(plain)
  }
  expect(statuses(await knock(gateway, 'GET', `http://${host}`, `Host: ${host}\r\n`))).toEqual([404])
  expect(statuses(await knock(gateway, 'GET', `http://${host}?/healthz`, `Host: ${host}\r\n`))).toEqual([404])
  for (const authority of [
    'evil.example',
    `u@${host}`,
    'localhost:80:80',
    'localhost@evil.example',
    '127.0.0.1.evil.example',
    '%6cocalhost',
  ])
    for (const path of ['/mcp', '/servers/a/mcp', '/sse', '/nothing', ''])
      expect([[400], [403]], `${authority}${path}`).toContainEqual(
        statuses(await knock(gateway, 'POST', `http://${authority}${path}`, `Host: ${host}\r\n`)),
      )
  expect(gateway.fake('a').received).toEqual([])
})

test.each(['own', 'node'] as const)('an answer 204 has no Content-Length (RFC 9110 8.6), server %s', async (httpServer) => {
  await using gateway = await start({ host: { httpServer, allowedOrigins: ['https://app.example'] } })
  const preflight = `OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n`
  const text = await exchangeRaw(gateway.url, `${preflight}\r\n${preflight}Connection: close\r\n\r\n`)
  expect(statuses(text)).toEqual([204, 204])
  expect(text).not.toMatch(/content-length|transfer-encoding/i)
})

const INITIALIZE = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/json', undefined])(
  'T-02 a POST that any web page can send (%s) is answered 415 on every path',
  async (type) => {
    await using gateway = await start()
    await using host = await legacyHttp.connect(gateway)
    const events = await send(new URL('/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
    const { data } = await events.events.until(({ event }) => event === 'endpoint')
    gateway.fake('a').forget()
    for (const path of ['/mcp', '/servers/a/mcp', data])
      for (const body of [INITIALIZE, LIST])
        expect((await send(new URL(path, gateway.url), { headers: { 'content-type': type }, body })).status, path).toBe(415)
    expect(events.events.entries.length + host.heard.entries.length).toBe(1)
    expect(gateway.fake('a').received).toEqual([])
    events.close()
  },
)
test.each(['http://evil.example', 'http://localhost:3000'])(
  'T-02 a preflight from %s, which is not listed, allows nothing',
  async (origin) => {
    await using gateway = await start({ host: { allowedOrigins: ['https://app.example'] } })
    const headers = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
    for (const path of ['/mcp', '/sse', '/messages', '/healthz']) {
      const reply = await send(new URL(path, gateway.url), { method: 'OPTIONS', headers })
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  },
)

test('T-04 T-38 what is not a route is 404 with nothing in it, whatever the spelling of the path', async () => {
  await using gateway = await start()
  for (const path of corpus('paths') as string[])
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await exchangeRaw(
        gateway.url,
        `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${FORM}Content-Length: ${LIST.length}\r\n\r\n${LIST}`,
      )
      expect(answer, `${method} ${path}`).toMatch(/^HTTP\/1\.1 (404|400) [^]*\r\n\r\n$/)
    }
  expect(gateway.fake('a').received).toEqual([])
})

test('T-05 a session id the host chose, another scope and an invented id are all the same 404', async () => {
  await using gateway = await start()
  const chosen = await send(gateway.url, { headers: { 'mcp-session-id': 'AAAAAAAAAAAAAAAAAAAAAA' }, body: INITIALIZE })
  const session = String(chosen.headers['mcp-session-id'])
  expect(session).not.toBe('AAAAAAAAAAAAAAAAAAAAAA')
  const say = async (path: string, method: string, id: string) => {
    const reply = await send(new URL(path, gateway.url), {
      method,
      headers: { 'mcp-session-id': id, accept: 'application/json, text/event-stream' },
      ...(method === 'POST' && { body: LIST }),
    })
    return [reply.status, await reply.body]
  }
  for (const method of ['POST', 'GET', 'DELETE']) {
    const unknown = await say('/mcp', method, 'BBBBBBBBBBBBBBBBBBBBBB')
    expect(unknown[0]).toBe(404)
    expect(await say('/servers/a/mcp', method, session)).toEqual(unknown)
    for (const forged of [session.slice(0, -1), `${session}A`, session.toLowerCase() + '_', ' ', '__proto__', 'constructor'])
      expect(await say('/mcp', method, forged)).toEqual(unknown)
  }
  expect((await say('/mcp', 'POST', session))[0]).toBe(200)
})
test('T-05 with one session alive, a request without an id is not taken for its', async () => {
  await using gateway = await start()
  await using _host = await legacyHttp.connect(gateway)
  const accept = 'application/json, text/event-stream'
  for (const method of ['POST', 'GET', 'DELETE']) {
    const reply = await send(gateway.url, { method, headers: { accept }, ...(method === 'POST' && { body: LIST }) })
    expect(reply.status).toBe(400)
  }
})

const META = { [KEY.version]: MODERN, [KEY.capabilities]: {} }
const modernCall = (name: string): Message => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: {}, _meta: META },
})
test.each<[string, JsonMap]>([
  ['Mcp-Name of another tool', { 'mcp-name': 'a__other' }],
  ['Mcp-Name in other letters', { 'mcp-name': 'A__ECHO' }],
  ['Mcp-Name twice', { 'mcp-name': ['a__echo', 'a__other'] }],
  ['Mcp-Name missing', { 'mcp-name': undefined }],
  ['Mcp-Name empty', { 'mcp-name': '' }],
  ['Mcp-Name as a broken sentinel', { 'mcp-name': '=?base64?YV9fZWNobw?=' }],
  ['Mcp-Name as the sentinel of another', { 'mcp-name': '=?base64?YV9fb3RoZXI=?=' }],
  ['Mcp-Method of another', { 'mcp-method': 'tools/list' }],
  ['Mcp-Method in other letters', { 'mcp-method': 'Tools/Call' }],
  ['Mcp-Method missing', { 'mcp-method': undefined }],
  ['MCP-Protocol-Version missing', { 'mcp-protocol-version': undefined }],
  ['MCP-Protocol-Version of another', { 'mcp-protocol-version': '2025-11-25' }],
])('T-21 %s: 400 and -32020, and no server hears of it', async (_what, headers) => {
  await using gateway = await start()
  const message = modernCall('a__echo')
  const body = JSON.stringify(message)
  const reply = await send(gateway.url, { headers: { ...mirrors(message), ...(headers as Record<string, string>) }, body })
  expect([reply.status, (await messageOf(reply)).error?.code]).toEqual([400, -32020])
  expect(gateway.fake('a').received).toEqual([])
})
test('T-21 hop and internal headers of a host end here', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) } })
  const message = modernCall('a__echo')
  const strange = {
    'x-forwarded-for': '1.2.3.4',
    forwarded: 'for=1.2.3.4',
    cookie: 'a=b',
    authorization: 'Bearer x',
    te: 'trailers',
    'proxy-authorization': 'Basic x',
    'mcp-session-id': '',
    'last-event-id': '7',
    'x-internal-principal': 'admin',
  }
  const headers = { ...mirrors(message), ...strange, 'mcp-session-id': undefined }
  expect((await send(gateway.url, { headers, body: JSON.stringify(message) })).status).toBe(200)
  const down = (await gateway.fake('a').until('tools/call')).headers
  for (const name of Object.keys(strange)) expect(down[name], name).toBeUndefined()
})

type BadRequest = readonly [name: string, ...packed: Packed]
const PIPELINED = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
test('T-22 a hundred broken requests are refused, the connection is closed, and nothing behind them is answered', async () => {
  await using gateway = await start({ hostLimits: { headersTimeoutMs: 1_000, requestTimeoutMs: 2_000 } })
  const rows = corpus('bad-requests') as BadRequest[]
  expect(rows.length).toBeGreaterThanOrEqual(100)
  const answers = await Promise.all(
    rows.map(async ([name, ...packed]) => [name, statuses(await exchangeRaw(gateway.url, unpack(packed) + PIPELINED))] as const),
  )
  const REFUSALS = [[], [400], [403], [406], [408], [413], [431]].map(String)
  expect(answers.filter(([, codes]) => !REFUSALS.includes(String(codes)))).toEqual([])
  expect(gateway.fake('a').received).toEqual([])
  expect((await send(new URL('/healthz', gateway.url), { method: 'GET' })).status).toBe(200)
})

test('T-23 heads and bodies that drip end at their time-outs while others are served', async () => {
  await using gateway = await start({ hostLimits: { headersTimeoutMs: 600, requestTimeoutMs: 900 } })
  const open = (text: string) => {
    const socket = connect(Number(gateway.url.port), gateway.url.hostname)
    socket.on('error', () => undefined)
    socket.write(text)
    const drip = setInterval(() => socket.write('a'), 50)
    return once(socket.resume(), 'close').finally(() => clearInterval(drip))
  }
  const dribbles = Array.from({ length: 100 }, (_, at) =>
    open(
      at % 2 === 0
        ? 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-'
        : `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${FORM}Content-Length: 100000\r\n\r\n{`,
    ),
  )
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__echo', arguments: { x: 1 } })).toMatchObject({
    content: [{ text: '{"x":1}' }],
  })
  await Promise.all(dribbles)
  expect((await host.call('tools/list'))['tools']).toHaveLength(1)
})

interface Bomb {
  readonly name: string
  /** Where it stands in `params`: JSON text with a `$` where the bomb goes, and what is answered. */
  readonly text: Packed
  readonly says: string
}
test.each(corpus('bombs') as Bomb[])(
  'T-24 $name is refused by name of the limit, and no server is asked',
  async ({ text, says }) => {
    await using gateway = await start()
    const bomb = unpack(text)
    const message = modernCall('a__echo')
    const body = JSON.stringify(message).replace('"arguments":{}', () => `"arguments":${bomb}`)
    for (const headers of [mirrors(message), {}]) {
      const reply = await send(gateway.url, { headers, body })
      expect([400, 413]).toContain(reply.status)
      expect((await messageOf(reply)).error?.message).toContain(says)
    }
    expect(gateway.fake('a').received).toEqual([])
    await using host = await modernHttp.connect(gateway)
    expect((await host.call('tools/list'))['tools']).toHaveLength(1)
  },
)
