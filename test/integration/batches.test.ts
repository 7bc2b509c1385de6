/** JSON-RPC batches of 2025-03-26 hosts ([2025-03-26 basic/index], Batching; BRIDGING 5.1 row 8). */
import { describe, expect, test } from 'vitest'
import { legacyHttp, legacyPipe, legacySse } from '../support/fake-host.ts'
import { fake } from '../support/fake-downstream.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import type { SessionHost } from '../support/fakes/http-hosts.ts'
import { KEY, notification, request } from '../support/fakes/messages.ts'
import type { Message } from '../support/fakes/messages.ts'
import { connectPipe } from '../support/fakes/pipe-host.ts'
import { messageOf, send } from '../support/fakes/raw-http.ts'
import type { RawReply } from '../support/fakes/raw-http.ts'
import { limitHosts, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const start = (): Promise<TestGateway> => startGateway({ servers: { a: fake.offering('echo') } })
const call = (id: number | string): string => request(id, 'tools/call', { name: 'a__echo', arguments: { id } })
const batch = (...messages: string[]): string => `[${messages.join(',')}]`

/** The answers of a batch, by id, from one JSON array or from a stream. */
const answersOf = async (reply: RawReply): Promise<Map<unknown, Message>> => {
  const text = await reply.body
  const messages = (
    reply.headers['content-type'] === 'text/event-stream'
      ? reply.events.entries.map(({ data }) => JSON.parse(data))
      : [JSON.parse(text)]
  ).flat() as Message[]
  return new Map(messages.filter(({ method }) => method === undefined).map((message) => [message.id, message]))
}

describe('over legacy Streamable HTTP', () => {
  const post = (gateway: TestGateway, host: SessionHost, body: string): Promise<RawReply> =>
    send(gateway.url, { headers: host.headers(), body })

  test('B206 each request of a batch is answered once', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const body = batch(call(1), request('two', 'no/such'), notification('notifications/unheard_of'), request(3, 'ping'))
    const reply = await post(gateway, host, body)
    expect(reply.status).toBe(200)
    const answers = await answersOf(reply)
    expect(new Set(answers.keys())).toEqual(new Set([1, 3, 'two']))
    expect(answers.get(1)?.result).toMatchObject({ content: [{ text: '{"id":1}' }] })
    expect(answers.get('two')?.error?.code).toBe(-32601)
    expect(answers.get(3)?.result).toEqual({})
  })
  test('B206 a request of the modern era inside a batch is refused alone', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const meta = { [KEY.version]: '2026-07-28', [KEY.capabilities]: {} }
    const modern = request(2, 'tools/call', { name: 'a__echo', _meta: meta })
    const answers = await answersOf(await post(gateway, host, batch(call(1), modern)))
    expect(answers.get(1)?.result).toMatchObject({ content: [{ text: '{"id":1}' }] })
    expect(answers.get(2)?.error).toMatchObject({ code: -32600, message: 'a request of 2026-07-28 must not be part of a batch' })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })
  test('B206 answers that are slow or speak before they answer come on one stream', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const { promise, resolve } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async (turn) => {
      if ((turn.params['arguments'] as { id: number }).id === 1) {
        turn.progress(1)
        await promise
      }
      return { content: [] }
    })
    const slow = request(1, 'tools/call', { name: 'a__echo', arguments: { id: 1 }, _meta: { progressToken: 'p' } })
    const reply = await post(gateway, host, batch(slow, call(2)))
    expect(reply.headers['content-type']).toBe('text/event-stream')
    await reply.events.until(({ data }) => data.includes('"p"'))
    await reply.events.until(({ data }) => data.includes('"id":2'))
    resolve()
    expect(new Set((await answersOf(reply)).keys())).toEqual(new Set([1, 2]))
  })
  test('B139 listen.orphan: the calls of a batch whose host does not come back are cancelled', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('echo') }, hostLimits: { orphanMs: 150 } })
    const a = gateway.fake('a').on('tools/call', (turn) => {
      turn.progress(1)
      return fake.never()
    })
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const slow = (id: number): string => request(id, 'tools/call', { name: 'a__echo', _meta: { progressToken: id } })
    const reply = await post(gateway, host, batch(slow(1), slow(2)))
    for (const id of [1, 2]) await reply.events.until(({ data }) => data.includes(`"progressToken":${id}`))
    reply.close()
    for (const { id } of a.all('tools/call')) await a.until('notifications/cancelled', ({ params }) => params['requestId'] === id)
    expect(gateway.running.limits.all.find(({ option }) => option === 'listen.orphan')?.count).toBe(1)
  })
  test('B198 a batch of an ended session is answered 404 like any other request, so that its host begins again', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const version = { ...host.headers(), 'mcp-protocol-version': '2020-01-01' }
    expect((await send(gateway.url, { headers: version, body: batch(call(1)) })).status).toBe(400)
    await host.request('DELETE')
    const [one, several] = [await post(gateway, host, call(1)), await post(gateway, host, batch(call(1), call(2)))]
    expect([one.status, several.status]).toEqual([404, 404])
    expect((await messageOf(several)).error).toEqual((await messageOf(one)).error)
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })
  test('B206 a batch of notifications and responses is answered 202 without a body', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const reply = await post(gateway, host, batch(notification('notifications/x'), '{"jsonrpc":"2.0","id":9,"result":{}}'))
    expect([reply.status, await reply.body]).toEqual([202, ''])
  })
  test('B206 an empty batch is answered 400 and -32600', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const reply = await post(gateway, host, '[]')
    expect([reply.status, (await messageOf(reply)).error?.code]).toEqual([400, -32600])
  })
  test('B206 what is no message inside a batch is answered -32600, the others are served', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const reply = await post(gateway, host, batch('5', '{"jsonrpc":"1.0","id":8,"method":"ping"}', call(1)))
    const answers = await answersOf(reply)
    expect(answers.get(8)?.error?.code).toBe(-32600)
    expect(answers.get(1)?.result).toBeDefined()
  })
  test('B207 initialize inside a batch is answered 400 and -32600, with a session and without', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const opening = request(1, 'initialize', { protocolVersion: '2025-03-26', capabilities: {} })
    for (const headers of [{}, host.headers()]) {
      const reply = await send(gateway.url, { headers, body: batch(opening, call(2)) })
      expect([reply.status, (await messageOf(reply)).error?.code]).toEqual([400, -32600])
    }
    expect(gateway.fake('a').received).toEqual([])
  })
  test('B206 a batch over the limit is answered 400 and reaches no server', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('echo') }, hostLimits: { maxBatch: 3 } })
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const reply = await post(gateway, host, batch(call(1), call(2), call(3), call(4)))
    expect([reply.status, (await messageOf(reply)).error?.code]).toEqual([400, -32600])
    expect(gateway.fake('a').received).toEqual([])
    const largest = await post(gateway, host, batch(call(1), call(2), call(3)))
    expect(new Set((await answersOf(largest)).keys())).toEqual(new Set([1, 2, 3]))
  })
  test('B206 B266 two requests of a batch with one id are both answered', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const answers = JSON.parse(await (await post(gateway, host, batch(call(1), request(1, 'ping')))).body) as Message[]
    expect(answers.map(({ id, error }) => [id, error])).toEqual([
      [1, undefined],
      [1, undefined],
    ])
  })
})

