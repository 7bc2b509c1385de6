/** What deployed servers over HTTP answer that is legal or common, letter for letter (BRIDGING 3.22, 5.4). */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { listening } from '../support/listening.ts'

interface Asked {
  readonly id?: number
  readonly method?: string
}
type Write = (response: ServerResponse, asked: Asked, request: IncomingMessage) => void

/** Results of a server of one tool. */
const RESULTS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'x', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'done' }] },
}
const bodyOf = ({ id, method = '' }: Asked): string => {
  const outcome = RESULTS[method] === undefined ? { error: { code: -32601, message: 'none' } } : { result: RESULTS[method] }
  return JSON.stringify({ jsonrpc: '2.0', id, ...outcome })
}
const json: Write = (response, asked) => {
  const session = asked.method === 'initialize' ? { 'MCP-SESSION-ID': 's-1' } : {}
  response.writeHead(200, { 'Content-Type': 'application/json', ...session }).end(bodyOf(asked))
}

/** A server whose requests and notifications are answered as the test says; everything else is 405. */
const serve = async (spellings: { request?: Write; notification?: Write; get?: Write; delete?: Write }) => {
  const refuse: Write = (response) => void response.writeHead(405).end()
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (request.method === 'GET') return (spellings.get ?? refuse)(response, {}, request)
    if (request.method === 'DELETE') return (spellings.delete ?? refuse)(response, {}, request)
    const asked = JSON.parse(body) as Asked
    if (asked.id === undefined)
      (spellings.notification ?? ((answer) => void answer.writeHead(202).end()))(response, asked, request)
    else (spellings.request ?? json)(response, asked, request)
  })
  const opened = await listening(server)
  const gateway: TestGateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http' }) },
    options: { a: { url: new URL('/mcp', opened.url) } },
  })
  return {
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]()
      await opened[Symbol.asyncDispose]()
    },
  }
}
const expectServed = async ({ gateway }: { gateway: TestGateway }): Promise<void> => {
  await using host = await legacyHttp.connect(gateway)
  expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__x' }] })
  expect(await host.call('tools/call', { name: 'a__x', arguments: {} })).toMatchObject(RESULTS['tools/call']!)
}

const sse =
  (encode: (body: string) => string, type = 'text/event-stream'): Write =>
  (response, asked) =>
    void response.writeHead(200, { 'Content-Type': type, 'Mcp-Session-Id': 's-1' }).end(encode(bodyOf(asked)))

describe('a request is answered', () => {
  test.each<[string, Write]>([
    [
      'as JSON with a charset',
      (r, asked) => void r.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(bodyOf(asked)),
    ],
    [
      'as JSON with a byte order mark',
      (r, asked) => void r.writeHead(200, { 'content-type': 'application/json' }).end(`\uFEFF${bodyOf(asked)}`),
    ],
    [
      'as application/json-rpc',
      (r, asked) => void r.writeHead(200, { 'content-type': 'application/json-rpc' }).end(bodyOf(asked)),
    ],
    ['as JSON with 201', (r, asked) => void r.writeHead(201, { 'content-type': 'application/json' }).end(bodyOf(asked))],
    ['as an event with CRLF', sse((body) => `event: message\r\ndata: ${body}\r\n\r\n`)],
    ['as an event with CR', sse((body) => `data: ${body}\r\r`)],
    ['as an event without blanks and name', sse((body) => `data:${body}\n\n`)],
    [
      'as an event behind comments, an empty id and a retry',
      sse((body) => `: hello\n\nid\nretry: 10\n:\nid:\nevent: message\ndata: ${body}\n\n`),
    ],
    [
      'as an event behind pings of another name',
      sse((body) => `event: ping\ndata: {}\n\nevent: ping\ndata: 2026-01-01\n\nevent: message\ndata: ${body}\n\n`),
    ],
    [
      'as an event in several data lines',
      sse(
        (body) =>
          body
            .replaceAll(/([{,])/g, '$1\n')
            .split('\n')
            .map((line) => `data: ${line}\n`)
            .join('') + '\n',
      ),
    ],
    ['as an event of a stream with a charset', sse((body) => `data: ${body}\n\n`, 'text/event-stream;charset=UTF-8')],
    ['as an event behind a byte order mark', sse((body) => `\uFEFFdata: ${body}\n\n`)],
    [
      'as the last event of a stream that stays open',
      (r, asked) => void r.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${bodyOf(asked)}\n\n`),
    ],
  ])('%s', async (_, request) => {
    await using server = await serve({ request })
    await expectServed(server)
  })
})

describe('a notification is answered', () => {
  test.each<[string, Write]>([
    ['204', (r) => void r.writeHead(204).end()],
    ['200 and nothing', (r) => void r.writeHead(200).end()],
    ['200 and JSON null', (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('null')],
    ['200 and an empty object', (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('{}')],
    [
      '200 and a result for no id',
      (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":null,"result":{}}'),
    ],
    ['200 and an empty stream', (r) => void r.writeHead(200, { 'content-type': 'text/event-stream' }).end()],
    ['202 and words', (r) => void r.writeHead(202, { 'content-type': 'text/plain' }).end('Accepted')],
    ['202 and JSON', (r) => void r.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"ok"}')],
    ['400', (r) => void r.writeHead(400).end()],
    ['405', (r) => void r.writeHead(405).end()],
    ['500 and a page', (r) => void r.writeHead(500, { 'content-type': 'text/html' }).end('<h1>no</h1>')],
  ])('%s', async (_, notification) => {
    await using server = await serve({ notification })
    await expectServed(server)
  })
})

describe('a GET for the stream, or a DELETE, is answered', () => {
  test.each<[string, Write]>([
    ['404', (r) => void r.writeHead(404).end()],
    ['400', (r) => void r.writeHead(400).end('bad')],
    ['501', (r) => void r.writeHead(501).end()],
    ['500', (r) => void r.writeHead(500).end()],
    ['200 and a page', (r) => void r.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>')],
    ['200 and JSON', (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')],
    ['200 and a stream that ends at once', (r) => void r.writeHead(200, { 'content-type': 'text/event-stream' }).end()],
  ])('%s', async (_, write) => {
    await using server = await serve({ get: write, delete: write })
    await expectServed(server)
  })
})

describe('ids of answers', () => {
  test.each<[string, (asked: Asked) => unknown]>([
    ['text', ({ id }) => String(id)],
    ['a fraction', ({ id }) => `${id}.0`],
  ])('%s', async (name, spell) => {
    await using server = await serve({
      request: (r, asked) => {
        const id = name === 'text' ? JSON.stringify(spell(asked)) : String(spell(asked))
        r.writeHead(200, { 'content-type': 'application/json' }).end(bodyOf(asked).replace(/"id":\d+/, `"id":${id}`))
      },
    })
    await expectServed(server)
  })
})
