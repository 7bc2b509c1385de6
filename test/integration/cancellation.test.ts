/** Six ways in which a host gives up, and what each means for the server (BRIDGING 3.10). */
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeDownstream } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, legacyPipe, legacySse, modernHttp, modernPipe } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { KEY, MODERN, notification, request } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'

describe.each(everyTransport)('a host over $name that gives up', ({ connect, name }) => {
  test.each(everyFakeKind)('B138 B140 a %s server hears of it in the way of its era, nobody is answered', async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['slow'] }) } })
    const a = gateway.fake('a').on('tools/call', fake.never)
    await using host = await connect(gateway)
    const pending = host.begin('tools/call', { name: 'a__slow' })
    const turn = await a.until('tools/call')
    pending.cancel()
    if (kind === 'modern http') {
      await turn.closed
      expect(a.all('notifications/cancelled')).toEqual([])
    } else {
      const cancelled = await a.until('notifications/cancelled')
      expect(cancelled.params['requestId']).toBe(turn.id)
      expect(cancelled.connection).toBe(turn.connection)
    }
    a.off('tools/call')
    turn.answer({ content: [{ type: 'text', text: 'too late' }] })
    expect(await host.call('tools/call', { name: 'a__slow', arguments: { n: 2 } })).toMatchObject({
      content: [{ text: '{"n":2}' }],
    })
    const isQuiet = name === modernHttp.name || name === legacyHttp.name
    if (isQuiet) await expect(pending.response).rejects.toThrow('was not answered')
    expect(JSON.stringify(host.heard.entries)).not.toContain('too late')
  })
})

test.each(everyTransport)(
  'B138 calls over $name that are cancelled at once leave the only slot of their server',
  async ({ connect }) => {
    await using gateway = await startGateway({
      servers: { a: fake.offering('slow') },
      options: { a: { limits: { maxConcurrent: 1 } } },
    })
    const a = gateway.fake('a')
    await using host = await connect(gateway)
    for (let round = 0; round < 20; round++) {
      a.on('tools/call', fake.never)
      for (let call = 0; call < 3; call++) host.begin('tools/call', { name: 'a__slow' }).cancel()
      await host.call('tools/list')
      a.off('tools/call')
      expect(await host.call('tools/call', { name: 'a__slow', arguments: { n: round } })).toMatchObject({
        content: [{ text: JSON.stringify({ n: round }) }],
      })
    }
  },
)

test.each([legacyHttp, modernHttp])(
  'B138 a call over $name that is cancelled while its link opens frees its slot',
  async ({ connect }) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) },
      options: { a: { limits: { maxConcurrent: 1 } } },
    })
    const a = gateway.fake('a').on('initialize', fake.never)
    await using host = await connect(gateway)
    await using other = await connect(gateway, { capabilities: { roots: {} } })
    const opened = a.until('initialize', ({ connection }) => connection !== a.connections[0])
    const pending = host.begin('tools/call', { name: 'a__x' })
    await opened
    pending.cancel()
    a.off('initialize')
    expect(await other.call('tools/call', { name: 'a__x', arguments: { n: 1 } })).toMatchObject({
      content: [{ text: '{"n":1}' }],
    })
  },
)

test.each([legacyHttp, modernHttp])(
  'B138 a call over $name that is cancelled while its server starts again frees its slot',
  async ({ connect }) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) },
      options: { a: { limits: { maxConcurrent: 1, maxQueued: 0 } } },
    })
    const a = gateway.fake('a')
    const { promise: started, resolve: start } = Promise.withResolvers<void>()
    a.on('initialize', async ({ params }) => {
      await started
      return { protocolVersion: params['protocolVersion'], capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } }
    })
    await using host = await connect(gateway)
    const again = a.until('initialize', ({ connection }) => connection !== a.connections[0])
    a.connections[0]?.drop()
    await again
    const pending = host.begin('tools/call', { name: 'a__x' })
    await host.call('tools/list')
    pending.cancel()
    await host.call('tools/list')
    const next = host.call('tools/call', { name: 'a__x', arguments: { n: 1 } })
    await host.call('tools/list')
    start()
    expect(await next).toMatchObject({ content: [{ text: '{"n":1}' }] })
  },
)

test('B138 a cancellation that arrives before its request ends it', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
  gateway.fake('a').on('tools/call', fake.never)
  await using host = await connectHttp(gateway)
  const early = notification('notifications/cancelled', { requestId: 900, reason: 'changed my mind' })
  expect((await send(gateway.url, { headers: host.headers(), body: early })).status).toBe(202)
  const reply = await send(gateway.url, { headers: host.headers(), body: request(900, 'tools/call', { name: 'a__slow' }) })
  await reply.closed
  expect(await reply.body).not.toContain('"id":900')
  gateway.fake('a').off('tools/call')
  expect(await host.call('tools/call', { name: 'a__slow', arguments: { n: 2 } })).toMatchObject({
    content: [{ text: '{"n":2}' }],
  })
})

