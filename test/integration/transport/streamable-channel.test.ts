import { brotliCompressSync, createGzip, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { ServerResponse } from 'node:http'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { UndiciClient } from '../../../src/transport/http1/client/http-client.ts'
import { StreamableChannel } from '../../../src/transport/channel/streamable-channel.ts'
import type { StreamableOptions } from '../../../src/transport/channel/streamable-channel.ts'
import {
  error,
  json,
  notification,
  overtakenByAnswers,
  rawScripted,
  Recorder,
  request,
  result,
  scripted,
  sse,
} from './scripted.ts'
import type { Script } from './scripted.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'

const client = new UndiciClient()
afterAll(() => client.close())

const FAST: Partial<StreamableOptions> = { backoffMs: 1, maxBackoffMs: 2, closeTimeoutMs: 200 }

const connect = async (url: URL, options: Partial<StreamableOptions> = {}, headers: Record<string, string> = {}) => {
  const events = new Recorder()
  const channel = new StreamableChannel(client, url, headers, { ...FAST, ...options })
  await channel.open(events)
  return { channel, events, [Symbol.asyncDispose]: () => channel.close() }
}
/** What becomes of one request against one script. */
const outcome = async (script: Script, options: Partial<StreamableOptions> = {}) => {
  await using server = await scripted(script)
  await using link = await connect(server.url, options)
  link.channel.send(request(1))
  const end = await link.events.end(1)
  return { end, events: link.events, server }
}
/** A session that is there: what an initialize was answered with. */
const begin = async (link: { channel: StreamableChannel; events: Recorder }) => {
  link.channel.send(request(0, 'initialize'))
  await link.events.end(0)
}
const withSession =
  (script: Script): Script =>
  (seen, response) =>
    seen.message.method === 'initialize' ? json(response, 200, result(0), { 'mcp-session-id': 's-1' }) : script(seen, response)

/** A server that takes the first notification only after `release()`. */
const slowToBegin = async () => {
  const { promise: asked, resolve: release } = Promise.withResolvers<void>()
  const server = await scripted((seen, response) => {
    if (seen.message.method === 'notifications/initialized') void asked.then(() => response.writeHead(202).end())
    else json(response, 200, result(seen.message.id))
  })
  return Object.assign(server, { release })
}

describe('requests', () => {
  test('B218 sends both types in Accept, the configured headers, and the body as one piece', async () => {
    await using server = await scripted((seen, response) => json(response, 200, result(seen.message.id)))
    await using link = await connect(server.url, {}, { Authorization: 'Bearer t', Accept: 'nonsense' })
    link.channel.send({ ...request(1), headers: { 'mcp-method': 'tools/call' } })
    await link.events.end(1)
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: '/mcp',
      text: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'accept-encoding': 'identity',
        'content-length': '58',
        authorization: 'Bearer t',
        'mcp-method': 'tools/call',
      },
    })
  })

  test('B218 sends MCP-Protocol-Version from the handshake on, on POST, GET and DELETE', async () => {
    await using server = await scripted(
      withSession((seen, response) => (seen.method === 'GET' ? sse(response) : json(response, 200, result(seen.message.id)))),
    )
    const link = await connect(server.url)
    await begin(link)
    link.channel.setRevision('2025-11-25')
    link.channel.send(request(1))
    await link.events.end(1)
    expect(await link.channel.openStream()).toBe(true)
    await link.channel.close()
    const sent = server.seen.map(({ method, headers }) => [method, headers['mcp-protocol-version'], headers['mcp-session-id']])
    expect(sent).toEqual([
      ['POST', undefined, undefined],
      ['POST', '2025-11-25', 's-1'],
      ['GET', '2025-11-25', 's-1'],
      ['DELETE', '2025-11-25', 's-1'],
    ])
  })

  test('B218 the version, the session and the proof are sent in place of configured headers', async () => {
    await using server = await scripted(withSession((seen, response) => json(response, 200, result(seen.message.id))))
    const configured = { 'MCP-Protocol-Version': '2020-01-01', 'Mcp-Session-Id': 'another', Authorization: 'Bearer configured' }
    const events = new Recorder()
    await using link = {
      channel: new StreamableChannel(client, server.url, configured, FAST, { value: 'Bearer current' }),
      events,
      [Symbol.asyncDispose]: () => link.channel.close(),
    }
    await link.channel.open(events)
    await begin(link)
    link.channel.setRevision('2025-11-25')
    link.channel.send(request(1))
    await events.end(1)
    expect(server.seen.at(-1)?.headers).toMatchObject({
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': 's-1',
      authorization: 'Bearer current',
    })
  })

  test('a new proof goes with every request from then on, whichever of them is the first', async () => {
    await using server = await scripted(
      withSession((seen, response) => (seen.method === 'GET' ? sse(response) : json(response, 200, result(seen.message.id)))),
    )
    const bearer = { value: 'Bearer old' }
    const events = new Recorder()
    const channel = new StreamableChannel(client, server.url, {}, FAST, bearer)
    await channel.open(events)
    await begin({ channel, events })
    channel.send(request(1))
    await events.end(1)
    bearer.value = 'Bearer new'
    expect(await channel.openStream()).toBe(true)
    channel.send(request(2))
    await events.end(2)
    await channel.close()
    expect(server.seen.map(({ method, headers }) => [method, headers.authorization])).toEqual([
      ['POST', 'Bearer old'],
      ['POST', 'Bearer old'],
      ['GET', 'Bearer new'],
      ['POST', 'Bearer new'],
      ['DELETE', 'Bearer new'],
    ])
  })

  test('a modern request opens no session, whatever the server says', async () => {
    await using server = await scripted((seen, response) =>
      json(response, 200, result(seen.message.id), { 'mcp-session-id': 'x' }),
    )
    await using link = await connect(server.url)
    link.channel.send({ ...request(1), headers: { 'mcp-method': 'tools/call', 'mcp-protocol-version': '2026-07-28' } })
    await link.events.end(1)
    link.channel.send(request(2))
    await link.events.end(2)
    expect(server.seen[1]?.headers['mcp-session-id']).toBeUndefined()
  })

  test('an empty session id is none', async () => {
    await using server = await scripted((seen, response) =>
      json(response, 200, result(seen.message.id), { 'mcp-session-id': '' }),
    )
    const link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    await link.events.end(1)
    await link.channel.close()
    expect(server.seen.map(({ method, headers }) => [method, headers['mcp-session-id']])).toEqual([
      ['POST', undefined],
      ['POST', undefined],
    ])
  })

  test('nothing overtakes the first notification', async () => {
    await using server = await slowToBegin()
    await using link = await connect(server.url)
    link.channel.send(notification('notifications/initialized'))
    link.channel.send(request(1))
    await server.until((seen) => seen.message.method === 'notifications/initialized')
    expect(server.seen).toHaveLength(1)
    server.release()
    await link.events.end(1)
    expect(server.seen.map(({ message }) => message.id)).toEqual([undefined, 1])
  })

  test('an answer to a ping during the handshake neither waits for the first notification nor takes its place', async () => {
    await using server = await slowToBegin()
    await using link = await connect(server.url)
    expect(await overtakenByAnswers(link.channel, server)).toBe(true)
    server.release()
  })

  test('a request that waits for the first notification can be withdrawn; one that was sent cannot', async () => {
    await using server = await slowToBegin()
    await using link = await connect(server.url)
    link.channel.send(notification('notifications/initialized'))
    for (const id of [1, 2]) link.channel.send(request(id))
    expect(link.channel.withdraw(1)).toBe(true)
    server.release()
    await link.events.end(2)
    link.channel.send(request(3))
    expect([1, 2, 3].map((id) => link.channel.withdraw(id))).toEqual([false, false, false])
    await link.events.end(3)
    expect(server.seen.map(({ message }) => message.id)).toEqual([undefined, 2, 3])
  })

  test('an answer to a question of the server is sent again when its connection breaks, and once only; a notification is not', async () => {
    let posts = 0
    await using server = await scripted((seen, response) => {
      if (seen.message.method === 'notifications/x') return response.destroy()
      if (seen.message.id === 7 && ++posts === 2) response.writeHead(202).end()
      else response.destroy()
    })
    await using link = await connect(server.url)
    const answer = (id: number) => ({ parts: [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`)], isAnswer: true })
    link.channel.send(answer(7))
    link.channel.send(answer(8))
    link.channel.send(notification('notifications/x'))
    await link.events.until(() => link.events.refused.length === 2 || undefined)
    const texts = server.seen.map(({ message }) => message.id ?? message.method)
    expect(texts.toSorted()).toEqual([7, 7, 8, 8, 'notifications/x'])
  })

  test('a notification that is refused is told, with what the server said', async () => {
    await using server = await scripted((_seen, response) => json(response, 400, error(null, -32600)))
    await using link = await connect(server.url)
    link.channel.send(notification('notifications/cancelled'))
    const refused = await link.events.until(() => link.events.refused[0])
    expect(refused).toEqual({ reason: expect.stringContaining('HTTP 400'), sample: error(null, -32600) })
  })
})

describe('answers', () => {
  const call = { method: 'notifications/progress', jsonrpc: '2.0' }
  const ask = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: {} }

  test('B224 takes JSON', async () => {
    const { end, events } = await outcome((seen, response) => json(response, 200, result(seen.message.id, { a: 1.5 })))
    expect(end).toEqual({ jsonrpc: '2.0', id: 1, result: { a: 1.5 } })
    expect(events.received).toMatchObject([{ during: 1 }])
  })

  test('B224 takes SSE, with what the server says before its response', async () => {
    const { events } = await outcome((_seen, response) => {
      sse(response, `event: message\ndata: ${JSON.stringify(call)}\n\ndata: ${JSON.stringify(ask)}\n\n`).end(
        `data: ${result(1)}\n\n`,
      )
    })
    expect(events.messages).toEqual([call, ask, { jsonrpc: '2.0', id: 1, result: {} }])
    expect(events.received.map(({ during }) => during)).toEqual([1, 1, 1])
  })

  test('B225 passes over comments, empty data and events of other types', async () => {
    const { events } = await outcome((_seen, response) => {
      sse(response, ': hi\n\n:\r\n\r\nid: 0\ndata:\n\nevent: ping\ndata: {"x":1}\n\n').end(`data: ${result(1)}\n\n`)
    })
    expect(events.messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
    expect(events.refused).toEqual([])
  })

  test('takes pretty-printed JSON, in a body and over many data lines', async () => {
    const pretty = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { list: [1, 2] } }, undefined, 2)
    const body = await outcome((_seen, response) => json(response, 200, `\r\n${pretty}\n`))
    const lines = await outcome((_seen, response) => {
      sse(response).end(
        `${pretty
          .split('\n')
          .map((line) => `data: ${line}\n`)
          .join('')}\n`,
      )
    })
    expect(body.end).toEqual(JSON.parse(pretty))
    expect(lines.end).toEqual(JSON.parse(pretty))
  })

  test.each([
    ['a body', (response: Parameters<Script>[1], batch: string) => json(response, 200, batch)],
    ['SSE data', (response: Parameters<Script>[1], batch: string) => sse(response).end(`data: ${batch}\n\n`)],
  ])('splits a batch in %s', async (_where, send) => {
    const { events } = await outcome((_seen, response) =>
      send(response, `[${JSON.stringify(call)}, ${result(1)} ,${JSON.stringify(ask)}]`),
    )
    expect(events.messages).toEqual([call, { jsonrpc: '2.0', id: 1, result: {} }, ask])
  })

  test('a response that comes on the standalone stream still answers its request', async () => {
    await using server = await scripted((seen, response) => {
      if (seen.method === 'GET') sse(response, `data: ${result(1)}\n\n`)
      else sse(response)
    })
    await using link = await connect(server.url)
    link.channel.send(request(1))
    await server.until((seen) => seen.method === 'POST')
    await link.channel.openStream()
    expect(await link.events.end(1)).toMatchObject({ id: 1 })
    expect(link.events.received).toMatchObject([{ during: undefined }])
    expect(link.events.losses).toEqual([])
  })

  test('closes a stream that stays open behind the response', async () => {
    await using server = await scripted((_seen, response) => void sse(response, `data: ${result(1)}\n\n`))
    await using link = await connect(server.url, { lingerMs: 1 })
    link.channel.send(request(1))
    await link.events.end(1)
    await server.seen[0]?.closed
    expect(link.events.losses).toEqual([])
  })

  test.each([
    ['no JSON', '{"jsonrpc":', 1],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 1],
    ['an array as result', '{"jsonrpc":"2.0","id":1,"result":[]}', 1],
    ['neither result nor error', '{"jsonrpc":"2.0","id":1}', 1],
    ['both', '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', 1],
    ['nothing', '', 0],
    ['the response to something else', result(7), 0],
  ])('a body with %s ends the request as bad_response', async (_what, body, garbage) => {
    const { end, events } = await outcome((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    })
    expect(end).toMatchObject({ kind: 'bad_response', executed: 'unknown' })
    expect(events.refused).toHaveLength(garbage)
  })

  test('an unusable response on a stream ends the request; other garbage there does not', async () => {
    const { end, events } = await outcome((_seen, response) => {
      sse(response, 'data: hello\n\ndata: {"jsonrpc":"2.0","id":1,"result":3}\n\n')
    })
    expect(end).toMatchObject({ kind: 'bad_response' })
    expect(events.refused.map(({ sample }) => sample)).toEqual(['hello', '{"jsonrpc":"2.0","id":1,"result":3}'])
  })

  const TYPES = ['application/json', 'text/event-stream'] as const
  const ENCODERS = {
    gzip: gzipSync,
    'x-gzip': gzipSync,
    GZIP: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  }
  test.each(Object.entries(ENCODERS))('an answer encoded as %s, unasked, is decoded', async (encoding, encode) => {
    for (const type of TYPES) {
      const text = result(1, { text: 'x'.repeat(200_000) })
      const body = encode(type === 'text/event-stream' ? `data: ${text}\n\n` : text)
      const { end } = await outcome((_seen, response) => {
        response.writeHead(200, { 'content-type': type, 'content-encoding': encoding })
        for (let at = 0; at < body.length; at += 7) response.write(body.subarray(at, at + 7))
        response.end()
      })
      expect(end).toMatchObject({ id: 1 })
    }
  })

  test('events of an encoded stream arrive as they are flushed, and an error status keeps its body', async () => {
    await using server = await scripted((seen, response) => {
      if (seen.message.id === 2) {
        response
          .writeHead(400, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
          .end(gzipSync(error(2, -32001)))
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      const gzip = createGzip()
      gzip.pipe(response)
      gzip.write('data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n')
      gzip.flush()
    })
    await using link = await connect(server.url)
    link.channel.send(request(1))
    await link.events.until(() => link.events.received[0])
    link.channel.send(request(2))
    expect(await link.events.end(2)).toMatchObject({ error: { code: -32001 } })
    link.channel.abandon(1)
  })

  test('T-24 what is decoded counts: a bomb ends at the cap, and a body that is cut off or lies is no answer', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20))
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    for (const body of [bomb, gzipSync(bomb)])
      expect(
        (await outcome((_seen, response) => response.writeHead(200, headers).end(body), { maxMessageBytes: 2 ** 20 })).end,
      ).toMatchObject({
        kind: body === bomb ? 'too_large' : 'bad_response',
      })
    for (const body of [gzipSync(result(1)).subarray(0, 20), Buffer.from('no gzip at all'), Buffer.alloc(0)])
      expect((await outcome((_seen, response) => response.writeHead(200, headers).end(body))).end).toMatchObject({
        kind: 'bad_response',
      })
    const twice = { ...headers, 'content-encoding': 'gzip, br' }
    expect((await outcome((_seen, response) => response.writeHead(200, twice).end(bomb))).end).toMatchObject({
      kind: 'bad_response',
      message: expect.stringContaining('gzip, br') as string,
    })
  })

  test.each([
    ['gzip', Buffer.alloc(0)],
    ['gzip', Buffer.from('no gzip at all')],
    ['utf-8', Buffer.from('plain')],
  ])('an HTTP status counts where the body is not %s as it says', async (encoding, body) => {
    await using server = await scripted((seen, response) => {
      const headers = { 'content-encoding': encoding, 'content-type': 'text/html', 'www-authenticate': 'Bearer' }
      if (seen.message.id === undefined) response.writeHead(202, { 'content-encoding': 'gzip' }).end()
      else response.writeHead(seen.message.id === 1 ? 401 : 404, headers).end(body)
    })
    await using link = await connect(server.url)
    link.channel.send(notification('notifications/initialized'))
    link.channel.send(request(1))
    link.channel.send(request(2))
    expect(await link.events.end(1)).toMatchObject({ kind: 'auth_required', executed: 'no', facts: { challenge: 'Bearer' } })
    expect(await link.events.end(2)).toMatchObject({ kind: 'not_found', executed: 'no' })
    expect(link.events.refused).toEqual([])
  })

  test.each([
    ['application/json-rpc', ''],
    ['Application/JSON-RPC; charset=utf-8', ''],
    ['application/json', '\ufeff'],
    ['application/vnd.x+json', '\ufeff \n'],
  ])('a body of %s after %j is read', async (type, before) => {
    const { end } = await outcome((_seen, response) => response.writeHead(200, { 'content-type': type }).end(before + result(1)))
    expect(end).toMatchObject({ id: 1 })
  })

  test.each([['another content type', { 'content-type': 'text/html' }]])('%s is a bad_response', async (_what, headers) => {
    const { end } = await outcome((_seen, response) => response.writeHead(200, headers).end(result(1)))
    expect(end).toMatchObject({ kind: 'bad_response', executed: 'unknown' })
  })

  test.each([
    ['a declared body', (response: Parameters<Script>[1], big: string) => json(response, 200, big)],
    [
      'a chunked body',
      (response: Parameters<Script>[1], big: string) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).write(big),
    ],
    ['an event', (response: Parameters<Script>[1], big: string) => void sse(response, `data: ${big}`)],
  ])('stops reading %s at the cap and closes the connection', async (_what, send) => {
    await using server = await scripted((_seen, response) => send(response, result(1, { x: 'x'.repeat(300_000) })))
    await using link = await connect(server.url, { maxMessageBytes: 2 ** 18 })
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'too_large', executed: 'unknown', facts: { amount: 0.25 } })
    await server.seen[0]?.closed
  })
})

describe('statuses', () => {
  const later = new Date(Date.now() + 86_400_000).toUTCString()
  test.each([
    [400, {}, { kind: 'bad_response', executed: 'no' }],
    [401, {}, { kind: 'auth_required', executed: 'no' }],
    [403, {}, { kind: 'forbidden', executed: 'no' }],
    [403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="a b"' }, { kind: 'scope_required', executed: 'no' }],
    [404, {}, { kind: 'not_found', executed: 'no' }],
    [405, {}, { kind: 'not_found', executed: 'no' }],
    [410, {}, { kind: 'not_found', executed: 'no' }],
    [406, {}, { kind: 'bad_response', executed: 'no' }],
    [415, {}, { kind: 'bad_response', executed: 'no' }],
    [422, {}, { kind: 'bad_response', executed: 'no' }],
    [413, {}, { kind: 'too_large', executed: 'no' }],
    [431, {}, { kind: 'too_large', executed: 'no' }],
    [429, {}, { kind: 'rate_limited', executed: 'no', retryable: true }],
    [429, { 'retry-after': '7' }, { kind: 'rate_limited', facts: { retryAfterMs: 7_000 } }],
    [503, { 'retry-after': later }, { kind: 'downstream_error', facts: { retryAfterMs: expect.closeTo(86_400_000, -6) } }],
    [503, { 'retry-after': 'soon' }, { kind: 'downstream_error', executed: 'unknown', retryable: true }],
    [500, {}, { kind: 'downstream_error', executed: 'unknown', retryable: false }],
    [502, {}, { kind: 'downstream_error', executed: 'unknown', retryable: true }],
    [504, {}, { kind: 'downstream_error', executed: 'unknown', retryable: true }],
    [418, {}, { kind: 'bad_response', executed: 'no' }],
    [202, {}, { kind: 'bad_response', executed: 'unknown' }],
  ])('F-15 HTTP %i %j without a message', async (status, headers, expected) => {
    const { end, events } = await outcome((_seen, response) => {
      response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end('nothing to see')
    })
    expect(end).toMatchObject(expected)
    expect(end).toMatchObject({ facts: { status } })
    expect(events.losses).toHaveLength(1)
  })

  test.each([400, 404, 403, 500, 503])('an error response with our id in an HTTP %i is the response', async (status) => {
    const { end } = await outcome((_seen, response) => json(response, status, error(1, -32601)))
    expect(end).toMatchObject({ error: { code: -32601 } })
  })

  test.each([
    [400, null],
    [400, undefined],
    [404, null],
    [500, null],
    [400, 'server-error'],
    [200, null],
  ])('an error response in an HTTP %i under the id %j is the response to what was asked', async (status, id) => {
    const { end, events } = await outcome((_seen, response) => json(response, status, error(id, -32000)))
    expect(end).toMatchObject({ error: { code: -32000 } })
    expect(events.received[0]).toMatchObject({ id: '1', during: 1 })
  })

  test.each([
    [401, 1, 'auth_required'],
    [429, 1, 'rate_limited'],
    [403, null, 'forbidden'],
    [503, null, 'downstream_error'],
  ])('an HTTP %i says more than an error body under the id %j', async (status, id, kind) => {
    const { end } = await outcome((_seen, response) => json(response, status, error(id, -32000)))
    expect(end).toMatchObject({ kind })
  })

  test.each(['Bad Request: No valid session ID provided', 'Bad Request: Server not initialized'])(
    'B222 a 400 that says, under no id, %j is session_expired, too',
    async (message) => {
      const refusal = JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null })
      await using server = await scripted(withSession((_seen, response) => json(response, 400, refusal)))
      await using link = await connect(server.url)
      await begin(link)
      link.channel.send(request(1))
      expect(await link.events.end(1)).toMatchObject({ kind: 'session_expired', executed: 'no', facts: { status: 400 } })
    },
  )

  test.each([
    ['a text (Python SDK)', 'Bad Request: No valid session ID provided'],
    ['an object of its own', '{"error":"Session not found"}'],
  ])('B222 a 400 that says so in %s is session_expired, too', async (_form, refusal) => {
    await using server = await scripted(withSession((_seen, response) => response.writeHead(400).end(refusal)))
    await using link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'session_expired', executed: 'no', facts: { status: 400 } })
  })

  test.each([
    ['a page', '<html><body>Your session is over</body></html>'],
    ['another text', 'Bad Request: the path is unknown'],
    ['an error of this request', error(1, -32602)],
  ])('B222 a 400 with %s does not end the session', async (_form, refusal) => {
    await using server = await scripted(withSession((_seen, response) => response.writeHead(400).end(refusal)))
    await using link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    expect(await link.events.end(1)).not.toMatchObject({ kind: 'session_expired' })
  })

  test('B222 a 404 to our session id is session_expired, certainly not executed', async () => {
    await using server = await scripted(withSession((_seen, response) => json(response, 404, error(null, -32001))))
    await using link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'session_expired', executed: 'no', facts: { status: 404 } })
  })

  test('F-16 of many calls each is refused for itself, once, and no other is lost with it', async () => {
    await using server = await scripted(
      withSession((seen, response) => {
        if (Number(seen.message.id) % 50 === 1)
          void server.until(({ message }) => message.id === 200).then(() => json(response, 200, result(seen.message.id)))
        else response.writeHead(404).end()
      }),
    )
    await using link = await connect(server.url)
    await begin(link)
    const ids = Array.from({ length: 200 }, (_, index) => index + 1)
    for (const id of ids) link.channel.send(request(id))
    const ends = await Promise.all(ids.map((id) => link.events.end(id)))
    expect(ends.filter((end) => 'result' in end)).toHaveLength(4)
    expect(link.events.losses.map(({ failure }) => failure.kind)).toEqual(Array.from({ length: 196 }, () => 'session_expired'))
  })

  test('a server that is not there is unreachable, certainly not executed', async () => {
    const gone = await scripted(() => undefined)
    await gone[Symbol.asyncDispose]()
    await using link = await connect(gone.url)
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'unreachable', executed: 'no', retryable: true })
  })
})

describe('redirects', () => {
  test.each([307, 308])('follows a %i within the origin, with method, body and credentials', async (status) => {
    await using server = await scripted((seen, response) => {
      if (seen.path === '/mcp') response.writeHead(status, { location: '/mcp/' }).end()
      else json(response, 200, result(seen.message.id))
    })
    await using link = await connect(server.url, {}, { authorization: 'Bearer t' })
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ result: {} })
    expect(server.seen[1]).toMatchObject({
      method: 'POST',
      path: '/mcp/',
      text: server.seen[0]?.text,
      headers: { authorization: 'Bearer t' },
    })
  })

  test('follows three, not four', async () => {
    const { end, server } = await outcome((seen, response) => void response.writeHead(307, { location: `${seen.path}x` }).end())
    expect(end).toMatchObject({ kind: 'bad_response', executed: 'no' })
    expect(server.seen.map(({ path }) => path)).toEqual(['/mcp', '/mcpx', '/mcpxx', '/mcpxxx'])
  })

  test('sends nothing to another origin', async () => {
    await using other = await scripted((_seen, response) => json(response, 200, result(1)))
    const { end } = await outcome((_seen, response) => void response.writeHead(307, { location: other.url.href }).end())
    expect(end).toMatchObject({ kind: 'bad_response', executed: 'no' })
    expect(other.seen).toEqual([])
  })

  test.each([
    [301, 'no'],
    [302, 'no'],
    [303, 'unknown'],
  ])('does not follow a %i', async (status, executed) => {
    const { end, server } = await outcome((_seen, response) => void response.writeHead(status, { location: '/other' }).end())
    expect(end).toMatchObject({ kind: 'bad_response', executed, message: expect.stringContaining(`${server.url.origin}/other"`) })
    expect(server.seen).toHaveLength(1)
  })
})

describe('F-18 a connection that breaks', () => {
  const forms = {
    JSON: (body: string) => ['', body, ''],
    'SSE in chunks': (body: string) => [
      `2\r\n: \r\n1\r\n\n\r\n${(body.length + 8).toString(16)}\r\ndata: `,
      `${body}\n\n`,
      '\r\n0\r\n\r\n',
    ],
    'SSE up to the end of the connection': (body: string) => ['data: ', `${body}\n\n`, ': bye\n'],
  }
  const heads = {
    JSON: 'content-type: application/json\r\ncontent-length: 52',
    'SSE in chunks': 'content-type: text/event-stream\r\ntransfer-encoding: chunked',
    'SSE up to the end of the connection': 'content-type: text/event-stream\r\nconnection: close',
  }

  test.each(['JSON', 'SSE in chunks', 'SSE up to the end of the connection'] as const)(
    'after any number of bytes of %s: the response comes whole, or is lost once',
    async (form) => {
      const replyTo = (id: number) => {
        const [before = '', message = '', after = ''] = forms[form](result(id, { text: 'whole' }))
        const start = `HTTP/1.1 200 OK\r\n${heads[form]}\r\n\r\n${before}${message}`
        return { bytes: start + after, needed: start.length }
      }
      const { bytes, needed } = replyTo(100)
      await using server = await rawScripted((socket, text) => {
        const id = Number(/"id":(\d+)/.exec(text)?.[1])
        socket.end(replyTo(id).bytes.slice(0, id - 100), () => socket.destroy())
      })
      const link = await connect(server.url)
      for (let cut = 0; cut <= bytes.length; cut++) {
        link.channel.send(request(100 + cut))
        const expected = cut < needed ? { kind: 'lost', executed: 'unknown' } : { result: { text: 'whole' } }
        expect(await link.events.end(100 + cut)).toMatchObject(expected)
      }
      await link.channel.close()
      expect(link.events.losses.map(({ id }) => id - 100)).toEqual(Array.from({ length: needed }, (_, cut) => cut))
      expect(link.events.received).toHaveLength(bytes.length + 1 - needed)
    },
  )

  test('B223 is resumed by GET with Last-Event-ID, and messages go on belonging to the request', async () => {
    await using server = await scripted(
      withSession((seen, response) => {
        if (seen.method === 'POST') {
          sse(response, `id: é-7\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress' })}\n\n`)
          setImmediate(() => response.destroy())
        } else sse(response).end(`id: 8\ndata: ${result(1)}\n\n`)
      }),
    )
    await using link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ result: {} })
    expect(link.events.received.map(({ during }) => during)).toEqual([0, 1, 1])
    const get = server.seen.find(({ method }) => method === 'GET')
    expect(Buffer.from(get?.headers['last-event-id'] as string, 'latin1').toString()).toBe('é-7')
    expect(get?.headers).toMatchObject({ accept: 'text/event-stream', 'mcp-session-id': 's-1' })
  })

  test('B223 a server that says retry and closes is polled as often as it takes', async () => {
    let polls = 0
    const { end, server, events } = await outcome((seen, response) => {
      if (seen.method === 'POST') sse(response).end('id: 0\nretry: 20\ndata:\n\n')
      else if (++polls < 8) sse(response).end()
      else sse(response).end(`data: ${result(1)}\n\n`)
    })
    expect(end).toMatchObject({ result: {} })
    expect(server.seen.filter(({ method }) => method === 'GET')).toHaveLength(8)
    expect(events.losses).toEqual([])
  })

  test('gives up after five tries in a row that bring nothing new', async () => {
    const { end, server } = await outcome((seen, response) => {
      if (seen.method === 'POST') sse(response).end('id: 0\ndata:\n\n')
      else response.writeHead(503).end()
    })
    expect(end).toMatchObject({ kind: 'lost', executed: 'unknown' })
    expect(server.seen.filter(({ method }) => method === 'GET')).toHaveLength(5)
  })

  test('B223 a stream that was open for a while is no failed attempt, though it ended without an event (proxies cut streams)', async () => {
    let resumed = 0
    const { end } = await outcome(
      (seen, response) => {
        if (seen.method === 'POST') sse(response).end('id: 0\ndata:\n\n')
        else if (++resumed < 10) sse(response, ': still there\n\n').end()
        else sse(response, `data: ${result(1)}\n\n`).end()
      },
      { steadyMs: 0 },
    )
    expect(end).toMatchObject({ result: {} })
  })

  test.each([405, 404, 400])('is lost when the server answers %i to resuming', async (status) => {
    const { end, server } = await outcome((seen, response) => {
      if (seen.method === 'POST') sse(response).end('id: 0\ndata:\n\n')
      else response.writeHead(status).end()
    })
    expect(end).toMatchObject({ kind: 'lost', executed: 'unknown' })
    expect(server.seen).toHaveLength(2)
  })

  test('is never resumed in the modern era: the loss is told at once', async () => {
    await using server = await scripted((_seen, response) => void sse(response).end('id: 0\nretry: 60000\ndata:\n\n'))
    await using link = await connect(server.url)
    link.channel.setRevision('2026-07-28')
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'lost', executed: 'unknown' })
    expect(server.seen).toHaveLength(1)
  })

  test('B201 a modern server opens no session, whatever it answers a notification with', async () => {
    await using server = await scripted((seen, response) => {
      if (seen.message.id === undefined) response.writeHead(202, { 'mcp-session-id': 's-1' }).end()
      else json(response, 200, result(seen.message.id))
    })
    await using link = await connect(server.url)
    link.channel.setRevision('2026-07-28')
    link.channel.send({ parts: [Buffer.from('{"jsonrpc":"2.0","method":"notifications/own"}')] })
    await vi.waitFor(() => expect(server.seen).toHaveLength(1))
    link.channel.send(request(1))
    await link.events.end(1)
    expect(server.seen[1]?.headers).not.toHaveProperty('mcp-session-id')
  })
})

