/** Links that several sessions share by `lifecycle.sharing` (BRIDGING 3.0 rules 5 and 6). */
import { describe, expect, test } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, LogLine, TestGateway } from '../support/gateway.ts'

type Kind = 'legacy http' | 'legacy stdio'

/** A gateway whose server answers `x` at once, and `slow` when the returned function is called. */
const startShared = async (
  options: NonNullable<GatewaySetup['options']>[string],
  kind: Kind = 'legacy http',
): Promise<{ gateway: TestGateway; release: () => void }> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const answer = async ({ params }: Turn) => {
    if (params['name'] === 'slow') await promise
    return { content: [{ type: 'text', text: 'done' }] }
  }
  const servers = { a: fake.of({ kind, tools: ['x', 'slow'], on: { 'tools/call': answer } }) }
  return { gateway: await startGateway({ servers, options: { a: options } }), release: resolve }
}

const callsOf = (gateway: TestGateway): Turn[] => gateway.fake('a').all('tools/call')

describe.each(['principal', 'shared'] as const)('with sharing: %s', (sharing) => {
  test.each<Kind>(['legacy http', 'legacy stdio'])('a link to a %s server outlives the session that opened it', async (kind) => {
    const { gateway, release } = await startShared({ sharing }, kind)
    await using _ = gateway
    const opener = await connectHttp(gateway)
    await using other = await legacyHttp.connect(gateway)
    await opener.call('tools/call', { name: 'a__x' })
    const pending = other.begin('tools/call', { name: 'a__slow' })
    await gateway.fake('a').until('tools/call', ({ params }) => params['name'] === 'slow')
    await send(gateway.url, { method: 'DELETE', headers: opener.headers() })
    release()
    expect((await pending.response).result).toEqual({ content: [{ type: 'text', text: 'done' }] })
    await other.call('tools/call', { name: 'a__x' })
    expect(new Set(callsOf(gateway).map(({ connection }) => connection)).size).toBe(1)
  })

  test('B055 a link is closed when it was idle, never under a call', async () => {
    const { gateway, release } = await startShared({ sharing, idleStopMs: 150 })
    await using _ = gateway
    await using host = await legacyHttp.connect(gateway)
    await using other = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
    const pending = host.begin('tools/call', { name: 'a__slow' })
    const busy = (await gateway.fake('a').until('tools/call')).connection
    if (sharing === 'principal') {
      await other.call('tools/call', { name: 'a__x' })
      await callsOf(gateway)[1]!.connection.closed
      expect(busy.isOpen).toBe(true)
    }
    release()
    await pending.response
    await busy.closed
    await other.call('tools/call', { name: 'a__x' })
    expect(callsOf(gateway).at(-1)?.connection).not.toBe(busy)
  })
})

test.each(['legacy http', 'legacy sse'] as const)(
  'with sharing: shared a %s server that serves one client only is called over the main link, by every host',
  async (kind) => {
    await using a = await FakeDownstream.start({ kind, tools: ['x'], on: { 'tools/call': () => ({ content: [] }) } })
    a.intercept = ({ method, headers }, response, body) => {
      const isOpening = kind === 'legacy sse' ? method === 'GET' : body.includes('"initialize"')
      if (a.connections.length === 0 || (!isOpening && method !== 'GET') || headers['mcp-session-id'] !== undefined) return false
      const error = { code: -32600, message: 'Invalid Request: Server already initialized' }
      response.writeHead(kind === 'legacy sse' ? 500 : 400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }))
      return true
    }
    const options = { a: { sharing: 'shared' as const } }
    await using gateway = await startGateway({ servers: { a: a.spec }, fakes: new Map([['a', a]]), options })
    await using one = await legacyHttp.connect(gateway)
    await using two = await modernHttp.connect(gateway)
    for (const host of [one, two, one]) expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [] })
    for (const host of [one, two]) expect(((await host.call('tools/list'))['tools'] as unknown[]).length).toBe(1)
    expect(a.connections.length).toBe(1)
  },
)

