/** What one principal has opened is nobody else's: sessions, streams, states, cursors, tasks; and it ends with its credential (T-05, B236). */
import { describe, expect, test, vi } from 'vitest'
import type { AuthOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import { bearer, staticToken, tokenOf, TWO_TOKENS } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, legacySse, modernHttp } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { request } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'

const [A, B] = [tokenOf('A'), tokenOf('B')]
const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo', 'slow') }, host: { auth: TWO_TOKENS }, ...setup })
const reload = (gateway: TestGateway, auth: AuthOptions | undefined): Promise<void> => {
  const { configuration } = gateway.running
  return gateway.running.apply({ ...configuration, host: { ...configuration.host, auth } }, new Set())
}
const asA = { token: () => A }
const asB = { token: () => B }
const HOUR_MS = 3_600_000
const forAnHour = (): AuthOptions => ({
  ...TWO_TOKENS,
  tokens: [staticToken('A', { expiresMs: Date.now() + HOUR_MS }), staticToken('B')],
})
const passAnHour = (): unknown => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + HOUR_MS })

describe('T-05 the session of A with the token of B', () => {
  test.each(['POST', 'GET', 'DELETE', 'GET to resume', 'POST of an answer', 'POST of a batch'])(
    'by %s is the same 404 as a session that never was, and A goes on',
    async (how) => {
      await using gateway = await start()
      await using host = await connectHttp(gateway, { ...asA, revision: '2025-03-26' })
      const [method = 'POST'] = how.split(' ')
      const bodies: Record<string, string> = {
        POST: request(7, 'tools/list', {}),
        'POST of an answer': JSON.stringify({ jsonrpc: '2.0', id: 'q1', result: {} }),
        'POST of a batch': `[${request(7, 'tools/list', {})}]`,
      }
      const body = method === 'POST' ? bodies[how] : undefined
      const say = async (session: string | undefined, token: string): Promise<unknown> => {
        const reply = await send(gateway.url, {
          method,
          headers: {
            ...bearer(token),
            'mcp-session-id': session,
            accept: 'application/json, text/event-stream',
            'last-event-id': how.endsWith('resume') ? '0-0' : undefined,
          },
          ...(body !== undefined && { body }),
        })
        return [reply.status, await reply.body]
      }
      const unknown = await say('BBBBBBBBBBBBBBBBBBBBBB', B)
      expect(unknown).toEqual([404, expect.any(String)])
      expect(await say(host.session, B)).toEqual(unknown)
      expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }, { name: 'a__slow' }] })
      expect(host.stream?.status).toBe(200)
    },
  )

  test('over HTTP+SSE a message of B to the stream of A is the same 404 as one to a stream that never was', async () => {
    await using gateway = await start()
    const stream = await send(new URL('/sse', gateway.url), {
      method: 'GET',
      headers: { ...bearer(A), accept: 'text/event-stream' },
    })
    const { data } = await stream.events.until(({ event }) => event === 'endpoint')
    const post = async (path: string, token: string): Promise<unknown> => {
      const reply = await send(new URL(path, gateway.url), { headers: bearer(token), body: request(1, 'ping', {}) })
      return [reply.status, await reply.body]
    }
    expect(await post('/messages?sessionId=BBBBBBBBBBBBBBBBBBBBBB', B)).toEqual([404, ''])
    expect(await post(data, B)).toEqual([404, ''])
    expect(await post(data, A)).toEqual([202, ''])
    stream.close()
  })
})

test('T-06 a state and a cursor of A are worth nothing to B', async () => {
  const asks = { resultType: 'input_required', requestState: 's', inputRequests: { x: { method: 'roots/list' } } }
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        kind: 'modern http',
        tools: ['echo', 'slow'],
        on: { 'tools/call': ({ params }) => (params['requestState'] === undefined ? asks : { content: [] }) },
      }),
    },
    gateway: { pageMaxItems: 1 },
    host: { auth: TWO_TOKENS },
  })
  const able = { capabilities: { roots: {} } }
  await using a = await modernHttp.connect(gateway, { ...asA, ...able })
  await using b = await modernHttp.connect(gateway, { ...asB, ...able })
  const { requestState } = await a.call('tools/call', { name: 'a__echo', arguments: {} })
  const retry: JsonMap = { name: 'a__echo', arguments: {}, requestState, inputResponses: { x: { roots: [] } } }
  await expect(b.call('tools/call', retry)).rejects.toMatchObject({ code: -32602 })
  expect(await a.call('tools/call', retry)).toMatchObject({ content: [] })
  const { nextCursor: cursor } = await a.call('tools/list')
  await expect(b.call('tools/list', { cursor })).rejects.toMatchObject({ code: -32602 })
  expect(await a.call('tools/list', { cursor })).toMatchObject({ tools: [{ name: 'a__slow' }] })
})

