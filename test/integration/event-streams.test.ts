/**
 * Event streams as deployed clients read them: which lines stand in them, how they end, what a client finds that comes back
 * (BRIDGING 3.22, 5.1). Looked at letter for letter, because the parsers of some SDKs know a part of the format only.
 */
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, test, vi } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacySse } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import type { SessionHost } from '../support/fakes/http-hosts.ts'
import { LEGACY, MODERN, request } from '../support/fakes/messages.ts'
import { openFaultProxy } from '../support/fault-proxy.ts'
import { messagesOf, send } from '../support/fakes/raw-http.ts'
import type { RawReply } from '../support/fakes/raw-http.ts'
import { limitHosts, startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('x') }, ...setup })
const TOKEN = { _meta: { progressToken: 'p' } }
const call = (gateway: TestGateway, host: SessionHost, id = 1): Promise<RawReply> =>
  send(gateway.url, { headers: host.headers(), body: request(id, 'tools/call', { name: 'a__x', ...TOKEN }) })
const listen = (gateway: TestGateway, more: Record<string, unknown> = {}): Promise<RawReply> =>
  send(gateway.url, {
    headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' },
    body: request(1, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MODERN,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
      ...more,
    }),
  })
const addTool = (gateway: TestGateway, name = 'new'): void => {
  gateway.fake('a').offers.tools.push({ name, inputSchema: { type: 'object' } })
  gateway.fake('a').changed('tools')
}
/** The events of a stream, each as its lines. */
const eventsIn = (text: string): string[][] =>
  text
    .replaceAll(/^:.*\n/gm, '')
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.split('\n'))
const fieldsOf = (lines: readonly string[]): string[] => lines.map((line) => line.slice(0, line.indexOf(':')))

/** An event is a message by name, or has an id and no data; `retry` is in none. */
const expectMessagesByName = (text: string): void => {
  const events = eventsIn(text)
  expect(events.length).toBeGreaterThan(0)
  for (const lines of events) {
    const data = lines.find((line) => line.startsWith('data:'))
    if (data?.slice(5).trim() === '') expect(fieldsOf(lines)).toEqual(['id', 'data'])
    else expect(lines[0]).toBe('event: message')
    expect(fieldsOf(lines)).not.toContain('retry')
  }
}

describe('B281 every message is an event named message, and no stream that is held open says retry', () => {
  test.each(LEGACY.filter((revision) => revision !== '2024-11-05'))(
    'answers and the GET stream of a %s session',
    async (revision) => {
      await using gateway = await start()
      await using host = await connectHttp(gateway, { revision })
      gateway.fake('a').on('tools/call', (turn) => (turn.progress(1), { content: [] }))
      const reply = await call(gateway, host)
      await reply.body
      expectMessagesByName(reply.text)
      addTool(gateway)
      await host.stream?.events.until(({ data }) => data.includes('list_changed'))
      expectMessagesByName(host.stream?.text ?? '')
    },
  )

  test('what is replayed', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    gateway.fake('a').on('tools/call', (turn) => (turn.progress(1), { content: [] }))
    const reply = await call(gateway, host)
    await reply.body
    const resumed = await resume(gateway, host, reply.events.entries[0]!.id)
    await resumed.body
    expect(resumed.events.entries).toHaveLength(2)
    expectMessagesByName(resumed.text)
  })

  test('the stream of a modern listen', async () => {
    await using gateway = await start()
    const stream = await listen(gateway)
    await stream.events.until(({ data }) => data.includes('acknowledged'))
    addTool(gateway)
    await stream.events.until(({ data }) => data.includes('list_changed'))
    expectMessagesByName(stream.text)
    stream.close()
  })

  test('HTTP+SSE, where only the first event has another name', async () => {
    await using gateway = await start()
    const stream = await send(new URL('/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
    const { data } = await stream.events.until(() => true)
    await send(new URL(data, gateway.url), {
      body: request(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {} }),
    })
    await stream.events.until(({ event }) => event === 'message')
    const [endpoint, ...others] = eventsIn(stream.text)
    expect(endpoint).toEqual(['event: endpoint', `data: ${data}`])
    for (const lines of others) expect(lines[0]).toBe('event: message')
    expect(stream.text).not.toContain('retry')
    stream.close()
  })

  test('a stream that is closed for polling says it last', async () => {
    await using gateway = await start({ host: { streamAfterMs: 0, streamAfterLegacyMs: 0, pollAfterMs: 0 } })
    await using host = await connectHttp(gateway)
    gateway.fake('a').on('tools/call', fake.never)
    const reply = await call(gateway, host)
    await reply.body
    expect(eventsIn(reply.text).map(fieldsOf)).toEqual([
      ['id', 'data'],
      ['retry', 'data'],
    ])
  })

  test('comments are single lines, as parsers that count lines need it', async () => {
    await using gateway = await start({ hostLimits: { sseKeepAliveMs: 20 } })
    await using host = await connectHttp(gateway, { revision: '2025-06-18' })
    await host.stream?.comments.until(() => host.stream?.comments.entries.length === 2)
    expect(host.stream?.text).toMatch(/^(:\n)+$/)
  })
})

