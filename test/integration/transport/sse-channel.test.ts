import { afterAll, describe, expect, test } from 'vitest'
import { UndiciClient } from '../../../src/transport/http1/client/http-client.ts'
import { SseChannel } from '../../../src/transport/channel/sse-channel.ts'
import type { SseOptions } from '../../../src/transport/channel/sse-channel.ts'
import { json, notification, overtakenByAnswers, Recorder, request, result, scripted, sse } from './scripted.ts'
import type { Script } from './scripted.ts'
import type { ServerResponse } from 'node:http'

const client = new UndiciClient()
afterAll(() => client.close())

const channelTo = (url: URL, options: Partial<SseOptions> = {}) => {
  const events = new Recorder()
  const channel = new SseChannel(client, url, { authorization: 'Bearer t' }, options)
  return { channel, events, opened: channel.open(events), [Symbol.asyncDispose]: () => channel.close() }
}

/** A server of the first revision: `endpoint` at once; `post` decides about each message and may write to the stream. */
const oldServer = (
  post: (seen: Parameters<Script>[0], response: ServerResponse, stream: ServerResponse) => void,
  endpoint = '/messages?session=1',
) => {
  let stream: ServerResponse | undefined
  return scripted((seen, response) => {
    if (seen.method === 'GET') stream = sse(response, `event: endpoint\ndata: ${endpoint}\n\n`)
    else if (stream !== undefined) post(seen, response, stream)
  })
}
const accept = (response: ServerResponse): void => void response.writeHead(202).end('Accepted')

describe('the endpoint', () => {
  test.each([
    ['an absolute path', '/messages?s=1', '/messages?s=1'],
    ['a relative path', 'messages/1', '/messages/1'],
    ['nothing but a query', '?s=1', '/mcp?s=1'],
  ])('is resolved against the URL: %s', async (_what, endpoint, path) => {
    await using server = await oldServer((_seen, response, stream) => {
      accept(response)
      stream.write(`event: message\ndata: ${result(1)}\n\n`)
    }, endpoint)
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ result: {} })
    expect(server.seen[0]).toMatchObject({ method: 'GET', headers: { accept: 'text/event-stream', authorization: 'Bearer t' } })
    expect(server.seen[1]).toMatchObject({
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', authorization: 'Bearer t' },
    })
    expect(link.events.received).toMatchObject([{ during: undefined }])
  })

  test('may be an absolute URL of the same origin', async () => {
    await using server = await scripted(
      (_seen, response) => void sse(response, `event: endpoint\ndata: ${server.url.origin}/m\n\n`),
    )
    await using link = channelTo(server.url)
    await expect(link.opened).resolves.toBeUndefined()
  })

  test.each([
    ['another host', (_own: URL, other: URL) => other.href],
    ['another host, without scheme', (_own: URL, other: URL) => `//${other.host}/m`],
    ['another host, by backslashes', (_own: URL, other: URL) => `\\\\${other.host}\\m`],
    ['another host, behind white space', (_own: URL, other: URL) => `  \t${other.href}`],
    ['another host, hidden by user information', (own: URL, other: URL) => `http://${own.host}@${other.host}/m`],
    ['another name of the same host', (own: URL) => `http://localhost:${own.port}/m`],
    ['another port', (own: URL) => `http://${own.hostname}:1/m`],
    ['another scheme', (own: URL) => `https://${own.host}/m`],
    ['a scheme without an origin', () => 'javascript:alert(1)'],
    ['a file', () => 'file:///etc/passwd'],
    ['user information', (own: URL) => `http://user:secret@${own.host}/m`],
    ['a user alone', (own: URL) => `http://user@${own.host}/m`],
    ['no URL', () => 'http://['],
  ])('T-10 B217 is refused if it is %s, and no credential is sent', async (_what, endpoint) => {
    await using other = await scripted((_seen, response) => accept(response))
    await using server = await scripted((_seen, response) => {
      sse(response, `event: endpoint\ndata: ${endpoint(server.url, other.url)}\n\nevent: endpoint\ndata: /m\n\n`)
    })
    const link = channelTo(server.url)
    await expect(link.opened).rejects.toMatchObject({ kind: 'protocol', executed: 'no' })
    expect(await link.channel.closed).toMatchObject({ kind: 'protocol' })
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ kind: 'lost', executed: 'no' })
    await server.seen[0]?.closed
    expect([...server.seen.slice(1), ...other.seen]).toEqual([])
  })

  test('T-10 stays what it was when the server names another one later', async () => {
    await using server = await oldServer((seen, response, stream) => {
      accept(response)
      stream.write(`event: endpoint\ndata: http://127.0.0.1:1/\n\ndata: ${result(seen.message.id)}\n\n`)
    })
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    await link.events.end(1)
    link.channel.send(request(2))
    expect(await link.events.end(2)).toMatchObject({ result: {} })
    expect(server.seen.map(({ path }) => path)).toEqual(['/mcp', '/messages?session=1', '/messages?session=1'])
  })

  test('B209 is the first event: what has no data is none', async () => {
    await using server = await scripted(
      (_seen, response) => void sse(response, 'retry: 3000\n\nid: 1\n\nevent: ping\ndata:\n\nevent: endpoint\ndata: /m\n\n'),
    )
    await using link = channelTo(server.url)
    await expect(link.opened).resolves.toBeUndefined()
  })

  test('B209 may follow events of other names, such as pings of proxies and servers', async () => {
    await using server = await scripted(
      (_seen, response) =>
        void sse(response, 'event: ping\ndata: 2026-01-01\n\nevent: open\ndata: {}\n\nevent: endpoint\ndata: /m\n\n'),
    )
    await using link = channelTo(server.url)
    await expect(link.opened).resolves.toBeUndefined()
  })

  test.each<[string, Script, object, number?]>([
    ['does not come in time', (_seen, response) => void sse(response, ': hi\n\n'), { kind: 'timeout', executed: 'no' }, 100],
    ['is not before the first message', (_seen, response) => void sse(response, `data: ${result(1)}\n\n`), { kind: 'protocol' }],
    ['does not come before the end', (_seen, response) => void sse(response).end(), { kind: 'lost' }],
    ['is no event', (_seen, response) => json(response, 200, '{}'), { kind: 'bad_response' }],
    ['is refused with 404', (_seen, response) => response.writeHead(404).end(), { kind: 'not_found' }],
    ['is refused with 401', (_seen, response) => response.writeHead(401).end(), { kind: 'auth_required' }],
    [
      'is elsewhere',
      (_seen, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      { kind: 'bad_response' },
    ],
  ])('B216 opening fails if it %s', async (_what, script, expected, endpointTimeoutMs = 30_000) => {
    await using server = await scripted(script)
    await using link = channelTo(server.url, { endpointTimeoutMs })
    await expect(link.opened).rejects.toMatchObject(expected)
  })
})