test('T-06 a task of A is unknown to B', async () => {
  const TASK = { taskId: 'orig-1', status: 'working', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: 60_000, pollIntervalMs: 50 }
  const extensions = { 'io.modelcontextprotocol/tasks': {} }
  const on = { 'tools/call': () => ({ resultType: 'task', ...TASK }), 'tasks/get': () => TASK }
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['work'], capabilities: { tools: {}, extensions }, on }) },
    host: { auth: TWO_TOKENS },
  })
  const able = { capabilities: { extensions } }
  await using a = await modernHttp.connect(gateway, { ...asA, ...able })
  await using b = await modernHttp.connect(gateway, { ...asB, ...able })
  const { taskId } = await a.call('tools/call', { name: 'a__work', arguments: {} })
  await expect(b.call('tasks/get', { taskId })).rejects.toMatchObject({ code: -32602 })
  await expect(b.call('tasks/cancel', { taskId })).rejects.toMatchObject({ code: -32602 })
  expect(await a.call('tasks/get', { taskId })).toMatchObject({ status: 'working' })
})

describe('B236 a credential that ends', () => {
  test('is refused within its session, and its standalone stream is closed', async () => {
    await using gateway = await start({ host: { auth: forAnHour() } })
    await using host = await connectHttp(gateway, asA)
    expect(await host.call('tools/list')).toHaveProperty('tools')
    passAnHour()
    await host.stream?.closed
    const reply = await send(gateway.url, { headers: { ...bearer(A), ...host.headers() }, body: request(9, 'tools/list', {}) })
    expect(reply.status).toBe(401)
  })
  test('ends a stream of changes of a modern host', async () => {
    await using gateway = await start({ host: { auth: forAnHour() } })
    await using host = await modernHttp.connect(gateway, asA)
    const pending = host.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await pending.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    passAnHour()
    await pending.over
  })
  test('ends the stream that an HTTP+SSE session is', async () => {
    await using gateway = await start({ host: { auth: forAnHour() } })
    const stream = await send(new URL('/sse', gateway.url), {
      method: 'GET',
      headers: { ...bearer(A), accept: 'text/event-stream' },
    })
    expect(stream.status).toBe(200)
    passAnHour()
    await stream.closed
  })
  test('a call that is under way goes on to its end', async () => {
    await using gateway = await start({ host: { auth: forAnHour() } })
    await using host = await legacyHttp.connect(gateway, { ...asA, deaf: true })
    const { promise, resolve } = Promise.withResolvers<JsonMap>()
    gateway.fake('a').on('tools/call', () => promise)
    const pending = host.begin('tools/call', { name: 'a__slow', arguments: {} })
    await gateway.fake('a').until('tools/call')
    const stream = await send(new URL('/sse', gateway.url), {
      method: 'GET',
      headers: { ...bearer(A), accept: 'text/event-stream' },
    })
    passAnHour()
    await stream.closed
    resolve({ content: [{ type: 'text', text: 'done' }] })
    expect(await pending.response).toMatchObject({ result: { content: [{ text: 'done' }] } })
  })
})

describe('a reload', () => {
  test('that takes a token away ends what it opened at once, and nothing of another', async () => {
    await using gateway = await start()
    await using a = await connectHttp(gateway, asA)
    await using b = await connectHttp(gateway, asB)
    await using modern = await modernHttp.connect(gateway, asA)
    const listening = modern.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await listening.messages.until(() => true)
    const sse = await send(new URL('/sse', gateway.url), {
      method: 'GET',
      headers: { ...bearer(A), accept: 'text/event-stream' },
    })
    await reload(gateway, { ...TWO_TOKENS, tokens: [staticToken('B')] })
    await Promise.all([a.stream?.closed, listening.over, sse.closed])
    expect(
      (await send(gateway.url, { headers: { ...bearer(A), ...a.headers() }, body: request(9, 'tools/list', {}) })).status,
    ).toBe(401)
    expect(await b.call('tools/list')).toHaveProperty('tools')
    expect(gateway.running.front.sessionCount).toBe(1)
  })
  test('that renews a token ends what the old one opened; the caller stays the same', async () => {
    await using gateway = await start()
    await using a = await connectHttp(gateway, asA)
    await reload(gateway, { ...TWO_TOKENS, tokens: [{ ...staticToken('C'), id: 'A' }, staticToken('B')] })
    await a.stream?.closed
    await using again = await connectHttp(gateway, { token: () => tokenOf('C'), deaf: true })
    expect(await again.call('tools/list')).toHaveProperty('tools')
  })
  test('that asks for credentials ends the sessions of those who brought none, not that of a pipe', async () => {
    await using gateway = await start({ host: {} })
    await using host = await connectHttp(gateway)
    await using sse = await legacySse.connect(gateway)
    await using pipe = await legacyPipe.connect(gateway)
    gateway.fake('a').on('tools/call', fake.never)
    const waiting = sse.begin('tools/call', { name: 'a__slow' }).response
    await gateway.fake('a').until('tools/call')
    await reload(gateway, TWO_TOKENS)
    await host.stream?.closed
    expect((await waiting).error?.message).toBe('the session has ended (its credential is no longer valid)')
    expect(gateway.running.front.sessionCount).toBe(0)
    expect(await pipe.call('tools/list')).toHaveProperty('tools')
  })
  test('that changes something else ends nothing', async () => {
    await using gateway = await start()
    await using a = await connectHttp(gateway, asA)
    const { configuration } = gateway.running
    const auth = structuredClone(TWO_TOKENS)
    await gateway.running.apply({ ...configuration, host: { ...configuration.host, auth, pollAfterMs: 5 } }, new Set())
    expect(await a.call('tools/list')).toHaveProperty('tools')
    expect(gateway.running.front.sessionCount).toBe(1)
  })
})