const resume = (gateway: TestGateway, host: SessionHost, id: string | undefined): Promise<RawReply> =>
  send(gateway.url, { method: 'GET', headers: { ...host.headers(), accept: 'text/event-stream', 'last-event-id': id } })

/** `streams`: the `Last-Event-ID` of each stream of a call that was opened. */
const connectSdk = async (sdk: 'SDK 1' | 'SDK 2', url: URL) => {
  const streams: (string | null)[] = []
  const info = { name: 'h', version: '1' }
  const options = {
    reconnectionOptions: { initialReconnectionDelay: 1, maxReconnectionDelay: 1, reconnectionDelayGrowFactor: 1, maxRetries: 2 },
    fetch: async (to: string | URL, init?: RequestInit): Promise<Response> => {
      // Without the stream that belongs to no call.
      if (init?.method === 'GET' && streams.length === 0) return new Response(null, { status: 405 })
      const response = await fetch(to, init)
      if (response.headers.get('content-type') === 'text/event-stream')
        streams.push(new Headers(init?.headers).get('last-event-id'))
      return response
    },
  }
  if (sdk === 'SDK 1') {
    const client = new Client1(info)
    await client.connect(new Http1(url, options))
    return { streams, call: () => client.callTool({ name: 'a__x' }), close: () => client.close() }
  }
  const client = new Client2(info, { versionNegotiation: { mode: 'legacy' } })
  await client.connect(new Http2(url, options))
  return { streams, call: () => client.callTool({ name: 'a__x' }), close: () => client.close() }
}