describe.each([legacyHttp, legacyPipe, legacySse])('over $name', ({ connect }) => {
  test.each(['2024-11-05', '2025-06-18', '2025-11-25'])('B206 a batch of a %s host is refused', async (revision) => {
    await using gateway = await start()
    await using host = await connect(gateway, { revision })
    if (connect === legacyHttp.connect) {
      const reply = await send(gateway.url, { headers: (host as SessionHost).headers(), body: batch(call(1)) })
      expect((await messageOf(reply)).error?.code).toBe(-32600)
    } else if (connect === legacyPipe.connect) {
      host.sendRaw(batch(call(1)), 1)
      expect((await host.heard.until(({ error }) => error !== undefined)).error?.code).toBe(-32600)
    } else await host.call('ping')
    expect(gateway.fake('a').received).toEqual([])
  })
})

test('B206 over stdio a 2025-03-26 host may send a batch on one line', async () => {
  await using gateway = await start()
  await using host = await connectPipe('legacy', gateway, { revision: '2025-03-26' })
  host.write(batch(call(11), request(12, 'ping'), notification('notifications/x')))
  const answers = await host.lines.when(() => {
    const found = host.lines.entries
      .flatMap((line) => JSON.parse(line) as Message | Message[])
      .filter(({ id }) => id === 11 || id === 12)
    return found.length === 2 ? found : undefined
  })
  expect(answers.find(({ id }) => id === 11)?.result).toMatchObject({ content: [{ text: '{"id":11}' }] })
})

test.each([legacyPipe, legacySse])('7.4 over $name a batch cannot use an id that is in flight', async ({ connect }) => {
  await using gateway = await start()
  await using host = await connect(gateway, { revision: '2025-03-26' })
  const a = gateway.fake('a').on('tools/call', fake.never)
  host.begin('tools/call', { name: 'a__echo' }, { id: 11 })
  await a.until('tools/call')
  host.sendRaw(batch(call(11), request(12, 'ping')), 'batch')
  expect(await host.heard.until((heard) => Array.isArray(heard))).toEqual([
    { jsonrpc: '2.0', id: 11, error: { code: -32600, message: 'a request with id 11 is in progress' } },
    { jsonrpc: '2.0', id: 12, result: {} },
  ])
  expect(a.all('tools/call')).toHaveLength(1)
})

test('B206 every request of a batch is answered when its session ends', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
  await using host = await connectHttp(gateway, { revision: '2025-03-26' })
  const a = gateway.fake('a').on('tools/call', fake.never)
  const calls = [1, 2, 3].map((id) => request(id, 'tools/call', { name: 'a__x' }))
  const reply = send(gateway.url, { headers: host.headers(), body: `[${calls.join(',')}]` })
  await a.journal.when(() => (a.all('tools/call').length === 3 ? true : undefined))
  await limitHosts(gateway, { sessionMaxMs: 1 })
  const answers = await answersOf(await reply)
  expect([...answers.values()].map(({ id, error }) => [id, error?.code])).toEqual([1, 2, 3].map((id) => [id, -32600]))
})