test('B138 a late cancellation of an ended request does not end a new one of the same id', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('quick') } })
  await using host = await connectHttp(gateway)
  const body = request(901, 'tools/call', { name: 'a__quick', arguments: { n: 1 } })
  const late = notification('notifications/cancelled', { requestId: 901 })
  for (let round = 0; round < 2; round++) {
    const reply = await send(gateway.url, { headers: host.headers(), body })
    expect(await reply.body).toContain('"id":901')
    expect((await send(gateway.url, { headers: host.headers(), body: late })).status).toBe(202)
  }
})

test('B138 a late cancellation of a ping does not end a call of the same id', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('quick') } })
  await using host = await connectHttp(gateway)
  const headers = host.headers()
  expect(await (await send(gateway.url, { headers, body: request(902, 'ping') })).body).toContain('"id":902')
  await send(gateway.url, { headers, body: notification('notifications/cancelled', { requestId: 902 }) })
  const reply = await send(gateway.url, { headers, body: request(902, 'tools/call', { name: 'a__quick', arguments: { n: 1 } }) })
  expect(await reply.body).toContain('"id":902')
})

test('B138 closing the connection of a pending JSON answer cancels, too', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['slow'] }) } })
  const a = gateway.fake('a').on('tools/call', fake.never)
  await using host = await modernHttp.connect(gateway)
  const pending = host.begin('tools/call', { name: 'a__slow' })
  const turn = await a.until('tools/call')
  pending.cancel()
  await turn.closed
  await pending.over
  expect(a.all('tools/call')).toHaveLength(1)
})

test('B139 a legacy host whose connection breaks has not cancelled: the call runs on, its answer is kept', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  const a = gateway.fake('a').on('tools/call', async (turn) => {
    turn.progress(1)
    await later
    return { content: [{ type: 'text', text: 'done' }] }
  })
  await using host = await connectHttp(gateway)
  const body = request(1, 'tools/call', { name: 'a__slow', _meta: { progressToken: 'p' } })
  const reply = await send(gateway.url, { headers: host.headers(), body })
  const seen = await reply.events.until(({ data }) => data !== '')
  reply.close()
  await reply.closed
  await host.call('ping')
  expect(a.all('notifications/cancelled')).toEqual([])
  const headers = { ...host.headers(), accept: 'text/event-stream', 'last-event-id': seen.id }
  const resumed = await send(gateway.url, { method: 'GET', headers })
  release()
  expect((await resumed.events.until(({ data }) => data.includes('done'))).data).toContain('"id":1')
})

test('B139 listen.orphan: a legacy host that does not come back for a streamed answer has its call cancelled', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') }, hostLimits: { orphanMs: 150 } })
  const a = gateway.fake('a').on('tools/call', (turn) => {
    turn.progress(1)
    return new Promise(() => undefined)
  })
  await using host = await connectHttp(gateway)
  const body = request(1, 'tools/call', { name: 'a__slow', _meta: { progressToken: 'p' } })
  const reply = await send(gateway.url, { headers: host.headers(), body })
  await reply.events.until(({ data }) => data !== '')
  reply.close()
  const turn = await a.until('tools/call')
  expect((await a.until('notifications/cancelled')).params['requestId']).toBe(turn.id)
  expect(gateway.running.limits.all.find(({ option }) => option === 'listen.orphan')?.count).toBe(1)
})

test('B139 so it is before anything was streamed: nothing is cancelled', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  const a = gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  await using host = await connectHttp(gateway)
  let abort: () => void = () => undefined
  const body = request(1, 'tools/call', { name: 'a__slow' })
  const reply = send(gateway.url, { headers: host.headers(), body, started: (stop) => (abort = stop) })
  reply.catch(() => undefined)
  await a.until('tools/call')
  abort()
  await expect(reply).rejects.toThrow()
  await host.call('ping')
  release()
  await host.call('tools/call', { name: 'a__slow' })
  expect(a.all('notifications/cancelled')).toEqual([])
})

/** The server answers `initialize` once the returned function is called. */
const heldInitialize = (server: FakeDownstream): (() => void) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.on('initialize', async ({ params }) => {
    await promise
    return { protocolVersion: params['protocolVersion'], capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } }
  })
  return resolve
}

test.each([
  { name: legacyPipe.name, connect: legacyPipe.connect, options: { server: 'a' } },
  { name: legacySse.name, connect: legacySse.connect, options: { path: '/servers/a/sse' } },
])(
  'B141 over $name initialize is answered although its host cancels it while it waits for its server',
  async ({ connect, options }) => {
    await using gateway = await startGateway({ servers: { a: fake.offering('x') }, early: true })
    const a = gateway.fake('a')
    const resolve = heldInitialize(a)
    let isOpen = false
    const connecting = connect(gateway, { ...options, cancelsOpening: true }).finally(() => (isOpen = true))
    await a.until('initialize')
    // What this host sends comes after the cancellation.
    await using other = await connect(gateway)
    expect(await other.call('ping')).toEqual({})
    expect(isOpen).toBe(false)
    resolve()
    await using host = await connecting
    expect(host.welcome).toMatchObject({ serverInfo: { name: 'a' } })
    expect(a.all('notifications/cancelled')).toEqual([])
  },
)