describe('a stream that was cut', () => {
  test('B202 has all the progress for the host that comes back', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const { promise: cut, resolve: isCut } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async (turn) => {
      turn.progress(1)
      await cut
      for (const step of [2, 3, 4, 5]) turn.progress(step)
      return { content: [] }
    })
    const reply = await call(gateway, host)
    const { id } = await reply.events.until(({ data }) => data.includes('"progress":1'))
    reply.close()
    await reply.closed
    isCut()
    const resumed = await resume(gateway, host, id)
    const steps = (await messagesOf(resumed)).map(({ params, result }) => params?.['progress'] ?? result)
    expect(steps).toEqual([2, 3, 4, 5, { content: [] }])
  })

  test.each(LEGACY.filter((revision) => revision !== '2024-11-05'))(
    'B204 begins with the id from which a %s session resumes it, from 2025-11-25 on',
    async (revision) => {
      await using gateway = await start()
      await using host = await connectHttp(gateway, { revision, deaf: true })
      const { promise: later, resolve: release } = Promise.withResolvers<void>()
      gateway.fake('a').on('tools/call', async (turn) => (turn.progress(1), await later, { content: [] }))
      const reply = await call(gateway, host)
      const { id } = await reply.events.until(({ data }) => data.includes('"progress":1'))
      reply.close()
      await reply.closed
      const resumed = await resume(gateway, host, id)
      const standalone = await host.listen()
      addTool(gateway)
      const change = await standalone.events.until(({ data }) => data.includes('list_changed'))
      standalone.close()
      await standalone.closed
      const back = await host.listen(change.id)
      release()
      await resumed.body
      addTool(gateway, 'newer')
      await back.events.until(({ data }) => data.includes('list_changed'))
      const firsts = [resumed, back].map(({ events }) => events.entries[0])
      if (revision === '2025-11-25')
        expect(firsts).toMatchObject([
          { data: '', id },
          { data: '', id: change.id },
        ])
      else for (const first of firsts) expect(first?.data).not.toBe('')
      back.close()
    },
  )

  // The SDKs know the ids of their latest stream only. A host without one opens another stream, and waits for its answer without end.
  test.each(['SDK 1', 'SDK 2'] as const)('B202 B204 answers a host on %s whose stream breaks twice in a silence', async (sdk) => {
    await using gateway = await start({ host: { streamAfterMs: 0, streamAfterLegacyMs: 0 } })
    await using proxy = await openFaultProxy(Number(gateway.url.port))
    const { promise: later, resolve: release } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async () => (await later, { content: [{ type: 'text', text: 'there' }] }))
    const client = await connectSdk(sdk, new URL(`http://127.0.0.1:${proxy.port}/mcp`))
    const pending = client.call()
    for (let breaks = 0; breaks < 2; breaks++) {
      await vi.waitFor(() => expect(client.streams).toHaveLength(breaks + 1))
      proxy.reset()
    }
    await vi.waitFor(() => expect(client.streams).toHaveLength(3))
    const [first, second, third] = client.streams
    expect([first, second]).toEqual([null, expect.any(String)])
    expect(third).toBe(second)
    release()
    expect(await pending).toMatchObject({ content: [{ text: 'there' }] })
    await client.close()
  })

  test('B200 an empty Last-Event-ID names no event: the stream begins', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { deaf: true })
    const stream = await resume(gateway, host, '')
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream'])
    addTool(gateway)
    await stream.events.until(({ data }) => data.includes('tools/list_changed'))
    stream.close()
  })

  test('B202 has what was sent before what has waited for the host', async () => {
    await using gateway = await start({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'], prompts: ['p'] }) } })
    await using host = await connectHttp(gateway, { deaf: true })
    const stream = await send(gateway.url, { method: 'GET', headers: { ...host.headers(), accept: 'text/event-stream' } })
    const { id } = await stream.events.until((event) => event.id !== undefined)
    addTool(gateway)
    await stream.events.until(({ data }) => data.includes('tools/list_changed'))
    stream.close()
    await stream.closed
    gateway.fake('a').offers.prompts.push({ name: 'new' })
    gateway.fake('a').changed('prompts')
    await expect.poll(async () => JSON.stringify(await host.call('prompts/list'))).toContain('a__new')
    const resumed = await resume(gateway, host, id)
    const first = await resumed.events.until(({ data }) => data !== '')
    await resumed.events.until(({ data }) => data.includes('prompts/list_changed'))
    expect(first.data).toContain('tools/list_changed')
    resumed.close()
  })

  test('B257 is kept with the latest few of its session: a host that never resumes leaves no more', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { deaf: true })
    const ids: string[] = []
    for (let at = 0; at < 20; at++) {
      const stream = await send(gateway.url, { method: 'GET', headers: { ...host.headers(), accept: 'text/event-stream' } })
      ids.push((await stream.events.until(({ id }) => id !== undefined)).id ?? '')
    }
    expect((await resume(gateway, host, ids.at(0) ?? '')).status).toBe(400)
    expect((await resume(gateway, host, ids.at(-2) ?? '')).status).toBe(200)
  })
  test('B202 has all but overtaken progress where there is no room for it', async () => {
    await using gateway = await start({ hostLimits: { maxEvents: 5 } })
    await using host = await connectHttp(gateway)
    const { promise: cut, resolve: isCut } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async (turn) => {
      turn.progress(1)
      await cut
      turn.notify('notifications/message', { level: 'error', data: 'kept' })
      for (const step of [2, 3, 4, 5]) turn.progress(step)
      return { content: [] }
    })
    const reply = await call(gateway, host)
    const { id } = await reply.events.until(({ data }) => data.includes('"progress":1'))
    reply.close()
    await reply.closed
    isCut()
    const resumed = await resume(gateway, host, id)
    const seen = (await messagesOf(resumed)).map(({ params, result }) => params?.['progress'] ?? params?.['data'] ?? result)
    expect(seen).toEqual(['kept', 4, 5, { content: [] }])
  })
})