describe('the standalone stream', () => {
  test.each([405, 404])('a first %i says that there is none, and it is not asked for again', async (status) => {
    await using server = await scripted(
      withSession((seen, response) =>
        seen.method === 'POST' ? json(response, 200, result(seen.message.id)) : response.writeHead(status).end(),
      ),
    )
    await using link = await connect(server.url)
    await begin(link)
    expect(await link.channel.openStream()).toBe(false)
    expect(await link.channel.openStream()).toBe(false)
    link.channel.send(request(2))
    expect(await link.events.end(2)).toMatchObject({ result: {} })
    expect(server.seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST'])
  })

  test('B223 is opened again from the last event on, after an outage too', async () => {
    let opened = 0
    await using server = await scripted((_seen, response) => {
      opened++
      if (opened === 2) response.writeHead(503, { 'retry-after': '0' }).end()
      else if (opened === 3) response.destroy()
      else sse(response, `id: ${opened}\nretry: 5\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: `n/${opened}` })}\n\n`).end()
    })
    await using link = await connect(server.url)
    expect(await link.channel.openStream()).toBe(true)
    await server.until((seen) => seen.headers['last-event-id'] === '4')
    expect(server.seen.slice(0, 5).map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '1', '1', '4'])
    expect(link.events.received.slice(0, 2)).toMatchObject([
      { message: { method: 'n/1' }, during: undefined },
      { message: { method: 'n/4' }, during: undefined },
    ])
  })

  test.each([400, 401, 403, 405])(
    'B223 a stream that was open is opened again where HTTP %i is between, from the beginning',
    async (status) => {
      let opened = 0
      await using server = await scripted((_seen, response) => {
        opened++
        if (opened === 2) response.writeHead(status).end()
        else
          sse(response, `id: ${opened}\nretry: 5\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: `n/${opened}` })}\n\n`).end()
      })
      await using link = await connect(server.url)
      expect(await link.channel.openStream()).toBe(true)
      await server.until((seen) => seen.headers['last-event-id'] === '3')
      expect(server.seen.slice(0, 4).map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', undefined, '3'])
      expect(link.events.received.slice(0, 2)).toMatchObject([{ message: { method: 'n/1' } }, { message: { method: 'n/3' } }])
    },
  )

  test('goes on behind a message over the cap', async () => {
    const fine = { jsonrpc: '2.0', method: 'fine' }
    await using server = await scripted((_seen, response) => {
      sse(response, `data: "${'x'.repeat(3_000)}"\n\ndata: ${JSON.stringify(fine)}\n\n`)
    })
    await using link = await connect(server.url, { maxMessageBytes: 2_000 })
    await link.channel.openStream()
    expect(await link.events.until(() => link.events.messages[0])).toEqual(fine)
    expect(link.events.refused).toMatchObject([{ reason: expect.stringContaining('2000 bytes') }])
    expect(server.seen).toHaveLength(1)
  })

  test('F-16 a session that is gone ends the channel', async () => {
    let opened = 0
    await using server = await scripted(
      withSession((_seen, response) =>
        opened++ === 0 ? void sse(response, 'id: 1\nretry: 5\ndata:\n\n').end() : response.writeHead(404).end(),
      ),
    )
    const link = await connect(server.url)
    await begin(link)
    expect(await link.channel.openStream()).toBe(true)
    expect(await link.channel.closed).toMatchObject({ kind: 'session_expired' })
    expect(server.seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET'])
  })

  test('F-16 a session that is gone ends the channel also where the server says so with a 400 and a text (SDK examples)', async () => {
    let opened = 0
    await using server = await scripted(
      withSession((_seen, response) =>
        opened++ === 0
          ? void sse(response, 'id: 1\nretry: 5\ndata:\n\n').end()
          : response.writeHead(400).end('Invalid or missing session ID'),
      ),
    )
    const link = await connect(server.url)
    await begin(link)
    expect(await link.channel.openStream()).toBe(true)
    expect(await link.channel.closed).toMatchObject({ kind: 'session_expired' })
  })

  /** A server that ends the session when it has two calls, and tells the stream before them. */
  const ending = async (answer: (id: unknown, response: ServerResponse) => void, options: Partial<StreamableOptions> = {}) => {
    const { promise: mayAnswer, resolve: release } = Promise.withResolvers<void>()
    let opened = 0
    const server = await scripted(
      withSession(({ method, message: { id } }, response) => {
        if (method === 'POST') void mayAnswer.then(() => answer(id, response))
        else if (opened++ === 0)
          void server.until(({ message }) => message.id === 2).then(() => sse(response, 'id: 1\nretry: 5\ndata:\n\n').end())
        else response.writeHead(404).end()
      }),
    )
    const link = await connect(server.url, options)
    await begin(link)
    void link.channel.openStream()
    for (const id of [1, 2]) link.channel.send(request(id))
    const isOver = link.channel.closed
    /** Until it is known that the session is gone: what is sent from then on is refused here. */
    const known = async (): Promise<Failure> => {
      for (let id = 100; ; id++) {
        link.channel.send(request(id))
        await Promise.race([server.until(({ message }) => message.id === id), link.events.end(id)])
        const refused = link.events.losses.find((loss) => loss.id === id)
        if (refused !== undefined) return refused.failure
        link.channel.abandon(id)
      }
    }
    return { server, link, known, release, isOver, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  }

  test('B222 F-16 calls that were under way then end with their own answers: the refused one is certainly not executed', async () => {
    await using at = await ending((id, response) => (id === 1 ? response.writeHead(404).end() : json(response, 200, result(id))))
    expect(await at.known()).toMatchObject({ kind: 'session_expired', executed: 'no' })
    at.release()
    expect(await at.link.events.end(1)).toMatchObject({ kind: 'session_expired', executed: 'no' })
    expect(await at.link.events.end(2)).toMatchObject({ result: {} })
    expect(await at.isOver).toMatchObject({ kind: 'session_expired' })
  })

  test('B231 those that are not answered even then are lost, and may have been executed', async () => {
    await using at = await ending(() => undefined, { expiryMs: 1 })
    expect(await at.link.events.end(1)).toMatchObject({ kind: 'lost', executed: 'unknown' })
    expect(await at.link.events.end(2)).toMatchObject({ kind: 'lost', executed: 'unknown' })
    expect(await at.isOver).toMatchObject({ kind: 'session_expired' })
  })
})

describe('ending', () => {
  test('abandon closes the socket of that request alone, and nothing more comes of it', async () => {
    await using server = await scripted((seen, response) => {
      const stream = sse(response, 'id: 1\ndata:\n\n')
      if (seen.message.id === 2)
        void server.until((seen) => seen.message.id === 3).then(() => stream.end(`data: ${result(2)}\n\n`))
    })
    await using link = await connect(server.url)
    link.channel.send(request(1))
    link.channel.send(request(2))
    const [first] = await Promise.all([1, 2].map((id) => server.until((seen) => seen.message.id === id)))
    link.channel.abandon(1)
    await first?.closed
    link.channel.send(request(3))
    expect(await link.events.end(2)).toMatchObject({ result: {} })
    expect(link.events.losses).toEqual([])
    expect(server.seen.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST'])
  })

  test('in a session the streams of four cancelled requests are read on, and those of others closed', async () => {
    const notification = (method: unknown): string => `data: {"jsonrpc":"2.0","method":"notifications/${String(method)}"}\n\n`
    const streams = new Map<unknown, ReturnType<typeof sse>>()
    await using server = await scripted(
      withSession((seen, response) => void streams.set(seen.message.id, sse(response, notification(seen.message.id)))),
    )
    await using link = await connect(server.url)
    await begin(link)
    const received = (method: unknown) =>
      link.events.until(() => link.events.received.find(({ message }) => message['method'] === `notifications/${String(method)}`))
    for (const id of [2, 3, 4, 5, 6]) {
      link.channel.send(request(id))
      const seen = await server.until(({ message }) => message.id === id)
      expect((await received(id)).during).toBe(id)
      link.channel.abandon(id)
      if (id === 6) await seen.closed
    }
    streams.get(2)?.write(notification('late'))
    expect((await received('late')).during).toBeUndefined()
    expect(link.events.losses).toEqual([])
  })

  test('close ends the session with DELETE and loses what is open, once each', async () => {
    await using server = await scripted(
      withSession((seen, response) => (seen.method === 'DELETE' ? response.writeHead(405).end() : void sse(response))),
    )
    const link = await connect(server.url)
    await begin(link)
    link.channel.send(request(1))
    const seen = await server.until(({ message }) => message.id === 1)
    await link.channel.close()
    await seen.closed
    expect(await link.channel.closed).toBeUndefined()
    expect(server.seen.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 's-1' } })
    expect(link.events.losses).toMatchObject([{ id: 1, failure: { kind: 'lost', executed: 'unknown' } }])
    link.channel.send(request(2))
    expect(await link.events.end(2)).toMatchObject({ kind: 'lost', executed: 'no' })
  })

  test('close does not wait for a server that does not answer the DELETE', async () => {
    await using server = await scripted(withSession(() => undefined))
    const link = await connect(server.url)
    await begin(link)
    await link.channel.close()
    expect(server.seen.at(-1)?.method).toBe('DELETE')
  })

  test('without a session there is no DELETE', async () => {
    const { server } = await outcome((seen, response) => json(response, 200, result(seen.message.id)))
    expect(server.seen.map(({ method }) => method)).toEqual(['POST'])
  })
})

describe('raw exchanges for the probe', () => {
  const ask = async (script: Script, timeoutMs = 5_000) => {
    await using server = await scripted(script)
    await using link = await connect(server.url)
    return await link.channel.exchange(request(1, 'server/discover'), timeoutMs)
  }

  test('B215 show the status and the body, whatever the status', async () => {
    const refused = await ask((_seen, response) => json(response, 400, error(1, -32022)))
    expect(refused).toMatchObject({ status: 400, message: { kind: 'response', id: '1' } })
    expect(refused.message?.error?.value('code')).toBe(-32022)
    const plain = await ask((_seen, response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('no'))
    expect(plain).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
    expect(plain.message).toBeUndefined()
    const stream = await ask((_seen, response) => void sse(response, `: hi\n\ndata: ${result(1)}\n\n`))
    expect(stream).toMatchObject({ status: 200, message: { id: '1' } })
  })

  test('B214 reject when there is no answer', async () => {
    await expect(ask((_seen, response) => response.destroy())).rejects.toMatchObject({ kind: 'lost' })
    await expect(ask(() => undefined, 20)).rejects.toMatchObject({ kind: 'timeout', retryable: true })
  })

  test('reject when the channel is closed meanwhile', async () => {
    await using server = await scripted(() => undefined)
    const link = await connect(server.url)
    const answer = link.channel.exchange(request(1), 5_000)
    const caught = expect(answer).rejects.toMatchObject({ kind: 'lost' })
    await link.channel.close()
    await caught
    await expect(link.channel.exchange(request(2), 5_000)).rejects.toMatchObject({ kind: 'lost', executed: 'no' })
  })
})
