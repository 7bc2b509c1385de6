/** Sessions of legacy hosts over Streamable HTTP: ids, streams, resumption (BRIDGING 5.1). */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import type { SessionHost } from '../support/fakes/http-hosts.ts'
import { LEGACY, request } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { messageOf, messagesOf, send } from '../support/fakes/raw-http.ts'
import type { RawReply } from '../support/fakes/raw-http.ts'
import { limitHosts, startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo', 'slow') }, ...setup })
const call = (gateway: TestGateway, host: SessionHost, id: number | string, params: JsonMap = {}): Promise<RawReply> =>
  send(gateway.url, { headers: host.headers(), body: request(id, 'tools/call', { name: 'a__slow', ...params }) })
const TOKEN = { _meta: { progressToken: 'p' } }

test('B197 session ids are visible ASCII, at least 128 bits, and never the same', async () => {
  await using gateway = await start()
  const hosts = await Promise.all(Array.from({ length: 20 }, () => connectHttp(gateway, { deaf: true })))
  const ids = hosts.map(({ session }) => session ?? '')
  for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{22,}$/)
  expect(new Set(ids).size).toBe(20)
})

test('B199 DELETE ends a session; afterwards everything is 404', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  expect((await send(gateway.url, { method: 'DELETE', headers: host.headers() })).status).toBe(200)
  expect((await call(gateway, host, 1)).status).toBe(404)
  const accept = 'text/event-stream'
  expect((await send(gateway.url, { method: 'GET', headers: { ...host.headers(), accept } })).status).toBe(404)
  expect((await send(gateway.url, { method: 'DELETE', headers: host.headers() })).status).toBe(404)
})

test('B199 DELETE cancels the calls of the session and closes its link', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  gateway.fake('a').on('tools/call', fake.never)
  const reply = call(gateway, host, 1)
  const { connection } = await gateway.fake('a').until('tools/call')
  await send(gateway.url, { method: 'DELETE', headers: host.headers() })
  await gateway.fake('a').until('notifications/cancelled')
  await connection.closed
  expect(await messagesOf(await reply)).toEqual([])
})

test('B199 DELETE ends the standalone stream', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  await send(gateway.url, { method: 'DELETE', headers: host.headers() })
  await host.stream?.closed
  expect(host.stream?.status).toBe(200)
})

test('B200 GET of a live session is answered with a stream that is not buffered or cached', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  expect(host.stream?.status).toBe(200)
  expect(host.stream?.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
})

test('the newest standalone stream wins: the old one is closed, each message goes to one stream only (B130)', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  const first = host.stream
  const second = await host.listen()
  await first?.closed
  gateway.fake('a').offers.tools.push({ name: 'new', inputSchema: { type: 'object' } })
  gateway.fake('a').changed('tools')
  await second.events.until(({ data }) => data.includes('list_changed'))
  expect(first?.events.entries.filter(({ data }) => data.includes('list_changed'))).toEqual([])
})

test('B130 a question outside of calls is taken back on the newest standalone stream', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway, { capabilities: { roots: {} } })
  await host.call('tools/call', { name: 'a__slow' })
  const { connection } = gateway.fake('a').all('tools/call')[0]!
  const { id } = connection.expectAnswer()
  connection.say(request(id, 'roots/list'))
  const asked = await host.heard.until(({ method }) => method === 'roots/list')
  const first = host.stream
  const second = await host.listen()
  await first?.closed
  connection.notify('notifications/cancelled', { requestId: id })
  const told = await second.events.until(({ data }) => data.includes('notifications/cancelled'))
  expect(JSON.parse(told.data)).toMatchObject({ params: { requestId: asked.id } })
})

test('B130 what a request causes goes on its own stream and not on the standalone one', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  gateway.fake('a').on('tools/call', (turn) => {
    turn.progress(1)
    return { content: [] }
  })
  const pending = host.begin('tools/call', { name: 'a__slow', ...TOKEN })
  await pending.response
  expect(pending.messages.entries.map(({ method }) => method)).toEqual(['notifications/progress'])
  expect(host.heard.entries).toEqual([])
})

test('B210 requests of one session run side by side on streams of their own', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async (turn) => {
    turn.progress(1)
    if (turn.params['name'] === 'slow') await later
    return { content: [{ type: 'text', text: String(turn.params['name']) }] }
  })
  const slow = host.begin('tools/call', { name: 'a__slow', _meta: { progressToken: 's' } })
  const quick = host.begin('tools/call', { name: 'a__echo', _meta: { progressToken: 'q' } })
  expect((await quick.response).result).toMatchObject({ content: [{ text: 'echo' }] })
  await slow.messages.until(() => true)
  release()
  expect((await slow.response).result).toMatchObject({ content: [{ text: 'slow' }] })
  for (const [pending, token] of [
    [slow, 's'],
    [quick, 'q'],
  ] as const)
    expect(pending.messages.entries.map(({ params }) => params?.['progressToken'])).toEqual([token])
})