/** Whether the mark that ends a body came, or the connection just closed. */
const endingOf = (reply: RawReply | undefined): Promise<'ended' | 'broke'> =>
  reply?.body.then(
    () => 'ended' as const,
    () => 'broke' as const,
  ) ?? Promise.reject(new Error('no stream'))

describe('3.22 streams break off when the gateway stops, so that their hosts open them again', () => {
  test('HTTP+SSE', async () => {
    await using gateway = await start()
    const stream = await send(new URL('/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
    await stream.events.until(() => true)
    const stopped = gateway.running.stop()
    expect(await endingOf(stream)).toBe('broke')
    await stopped
  })

  test('the GET stream of a session', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const stopped = gateway.running.stop()
    expect(await endingOf(host.stream)).toBe('broke')
    await stopped
  })

  test('a modern listen has its last message, and ends', async () => {
    await using gateway = await start()
    const stream = await listen(gateway)
    await stream.events.until(({ data }) => data.includes('acknowledged'))
    const stopped = gateway.running.stop()
    expect(await endingOf(stream)).toBe('ended')
    expect((await messagesOf(stream)).at(-1)).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    await stopped
  })

  test('a call that is under way over HTTP+SSE is answered first', async () => {
    await using gateway = await start()
    await using host = await legacySse.connect(gateway)
    const { promise: later, resolve: release } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async () => (await later, { content: [{ type: 'text', text: 'done' }] }))
    const pending = host.begin('tools/call', { name: 'a__x' })
    await gateway.fake('a').until('tools/call')
    const stopped = gateway.running.stop()
    // Nothing new is accepted: from here on only what is under way holds up the end.
    await expect
      .poll(() =>
        fetch(gateway.url, { method: 'OPTIONS' }).then(
          () => true,
          () => false,
        ),
      )
      .toBe(false)
    release()
    expect(await pending.response).toMatchObject({ result: { content: [{ text: 'done' }] } })
    await stopped
  })

  test('all that was written arrives before', async () => {
    await using gateway = await start()
    await using host = await legacySse.connect(gateway)
    const text = 'x'.repeat(4_000_000)
    gateway.fake('a').on('tools/call', () => ({ content: [{ type: 'text', text }] }))
    const pending = host.begin('tools/call', { name: 'a__x' })
    await gateway.fake('a').until('tools/call')
    await Promise.all([
      gateway.running.stop(),
      expect(pending.response).resolves.toMatchObject({ result: { content: [{ text }] } }),
    ])
  })

  test('a session that its host ends ends its stream cleanly', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    await send(gateway.url, { method: 'DELETE', headers: host.headers() })
    expect(await endingOf(host.stream)).toBe('ended')
  })
})

test('a call whose session is too old is answered with the option that ended it', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  gateway.fake('a').on('tools/call', fake.never)
  const reply = call(gateway, host)
  await gateway.fake('a').until('tools/call')
  await limitHosts(gateway, { sessionMaxMs: 1 })
  expect((await messagesOf(await reply))[0]).toMatchObject({
    id: 1,
    error: { code: -32600, message: expect.stringContaining('listen.limits.session_max') as string },
  })
})