test.each(['legacy http', 'legacy sse'] as const)(
  'without it a %s server that serves one client only is told with the remedy, once in the log',
  async (kind) => {
    await using a = await FakeDownstream.start({ kind, tools: ['x'] })
    a.intercept = ({ method, headers }, response, body) => {
      const isOpening = kind === 'legacy sse' ? method === 'GET' : body.includes('"initialize"')
      if (a.connections.length === 0 || !isOpening || headers['mcp-session-id'] !== undefined) return false
      response.writeHead(500).end()
      return true
    }
    await using gateway = await startGateway({ servers: { a: a.spec }, fakes: new Map([['a', a]]) })
    await using one = await legacyHttp.connect(gateway)
    await using two = await modernHttp.connect(gateway)
    for (const host of [one, two, one])
      expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({
        isError: true,
        content: [
          {
            text: expect.stringContaining(
              '(HTTP 500); if it serves one client only, its operator can set lifecycle.sharing: shared',
            ) as string,
          },
        ],
        _meta: { 'dev.trunkline/gateway': { downstream: 'a', kind: 'downstream_error' } },
      })
    const isWarning = ({ level, text }: LogLine): boolean => level === 'warn' && text.includes('set lifecycle.sharing: shared')
    expect(gateway.log.entries.filter(isWarning)).toHaveLength(1)
  },
)

test('with sharing: call each call has a link of its own, closed after it', async () => {
  const { gateway, release } = await startShared({ sharing: 'call' })
  await using _ = gateway
  await using host = await legacyHttp.connect(gateway)
  const pending = host.begin('tools/call', { name: 'a__slow' })
  const busy = (await gateway.fake('a').until('tools/call')).connection
  await host.call('tools/call', { name: 'a__x' })
  const { connection } = callsOf(gateway)[1]!
  await connection.closed
  expect(busy.isOpen).toBe(true)
  release()
  await pending.response
  await busy.closed
})

test('with sharing: principal roots are asked of a session that is there, and nobody is asked for sharing: shared', async () => {
  const { gateway } = await startShared({ sharing: 'principal' })
  await using _ = gateway
  const opener = await connectHttp(gateway, { capabilities: { roots: {} } })
  await using other = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
  other.answer('roots/list', () => ({ roots: [{ uri: 'file:///other' }] }))
  for (const host of [opener, other]) await host.call('tools/call', { name: 'a__x' })
  await send(gateway.url, { method: 'DELETE', headers: opener.headers() })
  const { connection } = callsOf(gateway)[0]!
  expect((await connection.ask('roots/list')).result).toEqual({ roots: [{ uri: 'file:///other' }] })

  const open = await startShared({ sharing: 'shared' })
  await using shared = open.gateway
  await using host = await legacyHttp.connect(shared, { capabilities: { roots: {}, elicitation: {} } })
  shared.fake('a').on('tools/call', async (turn) => {
    const answers = [turn.ask('roots/list'), turn.ask('elicitation/create', { message: 'who?', requestedSchema: {} })]
    expect((await Promise.all(answers)).map(({ error }) => error?.code)).toEqual([-32601, -32601])
    return { content: [] }
  })
  expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
  expect(callsOf(shared)[0]!.connection.declared).toEqual({})
  expect(host.heard.entries).toEqual([])
})

test('B147 a shared link is as verbose as the most verbose of its sessions', async () => {
  const { gateway } = await startShared({ sharing: 'principal' })
  await using _ = gateway
  await using terse = await legacyHttp.connect(gateway)
  await using verbose = await legacyHttp.connect(gateway)
  for (const [host, level] of [
    [terse, 'error'],
    [verbose, 'debug'],
    [terse, 'error'],
  ] as const) {
    await host.call('logging/setLevel', { level })
    await host.call('tools/call', { name: 'a__x' })
  }
  const levels = gateway
    .fake('a')
    .all('logging/setLevel')
    .map(({ params }) => params['level'])
  expect(levels).toEqual(['error', 'debug'])
})

test('B277 with sharing: call a notification of a host at a bridge opens no link, which no call would close', async () => {
  const { gateway } = await startShared({ sharing: 'call' })
  await using _ = gateway
  await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
  const a = gateway.fake('a')
  host.notify('notifications/com.example/hello', {})
  await host.call('tools/call', { name: 'x' })
  await gateway.log.until(({ text }) => text === 'a notification of a host was dropped')
  const [{ connection }] = callsOf(gateway) as [Turn]
  await connection.closed
  expect(a.all('notifications/com.example/hello')).toEqual([])
  expect(a.connections.filter(({ isOpen }) => isOpen)).toHaveLength(1)
})
