/** HTTP+SSE for hosts that know nothing newer ([2024-11-05 basic/transports]; BRIDGING 5.1). */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacySse } from '../support/fake-host.ts'
import { request } from '../support/fakes/messages.ts'
import { messageOf, send } from '../support/fakes/raw-http.ts'
import type { RawReply } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const start = (more: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('x') }, ...more })
const open = async (gateway: TestGateway): Promise<{ stream: RawReply; messages: URL }> => {
  const stream = await send(new URL('/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
  const { data } = await stream.events.until(() => true)
  return { stream, messages: new URL(data, gateway.url) }
}
const INITIALIZE = request(1, 'initialize', { protocolVersion: '2024-11-05', capabilities: {} })

test('B209 the first event is endpoint, a relative URI of its own; answers come as message events', async () => {
  await using gateway = await start()
  const { stream, messages } = await open(gateway)
  expect(stream.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
  expect(stream.events.entries[0]).toMatchObject({
    event: 'endpoint',
    data: expect.stringMatching(/^\/messages\?sessionId=[\w-]{22,}$/) as string,
  })
  const reply = await send(messages, { body: INITIALIZE })
  expect([reply.status, await reply.body]).toEqual([202, ''])
  const answer = await stream.events.until(({ event }) => event === 'message')
  expect(JSON.parse(answer.data)).toMatchObject({ id: 1, result: { protocolVersion: '2024-11-05' } })
  stream.close()
})

test('B277 a server alone has HTTP+SSE as well, also one that is called sse', async () => {
  await using gateway = await startGateway({ servers: { sse: fake.offering('x'), b: fake.offering('y') } })
  await using host = await legacySse.connect(gateway, { path: '/servers/sse/sse' })
  expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'x' }] })
  expect(await host.call('tools/call', { name: 'x' })).toHaveProperty('content')
  const unknown = await send(new URL('/servers/c/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
  expect(unknown.status).toBe(404)
})

test('a host that goes on with a session of another process may initialize it, once', async () => {
  await using gateway = await start()
  const { stream, messages } = await open(gateway)
  const answered = async (id: number): Promise<object> => {
    const isAnswer = ({ data }: { readonly data: string }): boolean =>
      data.startsWith('{') && (JSON.parse(data) as { id?: unknown }).id === id
    return JSON.parse((await stream.events.until(isAnswer)).data) as object
  }
  await send(messages, { body: request(1, 'tools/list') })
  expect(await answered(1)).toMatchObject({ result: { tools: [{ name: 'a__x' }] } })
  for (const id of [2, 3]) {
    await send(messages, { body: request(id, 'initialize', { protocolVersion: '2024-11-05', capabilities: {} }) })
    expect(await answered(id)).toHaveProperty(id === 2 ? 'result' : 'error')
  }
  stream.close()
})

test('B209 a POST is taken for its own session only', async () => {
  await using gateway = await start()
  const { stream, messages } = await open(gateway)
  const foreign = new URL('/messages?sessionId=AAAAAAAAAAAAAAAAAAAAAA', gateway.url)
  expect((await send(foreign, { body: INITIALIZE })).status).toBe(404)
  expect((await send(new URL('/messages', gateway.url), { body: INITIALIZE })).status).toBe(404)
  stream.close()
  await stream.closed
  await using other = await legacySse.connect(gateway)
  await other.call('ping')
  expect((await send(messages, { body: INITIALIZE })).status).toBe(404)
})

test('malformed 400, too large 413, wrong methods 405', async () => {
  await using gateway = await start({ hostLimits: { maxBodyBytes: 1_000 } })
  const { stream, messages } = await open(gateway)
  const malformed = await send(messages, { body: '{' })
  expect([malformed.status, (await messageOf(malformed)).error?.code]).toEqual([400, -32700])
  expect((await send(messages, { body: request(1, 'ping', { x: 'x'.repeat(2_000) }) })).status).toBe(413)
  expect((await send(messages, { method: 'GET' })).status).toBe(405)
  expect((await send(new URL('/sse', gateway.url), { body: INITIALIZE })).status).toBe(405)
  stream.close()
})

test('a foreign Origin is refused on both paths', async () => {
  await using gateway = await start()
  const { stream, messages } = await open(gateway)
  const headers = { origin: 'http://evil.example' }
  expect((await send(new URL('/sse', gateway.url), { method: 'GET', headers })).status).toBe(403)
  expect((await send(messages, { body: INITIALIZE, headers })).status).toBe(403)
  stream.close()
})

test('7.4 a second request under an id in flight is refused, the first goes on', async () => {
  await using gateway = await start()
  await using host = await legacySse.connect(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const first = host.begin('tools/call', { name: 'a__x' }, { id: 'twin' })
  await gateway.fake('a').until('tools/call')
  await expect(host.call('tools/call', { name: 'a__x' }, { id: 'twin' })).rejects.toMatchObject({ code: -32600 })
  release()
  await host.heard.until(({ id }) => id === 'twin')
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  expect(first.id).toBe('twin')
})

test('requests that were not answered count as in flight, also beside a stream whose host has not begun', async () => {
  const release = Promise.withResolvers<undefined>()
  await using gateway = await start()
  gateway.fake('a').on('tools/call', async () => (await release.promise, { content: [] }))
  const { stream } = await open(gateway)
  const { front } = gateway.running
  expect(front.inFlight).toBe(0)
  await using host = await legacySse.connect(gateway)
  const called = host.begin('tools/call', { name: 'a__x' })
  await gateway.fake('a').until('tools/call')
  expect(front.inFlight).toBe(1)
  release.resolve(undefined)
  await called.response
  expect(front.inFlight).toBe(0)
  stream.close()
})

test.each([
  ['a proxy that takes the prefix away', '/sse', '/messages'],
  ['a proxy that leaves it', '/gateway/sse', '/gateway/messages'],
])('behind a path of listen.http.public_url the endpoint event names it, and %s is served', async (_name, path, posted) => {
  await using gateway = await start({ host: { publicUrl: 'https://mcp.example.com/gateway' } })
  const stream = await send(new URL(path, gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
  const { data } = await stream.events.until(({ event }) => event === 'endpoint')
  expect(data).toMatch(/^\/gateway\/messages\?sessionId=/)
  const messages = new URL(data.replace('/gateway/messages', posted), gateway.url)
  expect((await send(messages, { body: INITIALIZE })).status).toBe(202)
  const answer = await stream.events.until(({ event }) => event === 'message')
  expect(JSON.parse(answer.data)).toMatchObject({ result: { serverInfo: { name: 'trunkline' } } })
  stream.close()
})

test('switched off there is no such path', async () => {
  await using gateway = await start({ host: { sse: false } })
  expect((await send(new URL('/sse', gateway.url), { method: 'GET' })).status).toBe(404)
})

test('B208 quiet streams carry comments', async () => {
  await using gateway = await start({ hostLimits: { sseKeepAliveMs: 50 } })
  const { stream } = await open(gateway)
  await stream.comments.until(() => true)
  expect(stream.events.entries).toHaveLength(1)
  stream.close()
})
