/** `listen.revisions`: which revisions are spoken with hosts, on every transport (B293). */
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { everyModernTransport, legacySse } from '../support/fake-host.ts'
import { mirrors } from '../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../support/fakes/messages.ts'
import type { Message } from '../support/fakes/messages.ts'
import { messageOf, send } from '../support/fakes/raw-http.ts'
import { limitHosts, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const LEGACY_ONLY = { min: '2024-11-05', max: '2025-06-18' }
const MODERN_ONLY = { min: MODERN, max: MODERN }
const start = (revisions: { min: string; max: string }, pipe = false): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('echo') }, host: { revisions }, pipe })
const initialize = (protocolVersion: string): string => request(1, 'initialize', { protocolVersion, capabilities: {} })
const DISCOVER: Message = {
  jsonrpc: '2.0',
  id: 1,
  method: 'server/discover',
  params: { _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } },
}

describe('B293 up to a legacy revision', () => {
  test.each([
    ['2025-03-26', '2025-03-26'],
    ['2025-11-25', '2025-06-18'],
    ['2026-07-28', '2025-06-18'],
    ['1999-01-01', '2025-06-18'],
  ])('initialize with %s is answered %s', async (asked, answered) => {
    await using gateway = await start(LEGACY_ONLY)
    expect(await messageOf(await send(gateway.url, { body: initialize(asked) }))).toMatchObject({
      result: { protocolVersion: answered },
    })
  })
  test('a modern request is refused in the way of a legacy server, and names what is spoken', async () => {
    await using gateway = await start(LEGACY_ONLY)
    const reply = await send(gateway.url, { body: JSON.stringify(DISCOVER), headers: mirrors(DISCOVER) })
    expect(reply.status).toBe(400)
    expect(await messageOf(reply)).toMatchObject({
      error: { code: -32600, data: { supported: ['2024-11-05', '2025-03-26', '2025-06-18'] } },
    })
  })
  test('a header that names a later revision is refused within a session', async () => {
    await using gateway = await start(LEGACY_ONLY)
    const opened = await send(gateway.url, { body: initialize('2025-06-18') })
    const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) }
    const ask = (version: string) =>
      send(gateway.url, { headers: { ...session, 'mcp-protocol-version': version }, body: request(2, 'ping') })
    expect((await ask('2025-06-18')).status).toBe(200)
    expect((await ask('2025-11-25')).status).toBe(400)
  })
})

/** The first line that a host on a pipe gets for this one. */
const answerTo = async (gateway: TestGateway, line: string): Promise<Message> => {
  const { input, output } = gateway.openPipe()
  const first = once(output, 'data') as Promise<[Buffer]>
  input.write(`${line}\n`)
  return JSON.parse(String((await first)[0])) as Message
}

describe('a request that belongs to no era', () => {
  const LIST = request(2, 'tools/list', {})
  const MIRRORED = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' }
  test.each<[string, { min: string; max: string }, Record<string, string>, number, RegExp]>([
    ['both ways in', { min: '2024-11-05', max: MODERN }, {}, -32600, /send initialize first, or describe .*_meta/],
    ['B293 the one of legacy hosts', LEGACY_ONLY, {}, -32600, /send initialize first$/],
    [
      'B014 B293 what a modern host sends',
      MODERN_ONLY,
      MIRRORED,
      -32602,
      /^params\._meta\["io.modelcontextprotocol.protocolVersion"\]/,
    ],
  ])('is refused, naming %s', async (_, revisions, headers, code, words) => {
    await using gateway = await start(revisions)
    const posted = await send(gateway.url, { headers, body: LIST })
    expect(posted.status).toBe(400)
    for (const { error } of [await messageOf(posted), await answerTo(gateway, LIST)])
      expect(error).toMatchObject({ code, message: expect.stringMatching(words) as string })
  })
})

describe('B293 from the modern revision on', () => {
  test('initialize is answered 400 with the versions that are spoken; GET, DELETE and sessions are not', async () => {
    await using gateway = await start(MODERN_ONLY)
    const refused = await send(gateway.url, { body: initialize('2025-11-25') })
    expect(refused.status).toBe(400)
    expect(await messageOf(refused)).toMatchObject({
      error: { code: -32022, message: expect.stringContaining(MODERN) as string, data: { supported: [MODERN] } },
    })
    expect((await send(gateway.url, { body: request(2, 'tools/list') })).status).toBe(400)
    const batch = await send(gateway.url, { headers: { 'mcp-session-id': 'x' }, body: `[${request(2, 'tools/list')}]` })
    expect([batch.status, (await messageOf(batch)).error?.code]).toEqual([400, -32600])
    expect((await send(gateway.url, { method: 'GET', headers: { accept: 'text/event-stream' } })).status).toBe(405)
    expect((await send(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': 'x' } })).status).toBe(405)
    expect((await send(gateway.url, { body: JSON.stringify(DISCOVER), headers: mirrors(DISCOVER) })).status).toBe(200)
  })
  test('HTTP+SSE, which only legacy hosts use, is not served', async () => {
    await using gateway = await start(MODERN_ONLY)
    const url = new URL('/sse', gateway.url)
    expect((await send(url, { method: 'GET', headers: { accept: 'text/event-stream' } })).status).toBe(404)
  })
  test('on a pipe initialize is refused, and a modern host is served', async () => {
    await using gateway = await start(MODERN_ONLY, true)
    const { input, output } = gateway.openPipe()
    input.write(`${initialize('2025-11-25')}\n`)
    const line = await new Promise<string>((resolve) => output.once('data', (chunk: Buffer) => resolve(chunk.toString())))
    expect(JSON.parse(line)).toMatchObject({ id: 1, error: { code: -32022, data: { supported: [MODERN] } } })
  })
  test.each(everyModernTransport)('$name works as ever', async ({ connect }) => {
    await using gateway = await start(MODERN_ONLY)
    await using host = await connect(gateway)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }] })
  })
})

test('an HTTP+SSE session ends after listen.limits.session_max, used or not', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('echo') } })
  await using host = await legacySse.connect(gateway)
  expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__echo' }] })
  await limitHosts(gateway, { sessionMaxMs: 1 })
  await expect.poll(() => gateway.running.front.sessionCount).toBe(0)
  expect(gateway.running.context.limits.all).toEqual([{ option: 'listen.limits.session_max', server: undefined, count: 1 }])
})