/** A server that takes the first notification only after `release()`. */
const slowToBegin = async () => {
  const { promise: asked, resolve: release } = Promise.withResolvers<void>()
  const server = await oldServer((seen, response, stream) => {
    if (seen.message.method === 'notifications/initialized') void asked.then(() => accept(response))
    else stream.write(`data: ${result(seen.message.id)}\n\n`, () => accept(response))
  })
  return Object.assign(server, { release })
}

describe('messages', () => {
  test('nothing overtakes the first notification', async () => {
    await using server = await slowToBegin()
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(notification('notifications/initialized'))
    link.channel.send(request(1))
    await server.until((seen) => seen.method === 'POST')
    expect(server.seen).toHaveLength(2)
    server.release()
    expect(await link.events.end(1)).toMatchObject({ result: {} })
  })

  test('an answer to a ping during the handshake neither waits for the first notification nor takes its place', async () => {
    await using server = await slowToBegin()
    await using link = channelTo(server.url)
    await link.opened
    expect(await overtakenByAnswers(link.channel, server)).toBe(true)
    server.release()
  })

  test('a request that waits for the first notification can be withdrawn; one that was sent cannot', async () => {
    await using server = await slowToBegin()
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(notification('notifications/initialized'))
    for (const id of [1, 2]) link.channel.send(request(id))
    expect(link.channel.withdraw(1)).toBe(true)
    server.release()
    await link.events.end(2)
    link.channel.send(request(3))
    expect([1, 2, 3].map((id) => link.channel.withdraw(id))).toEqual([false, false, false])
    await link.events.end(3)
    expect(server.seen.flatMap(({ message }) => message.id ?? [])).toEqual([2, 3])
  })

  test('a batch is split, and other event types are passed over', async () => {
    await using server = await oldServer((_seen, response, stream) => {
      stream.write(`event: ping\ndata: {}\n\ndata: [${result(2)},\ndata: ${result(1)}]\n\n`, () => accept(response))
    })
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    await link.events.end(1)
    expect(link.events.received.map(({ id }) => id)).toEqual(['2', '1'])
    expect(link.events.refused).toEqual([])
  })

  test.each([
    ['a notification', '{"jsonrpc":"2.0","method":"m","params":{"x":"LONG"}}', undefined],
    ['a response whose id stands first', '{"jsonrpc":"2.0","id":2,"result":{"x":"LONG"}}', 2],
    ['a response whose id stands last', '{"result":{"x":"LONG"},"jsonrpc":"2.0","id":2}', 2],
    ['a response whose id is hidden', '{"result":{"x":"LONG"},"id":2,"more":{}}', 'all'],
  ])('F-06 %s over the limit costs only the request that it answers', async (_, text, lost) => {
    await using server = await oldServer((seen, response, stream) => {
      accept(response)
      if (seen.message.id === 3) stream.write(`data: ${text.replace('LONG', 'x'.repeat(3_000))}\nid: 7\n\ndata: ${result(3)}\n\n`)
      if (seen.message.id === 4) stream.write(`data: ${result(4)}\n\n`)
    })
    await using link = channelTo(server.url, { maxMessageBytes: 2_000, unclaimedMs: 0 })
    await link.opened
    for (let id = 1; id <= 3; id++) link.channel.send(request(id))
    if (lost === 2) expect(await link.events.end(2)).toMatchObject({ kind: 'too_large' })
    if (lost === 'all') expect(await link.events.end(1)).toMatchObject({ kind: 'too_large' })
    link.channel.send(request(4))
    await link.events.end(4)
    expect(link.events.losses.map(({ id }) => id)).toEqual(lost === 'all' ? [1, 2] : lost === 2 ? [2] : [])
  })

  test('garbage and a message over the cap are told, and the stream goes on', async () => {
    await using server = await oldServer((_seen, response, stream) => {
      accept(response)
      stream.write(`data: what\n\ndata: ${result(9, { x: 'x'.repeat(3_000) })}\n\ndata: ${result(1)}\n\n`)
    })
    await using link = channelTo(server.url, { maxMessageBytes: 2_000 })
    await link.opened
    link.channel.send(request(1))
    expect(await link.events.end(1)).toMatchObject({ result: {} })
    expect(link.events.refused).toMatchObject([{ sample: 'what' }, { reason: expect.stringContaining('2000 bytes') }])
  })

  test.each<[number, object]>([
    [404, { kind: 'not_found', executed: 'no' }],
    [401, { kind: 'auth_required', executed: 'no' }],
    [503, { kind: 'downstream_error', executed: 'unknown', retryable: true }],
  ])('a POST that is refused with %i loses its request, and only that', async (status, expected) => {
    await using server = await oldServer((seen, response, stream) => {
      if (seen.message.id === 1) response.writeHead(status).end()
      else stream.write(`data: ${result(2)}\n\n`, () => accept(response))
    })
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    link.channel.send(request(2))
    expect(await link.events.end(1)).toMatchObject(expected)
    expect(await link.events.end(2)).toMatchObject({ result: {} })
    expect(link.events.losses).toHaveLength(1)
  })

  test.each([
    [404, 'Could not find session'],
    [404, ''],
    [400, 'No transport found for sessionId'],
  ])(
    'B222 a session that the server knew and refuses with %i %j is lost: the request was certainly not executed',
    async (status, text) => {
      await using server = await oldServer((seen, response, stream) => {
        if (seen.message.id === 1) stream.write(`data: ${result(1)}\n\n`, () => accept(response))
        else response.writeHead(status).end(text)
      })
      await using link = channelTo(server.url)
      await link.opened
      link.channel.send(request(1))
      await link.events.end(1)
      // The response may be received before the status of its own POST.
      await server.seen[1]?.closed
      for (let id = 2; link.events.losses.every(({ failure }) => failure.kind !== 'session_expired'); id++) {
        link.channel.send(request(id))
        await link.events.end(id)
        expect(id).toBeLessThan(20)
      }
      expect(link.events.losses.at(-1)).toMatchObject({ failure: { executed: 'no', facts: { status } } })
    },
  )

  test('an answer to a question of the server is sent again when its connection breaks, and once only; a notification is not', async () => {
    let posts = 0
    await using server = await oldServer((seen, response) => {
      if (seen.message.id === 7 && ++posts === 2) accept(response)
      else response.destroy()
    })
    await using link = channelTo(server.url)
    await link.opened
    const answer = (id: number) => ({ parts: [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`)], isAnswer: true })
    link.channel.send(notification('notifications/x'))
    link.channel.send(answer(7))
    link.channel.send(answer(8))
    await link.events.until(() => link.events.refused.length === 2 || undefined)
    const texts = server.seen.slice(1).map(({ message }) => message.id ?? message.method)
    expect(texts.toSorted()).toEqual([7, 7, 8, 8, 'notifications/x'])
  })

  test('a response that came before its POST failed counts', async () => {
    await using server = await oldServer((seen, response, stream) => {
      stream.write(`data: ${result(seen.message.id)}\n\n`)
      void link.events.end(1).then(() => response.destroy())
    })
    await using link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    await link.events.end(1)
    await server.seen[1]?.closed
    link.channel.send(request(2))
    await link.events.end(2)
    expect(link.events.losses).toEqual([])
  })
})

describe('the end', () => {
  test('F-18 of the stream loses what is open, once each, and ends the channel', async () => {
    await using server = await oldServer((_seen, response, stream) => {
      accept(response)
      stream.destroy()
    })
    const link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    expect(await link.channel.closed).toMatchObject({ kind: 'lost' })
    expect(link.events.losses).toMatchObject([{ id: 1, failure: { kind: 'lost', executed: 'unknown' } }])
  })

  test('by close shuts the stream and is no failure', async () => {
    await using server = await oldServer((_seen, response) => accept(response))
    const link = channelTo(server.url)
    await link.opened
    await link.channel.close()
    expect(await link.channel.closed).toBeUndefined()
    await server.seen[0]?.closed
    expect(link.events.losses).toEqual([])
  })

  test('an abandoned request is never lost', async () => {
    await using server = await oldServer((seen, response) => (seen.message.id === 1 ? undefined : accept(response)))
    const link = channelTo(server.url)
    await link.opened
    link.channel.send(request(1))
    await server.until((seen) => seen.message.id === 1)
    link.channel.abandon(1)
    await link.channel.close()
    expect(link.events.losses).toEqual([])
  })
})