test('B266 two requests with one id in flight are answered each on its own POST, uncrossed', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  const turns: (() => void)[] = []
  gateway.fake('a').on('tools/call', async ({ params }) => {
    await new Promise<void>((resolve) => turns.push(resolve))
    return { content: [{ type: 'text', text: JSON.stringify(params['arguments']) }] }
  })
  const first = call(gateway, host, 1, { arguments: { n: 'first' } })
  await gateway.fake('a').journal.when(() => (turns.length === 1 ? true : undefined))
  const second = call(gateway, host, 1, { arguments: { n: 'second' } })
  await gateway.fake('a').journal.when(() => (turns.length === 2 ? true : undefined))
  turns[1]!()
  expect((await messagesOf(await second))[0]).toMatchObject({ id: 1, result: { content: [{ text: '{"n":"second"}' }] } })
  turns[0]!()
  expect((await messagesOf(await first))[0]).toMatchObject({ id: 1, result: { content: [{ text: '{"n":"first"}' }] } })
})

test('7.4 a cancellation of an id that is in flight twice ends the newest', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const number = ({ message }: { message: { params?: JsonMap } }): unknown =>
    (message.params?.['arguments'] as JsonMap | undefined)?.['n']
  const first = call(gateway, host, 1, { arguments: { n: 1 } })
  await gateway.fake('a').until('tools/call', (turn) => number(turn) === 1)
  const second = call(gateway, host, 1, { arguments: { n: 2 } })
  const newest = await gateway.fake('a').until('tools/call', (turn) => number(turn) === 2)
  host.notify('notifications/cancelled', { requestId: 1 })
  const cancelled = await gateway.fake('a').until('notifications/cancelled')
  expect(cancelled.params['requestId']).toBe(newest.id)
  expect(await messagesOf(await second)).toEqual([])
  release()
  expect((await messagesOf(await first))[0]!.result).toEqual({ content: [] })
})

test('B202 B203 a broken request stream is resumed: what was missed on that very stream, then the answer', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  const { promise: more, resolve: goOn } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async (turn) => {
    turn.progress(1)
    await more
    turn.progress(2)
    await later
    return { content: [] }
  })
  const reply = await call(gateway, host, 1, TOKEN)
  const seen = await reply.events.until(({ data }) => data.includes('"progress":1'))
  reply.close()
  await reply.closed
  const other = await call(gateway, host, 2, { _meta: { progressToken: 'other' } })
  const foreign = await other.events.until(({ data }) => data !== '')
  expect(foreign.id).not.toBe(seen.id)
  goOn()
  const resumed = await send(gateway.url, {
    method: 'GET',
    headers: { ...host.headers(), accept: 'text/event-stream', 'last-event-id': seen.id },
  })
  await resumed.events.until(({ data }) => data.includes('"progress":2'))
  release()
  await resumed.body
  expect(resumed.events.entries.map(({ data }) => data)).not.toContainEqual(expect.stringContaining('"other"'))
  expect(resumed.events.entries.filter(({ data }) => data.includes('"id":1'))).toHaveLength(1)
  const ids = [...reply.events.entries, ...resumed.events.entries, ...other.events.entries].map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('B202 a finished stream is replayed, too, and ends again', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway)
  gateway.fake('a').on('tools/call', (turn) => (turn.progress(1), { content: [] }))
  const reply = await call(gateway, host, 1, TOKEN)
  await reply.body
  const first = reply.events.entries[0]
  const resumed = await send(gateway.url, {
    method: 'GET',
    headers: { ...host.headers(), accept: 'text/event-stream', 'last-event-id': first!.id },
  })
  await resumed.body
  expect(resumed.events.entries.map(({ id }) => id)).toEqual(reply.events.entries.slice(1).map(({ id }) => id))
})

test.each(['nonsense', 'zz-1', '1-999999'])('5.1 a Last-Event-ID of %s is answered 400, never 404', async (lastEventId) => {
  await using gateway = await start()
  await using host = await connectHttp(gateway, { deaf: true })
  const headers = { ...host.headers(), accept: 'text/event-stream', 'last-event-id': lastEventId }
  expect((await send(gateway.url, { method: 'GET', headers })).status).toBe(400)
})

test('B139 B202 the standalone stream resumes with what it missed', async () => {
  await using gateway = await start()
  await using host = await connectHttp(gateway, { revision: '2025-11-25' })
  const primed = await host.stream?.events.until(() => true)
  host.stream?.close()
  await host.stream?.closed
  gateway.fake('a').offers.tools.push({ name: 'new', inputSchema: { type: 'object' } })
  gateway.fake('a').changed('tools')
  await gateway.fake('a').until('tools/list')
  const resumed = await host.listen(primed?.id)
  const isMissed = ({ data }: { readonly data: string }): boolean => data.includes('notifications/tools/list_changed')
  await resumed.events.until(isMissed)
  expect(resumed.status).toBe(200)
  // An empty event before it has the id that the host sent. After one with a later id, a host whose stream breaks would not get it.
  const before = resumed.events.entries.slice(0, resumed.events.entries.findIndex(isMissed))
  expect(before.filter(({ id, data }) => data !== '' || id !== primed?.id)).toEqual([])
})