test('B141 a cancellation of an initialize that waits for its server reaches no server, and it is answered', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') }, early: true })
  const a = gateway.fake('a')
  const resolve = heldInitialize(a)
  const bridge = new URL('/servers/a/mcp', gateway.url)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
  const opening = send(bridge, { body: request(1, 'initialize', params) })
  const cancelled = await send(bridge, {
    body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }),
  })
  await cancelled.body
  resolve()
  expect(JSON.parse(await (await opening).body)).toHaveProperty('result.protocolVersion', '2025-11-25')
  expect(a.all('notifications/cancelled')).toEqual([])
})

test.each(everyTransport)('B143 over $name unknown, finished and malformed cancellations are ignored', async ({ connect }) => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
  await using host = await connect(gateway)
  const { id } = host.begin('tools/call', { name: 'a__x' })
  await host.call('tools/call', { name: 'a__x' })
  for (const params of [{ requestId: id }, { requestId: 'never' }, { requestId: null }, { requestId: { a: 1 } }, {}])
    host.notify('notifications/cancelled', params)
  expect(await host.call('tools/list')).toHaveProperty('tools')
  expect(gateway.fake('a').all('notifications/cancelled')).toEqual([])
})

test.each([legacyPipe, legacySse])(
  'B001 over $name the id "1" is not 1: cancelling one leaves the other',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
    const { promise: later, resolve: release } = Promise.withResolvers<void>()
    const a = gateway
      .fake('a')
      .on(
        'tools/call',
        async ({ params }) => (await later, { content: [{ type: 'text', text: JSON.stringify(params['arguments']) }] }),
      )
    await using host = await connect(gateway)
    const text = host.begin('tools/call', { name: 'a__slow', arguments: { n: 'text' } }, { id: '50' })
    host.begin('tools/call', { name: 'a__slow', arguments: { n: 'number' } }, { id: 50 })
    const number = await a.until('tools/call', ({ raw }) => raw.includes('number'))
    host.notify('notifications/cancelled', { requestId: 50 })
    expect((await a.until('notifications/cancelled')).params['requestId']).toBe(number.id)
    release()
    expect((await text.response).result).toMatchObject({ content: [{ text: '{"n":"text"}' }] })
  },
)

test('only the owner cancels: the same id of another session goes on', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  const a = gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  await using one = await legacyHttp.connect(gateway)
  await using two = await legacyHttp.connect(gateway)
  const mine = one.begin('tools/call', { name: 'a__slow' }, { id: 'same' })
  two.begin('tools/call', { name: 'a__slow' }, { id: 'same' })
  await a.journal.when(() => (a.all('tools/call').length === 2 ? true : undefined))
  two.notify('notifications/cancelled', { requestId: 'same' })
  await a.until('notifications/cancelled')
  release()
  expect((await mine.response).result).toEqual({ content: [] })
})

test.each([legacyPipe, modernPipe])('over $name a host that leaves has given up everything', async ({ connect }) => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['slow'] }) } })
  const a = gateway.fake('a').on('tools/call', fake.never)
  const host = await connect(gateway)
  host.begin('tools/call', { name: 'a__slow' })
  const turn = await a.until('tools/call')
  await host[Symbol.asyncDispose]()
  expect((await a.until('notifications/cancelled')).params['requestId']).toBe(turn.id)
})

test('over HTTP+SSE closing the stream ends the session and cancels its calls', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('slow') } })
  const a = gateway.fake('a').on('tools/call', fake.never)
  const host = await legacySse.connect(gateway)
  host.begin('tools/call', { name: 'a__slow' })
  const turn = await a.until('tools/call')
  await host[Symbol.asyncDispose]()
  expect((await a.until('notifications/cancelled')).params['requestId']).toBe(turn.id)
})

test.each(everyTransport.filter(({ name }) => name !== modernHttp.name))(
  'B269 B273 over $name a cancellation means the request whose id it writes in another spelling',
  async ({ connect, era }) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['slow'] }) } })
    const a = gateway.fake('a').on('tools/call', fake.never)
    await using host = await connect(gateway)
    const meta = era === 'modern' ? `,"_meta":{"${KEY.version}":"${MODERN}","${KEY.capabilities}":{}}` : ''
    host.sendRaw(
      String.raw`{"jsonrpc":"2.0","id":"caf\u00e9\/1","method":"tools/call","params":{"name":"a__slow"${meta}}}`,
      'café/1',
    )
    const turn = await a.until('tools/call')
    host.notify('notifications/cancelled', { requestId: 'café/1', reason: 'enough' })
    expect((await a.until('notifications/cancelled')).params).toMatchObject({ requestId: turn.id, reason: 'enough' })
  },
)