test.each(LEGACY.filter((revision) => revision !== '2024-11-05'))(
  'B204 streams of a %s session begin with an empty event only from 2025-11-25 on',
  async (revision) => {
    await using gateway = await start()
    await using host = await connectHttp(gateway, { revision })
    gateway.fake('a').on('tools/call', (turn) => (turn.progress(1), { content: [] }))
    const reply = await call(gateway, host, 1, TOKEN)
    await reply.body
    const [first] = reply.events.entries
    if (revision === '2025-11-25') {
      expect(first).toMatchObject({ data: '', id: expect.any(String) as string })
    } else expect(first!.data).not.toBe('')
    gateway.fake('a').offers.tools.push({ name: 'new', inputSchema: { type: 'object' } })
    gateway.fake('a').changed('tools')
    const standalone = host.stream?.events
    await standalone?.until(({ data }) => data.includes('list_changed'))
    expect(standalone?.entries[0]?.data === '').toBe(revision === '2025-11-25')
  },
)

test('B205 a stream that is closed early said when to come back, and has the rest for whoever does', async () => {
  await using gateway = await start({ host: { streamAfterMs: 0, pollAfterMs: 0 } })
  await using host = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const reply = await call(gateway, host, 1)
  expect(await reply.body).toBe('')
  expect(reply.retryMs).toBeGreaterThan(0)
  const { id } = reply.events.entries[0]!
  const resumed = await send(gateway.url, {
    method: 'GET',
    headers: { ...host.headers(), accept: 'text/event-stream', 'last-event-id': id },
  })
  release()
  expect(await messagesOf(resumed)).toMatchObject([{ id: 1, result: { content: [] } }])
})

test('B205 the streams of older sessions, which know no such thing, are not closed early', async () => {
  await using gateway = await start({ host: { streamAfterMs: 0, pollAfterMs: 0 } })
  await using older = await connectHttp(gateway, { revision: '2025-06-18' })
  await using polled = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const held = await call(gateway, older, 1)
  // Opened later, and closed by the same sweep.
  await (
    await call(gateway, polled, 2)
  ).body
  release()
  expect(await messagesOf(held)).toMatchObject([{ id: 1, result: { content: [] } }])
})

test('B208 quiet streams carry comments', async () => {
  await using gateway = await start({ hostLimits: { sseKeepAliveMs: 50 } })
  await using host = await connectHttp(gateway)
  await host.stream?.comments.until(() => true)
  expect(host.stream?.events.entries.every(({ data }) => data === '')).toBe(true)
})

test('a quick answer is one JSON body, a slow one a stream', async () => {
  await using patient = await start({ host: { streamAfterMs: 600_000 } })
  await using quick = await connectHttp(patient)
  expect((await call(patient, quick, 1)).headers['content-type']).toBe('application/json')
  await using gateway = await start({ host: { streamAfterMs: 50 } })
  await using host = await connectHttp(gateway)
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const slow = await call(gateway, host, 2)
  expect(slow.headers['content-type']).toBe('text/event-stream')
  release()
  expect((await messagesOf(slow))[0]).toMatchObject({ id: 2, result: { content: [] } })
})

test('an idle session ends; one with an open stream or call does not', async () => {
  await using gateway = await start()
  await using streaming = await connectHttp(gateway)
  await using calling = await connectHttp(gateway, { deaf: true })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
  const reply = call(gateway, calling, 1)
  await gateway.fake('a').until('tools/call')
  // The youngest of all: whatever ends it would end the others, if they were idle.
  await using idle = await connectHttp(gateway, { deaf: true })
  await limitHosts(gateway, { sessionIdleMs: 1 })
  await expect.poll(() => gateway.running.front.sessionCount).toBeLessThanOrEqual(2)
  expect((await call(gateway, idle, 1)).status).toBe(404)
  expect((await send(gateway.url, { headers: streaming.headers(), body: request(1, 'ping') })).status).toBe(200)
  release()
  expect((await messagesOf(await reply))[0]!.result).toEqual({ content: [] })
})

test('B257 the number of sessions is bounded; an idle one makes place', async () => {
  await using gateway = await start({ hostLimits: { maxSessions: 2 } })
  await using listening = await connectHttp(gateway)
  await using idle = await connectHttp(gateway, { deaf: true })
  await using next = await connectHttp(gateway)
  expect((await call(gateway, idle, 1)).status).toBe(404)
  expect((await call(gateway, listening, 1)).status).toBe(200)
  expect((await call(gateway, next, 1)).status).toBe(200)
  const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
  const refused = await send(gateway.url, { body })
  expect(refused.status).toBe(503)
  expect((await messageOf(refused)).error?.data).toMatchObject({ 'dev.trunkline/gateway': { kind: 'overloaded' } })
})
