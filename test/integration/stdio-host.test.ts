/** One host on a pipe, as `trunkline stdio` serves it: both eras on one line (BRIDGING 5.1, stdio upstream; 7.4). */
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { Handle } from '../support/fake-downstream.ts'
import { KEY, MODERN, notification, request } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { PipeHost } from '../support/fakes/pipe-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const start = (more: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) }, pipe: true, ...more })
const attach = (gateway: TestGateway): PipeHost => new PipeHost('legacy', gateway.openPipe())
const described = (id: string | number, method: string): string =>
  request(id, method, { _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } })
const INITIALIZE = request('init', 'initialize', { protocolVersion: '2025-11-25', capabilities: { roots: {} } })

test('B033 both eras are served on one pipe at the same time', async () => {
  await using gateway = await start()
  await using host = attach(gateway)
  const modern = host.sendRaw(described('m', 'tools/list'), 'm')
  expect((await modern.response).result).toMatchObject({ resultType: 'complete', tools: [{ name: 'a__x' }] })
  const opening = host.sendRaw(INITIALIZE, 'init')
  expect((await opening.response).result).toMatchObject({ protocolVersion: '2025-11-25' })
  expect(await host.call('tools/list')).toEqual({ tools: [{ name: 'a__x', inputSchema: { type: 'object' } }] })
  expect((await host.sendRaw(described('m2', 'server/discover'), 'm2').response).result).toHaveProperty('supportedVersions')
})

test('B033 B277 at a bridge, a modern notification beside a session keeps none of its keys in `_meta`', async () => {
  await using gateway = await start({ pipe: false })
  await using host = new PipeHost('legacy', gateway.openPipe(undefined, { server: 'a' }))
  await host.sendRaw(INITIALIZE, 'init').response
  const own = { [KEY.version]: MODERN, [KEY.capabilities]: {}, [KEY.clientInfo]: { name: 'h', version: '1' } }
  host.write(notification('notifications/com.example/hello', { n: 1, _meta: { ...own, 'com.example/k': 2 } }))
  const { params } = await gateway.fake('a').until('notifications/com.example/hello')
  expect(params).toEqual({ n: 1, _meta: { 'com.example/k': 2 } })
})

test('B054 one process serves catalogue and calls, with the capabilities of the host', async () => {
  await using gateway = await start()
  await using host = attach(gateway)
  await host.sendRaw(INITIALIZE, 'init').response
  expect(await host.call('tools/call', { name: 'a__x' })).toHaveProperty('content')
  const [connection] = gateway.fake('a').connections.slice(-1)
  expect(gateway.fake('a').connections.filter(({ isOpen }) => isOpen)).toEqual([connection])
  expect(connection!.declared).toEqual({ roots: {} })
})

test('5.3 the level that the host set reaches a server that starts later, and the next process of a server that ended', async () => {
  const { promise: mayStart, resolve: start } = Promise.withResolvers<undefined>()
  const initialize: Handle = async () => {
    await mayStart
    return { protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'a', version: '1' } }
  }
  const servers = { a: fake.of({ kind: 'legacy stdio', tools: ['x'], on: { initialize } }) }
  await using gateway = await startGateway({ servers, pipe: true, early: true })
  await using host = attach(gateway)
  await host.sendRaw(INITIALIZE, 'init').response
  await gateway.fake('a').until('initialize')
  expect(await host.call('logging/setLevel', { level: 'error' })).toEqual({})
  start(undefined)
  const first = await gateway.fake('a').until('logging/setLevel')
  expect(first.params).toEqual({ level: 'error' })
  first.connection.drop()
  await gateway.fake('a').until('logging/setLevel', ({ connection }) => connection !== first.connection)
  expect(gateway.fake('a').all('logging/setLevel')).toHaveLength(2)
})

describe('B262 a legacy server asks a modern host with several calls in flight', () => {
  const able = { capabilities: { elicitation: { form: {} } } }
  const form = { message: 'Sure?', requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } } }
  const call = (of: string, more: JsonMap = {}): JsonMap => ({ name: 'a__x', arguments: { of }, ...more })
  const text = (said: unknown): JsonMap => ({ content: [{ type: 'text', text: JSON.stringify(said) }] })

  /** The server asks for the first of two calls; the second ends once it is released. */
  const twoCalls = async () => {
    const { promise: both, resolve: bothAreThere } = Promise.withResolvers<void>()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const handle: Handle = async (turn) => {
      if ((turn.params['arguments'] as JsonMap)['of'] === 'second') {
        bothAreThere()
        await released
        return text('second')
      }
      await both
      const { result, error } = await turn.ask('elicitation/create', form)
      return text(result?.['content'] ?? error)
    }
    const servers = { a: fake.of({ kind: 'legacy stdio', tools: ['x'], on: { 'tools/call': handle } }) }
    const gateway = await start({ servers })
    const host = await new PipeHost('modern', gateway.openPipe(), able).start()
    const first = host.begin('tools/call', call('first'))
    await gateway.fake('a').until('tools/call')
    const second = host.begin('tools/call', call('second'))
    return { gateway, host, first, second, release, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() }
  }
  const retry = (round: JsonMap | undefined): JsonMap =>
    call('second', {
      inputResponses: { sure: { action: 'accept', content: { sure: true } } },
      requestState: round?.['requestState'],
    })

  test('the newest call asks, and its retry brings the answer for either', async () => {
    await using at = await twoCalls()
    const round = (await at.second.response).result
    expect(round).toMatchObject({ resultType: 'input_required', inputRequests: { sure: { params: { message: 'Sure?' } } } })
    const again = at.host.begin('tools/call', retry(round))
    expect((await at.first.response).result).toMatchObject(text({ sure: true }))
    at.release()
    expect((await again.response).result).toMatchObject(text('second'))
    expect(at.gateway.fake('a').connections.filter(({ isOpen }) => isOpen)).toHaveLength(1)
  })

  test('the answer arrives although the call that asked has ended meanwhile', async () => {
    await using at = await twoCalls()
    const round = (await at.second.response).result
    at.release()
    await at.host.call('tools/call', call('second'))
    expect(await at.host.call('tools/call', retry(round))).toMatchObject(text('second'))
    expect((await at.first.response).result).toMatchObject(text({ sure: true }))
  })
})

test('B100 a ping before initialize is answered {}, and the host may begin in either way', async () => {
  await using gateway = await start()
  await using host = attach(gateway)
  const answered = await host.sendRaw(request('p', 'ping'), 'p').response
  expect([answered.result, answered.error]).toEqual([{}, undefined])
  expect((await host.sendRaw(INITIALIZE, 'init').response).result).toMatchObject({ protocolVersion: '2025-11-25' })
  await host.call('tools/call', { name: 'a__x' })
  const { connection } = await gateway.fake('a').until('tools/call')
  expect([connection.declared, gateway.fake('a').all('ping')]).toEqual([{ roots: {} }, []])
})

test('B100 B293 where only 2026-07-28 is spoken, a ping is a request without its version', async () => {
  await using gateway = await start({ host: { revisions: { min: MODERN, max: MODERN } } })
  await using host = attach(gateway)
  expect((await host.sendRaw(request('p', 'ping'), 'p').response).error).toMatchObject({ code: -32602 })
})

describe('7.4 mistakes of the host', () => {
  test('an id that is in flight is refused, whichever era has it; its text is another id', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    const call = request(5, 'tools/call', { name: 'a__x', _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } })
    gateway.fake('a').on('tools/call', fake.never)
    host.write(call)
    await host.sendRaw(INITIALIZE, 'init').response
    await gateway.fake('a').until('tools/call')
    const busy = { code: -32600, message: 'a request with id 5 is in progress' }
    expect((await host.sendRaw(described(5, 'tools/list'), 5).response).error).toEqual(busy)
    expect((await host.sendRaw(request(5, 'ping'), 5).response).error).toEqual(busy)
    expect((await host.sendRaw(request('5', 'ping'), '5').response).result).toEqual({})
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })
  test('before initialize a request without _meta is answered -32600, naming both ways in', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    const { error } = await host.sendRaw(request(1, 'tools/list'), 1).response
    expect(error?.code).toBe(-32600)
    expect(error?.message).toMatch(/initialize/)
    expect(error?.message).toContain(KEY.version)
  })
  test('one with some of the per-request keys but not the version is answered -32602', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    const { error } = await host.sendRaw(request(1, 'tools/list', { _meta: { [KEY.capabilities]: {} } }), 1).response
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(KEY.version) as string })
  })
  test.each(['{', 'nonsense', '{"jsonrpc":"2.0","id":1,"method":"ping"', '"text"', '\u0000'])(
    'B259 the line %j is answered with an error whose id is null, and the next is served',
    async (line) => {
      await using gateway = await start()
      await using host = attach(gateway)
      host.write(line)
      const { error, id } = await host.heard.until(() => true)
      expect([error?.code, id]).toEqual([line === '"text"' ? expect.any(Number) : -32700, null])
      expect((await host.sendRaw(INITIALIZE, 'init').response).result).toBeDefined()
    },
  )
  test('B259 bytes that are no UTF-8 are answered -32700', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    host.write(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))
    expect((await host.heard.until(() => true)).error?.code).toBe(-32700)
  })
  test('a line over the limit is answered -32600 with its id where that can be seen, and the next is served', async () => {
    await using gateway = await start({ hostLimits: { maxBodyBytes: 10_000 } })
    await using host = attach(gateway)
    const long = host.sendRaw(
      `{"jsonrpc":"2.0","id":"long","method":"tools/list","params":{"x":"${'x'.repeat(20_000)}"}}`,
      'long',
    )
    expect((await long.response).error?.code).toBe(-32600)
    expect((await host.sendRaw(INITIALIZE, 'init').response).result).toBeDefined()
  })
  test('a second request under an id in flight is refused, of either era; the first goes on', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    await host.sendRaw(INITIALIZE, 'init').response
    await host.call('tools/list')
    const { promise: later, resolve: release } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async () => (await later, { content: [] }))
    const call = request('twin', 'tools/call', { name: 'a__x' })
    host.write(call)
    await gateway.fake('a').until('tools/call')
    for (const twin of [call, described('twin', 'tools/list')]) {
      host.write(twin)
      await host.lines.until((line) => line.includes('"twin"') && line.includes('-32600'))
    }
    release()
    await host.lines.until((line) => line.includes('"twin"') && line.includes('"content"'))
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })
  test('B138 a modern id that is used again right after its cancellation can be cancelled again', async () => {
    await using gateway = await start({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
    await using host = attach(gateway)
    const a = gateway.fake('a').on('tools/call', () => fake.never())
    const meta = { [KEY.version]: MODERN, [KEY.capabilities]: {} }
    const call = request(1, 'tools/call', { name: 'a__x', _meta: meta })
    const cancel = notification('notifications/cancelled', { requestId: 1 })
    await host.sendRaw(described('m', 'tools/list'), 'm').response
    host.write(call)
    await a.until('tools/call')
    host.write([cancel, call].join('\n'))
    await a.journal.when(() => (a.all('tools/call').length === 2 ? true : undefined))
    host.write(cancel)
    await a.journal.when(() => (a.all('notifications/cancelled').length === 2 ? true : undefined))
    const [first, second] = a.all('tools/call').map(({ id }) => id)
    expect(a.all('notifications/cancelled').map(({ params }) => params['requestId'])).toEqual([first, second])
  })
  test('answers to questions nobody asked are ignored', async () => {
    await using gateway = await start()
    await using host = attach(gateway)
    await host.sendRaw(INITIALIZE, 'init').response
    for (const id of ['q1', 0, 'never']) host.write(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
    expect(await host.call('ping')).toEqual({})
    expect(host.heard.entries).toEqual([])
  })
})

test('nothing is asked of a host that has not sent initialize, whatever servers do', async () => {
  await using gateway = await start({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
  await using host = attach(gateway)
  await host.sendRaw(described('m', 'tools/list'), 'm').response
  const asked = gateway.fake('a').connections[0]!.ask('roots/list')
  expect(await asked).toBeDefined()
  expect(host.heard.entries.filter(({ id, method }) => id !== undefined && method !== undefined)).toEqual([])
})

test('each message is one line and nothing else is written', async () => {
  await using gateway = await start()
  await using host = attach(gateway)
  await host.sendRaw(INITIALIZE, 'init').response
  gateway.fake('a').on('tools/call', () => ({ content: [{ type: 'text', text: 'two\nlines\r\n' }] }))
  expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'two\nlines\r\n' }] })
  for (const line of host.lines.entries) expect((JSON.parse(line) as Message).jsonrpc).toBe('2.0')
})

describe('B125 B126 a gateway with listeners stops, and on a pipe beside them', () => {
  const beside = (gateway: TestGateway, ...isRelay: readonly boolean[]): PipeHost => {
    const streams = { input: new PassThrough(), output: new PassThrough() }
    void gateway.running.attach(streams, {}, ...isRelay)
    return new PipeHost('modern', streams)
  }
  const watching = async (host: PipeHost) => {
    const stream = host.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await host.heard.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    host.heard.clear()
    return stream
  }
  const methods = (host: PipeHost): unknown[] => host.heard.entries.map(({ method }) => method)

  test('a host is told the end of its streams, and nothing that only a relay understands', async () => {
    await using gateway = await start({ pipe: false })
    await using host = beside(gateway)
    const { response } = await watching(host)
    await gateway.running.stop()
    expect((await response).result).toMatchObject({ resultType: 'complete' })
    expect(methods(host)).toEqual(['notifications/cancelled'])
  })

  test('B121 a stream that ends before the answer of a server is acknowledged first', async () => {
    const resources = [{ name: 'r', uri: 'x:/r' }]
    const on = { 'resources/subscribe': fake.never }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy http', resources, capabilities: { resources: { subscribe: true } }, on }) },
    })
    await using host = beside(gateway)
    const { response } = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: ['a+x:/r'] } })
    await gateway.fake('a').until('resources/subscribe')
    const stopped = gateway.running.stop()
    expect((await response).result).toMatchObject({ resultType: 'complete' })
    await stopped
    expect(methods(host)).toEqual(['notifications/subscriptions/acknowledged', 'notifications/cancelled'])
    expect(host.heard.entries[0]?.params).toMatchObject({ notifications: { resourceSubscriptions: [] } })
  })

  test('a relay is asked to hold on, and its host sees no end of its streams', async () => {
    await using gateway = await start({ pipe: false })
    await using host = beside(gateway, true)
    const { response } = await watching(host)
    const stopped = gateway.running.stop()
    await host.heard.until(({ method }) => method === 'notifications/dev.trunkline/draining')
    host.notify('notifications/dev.trunkline/holding')
    await stopped
    await expect(response).rejects.toThrow('was not answered')
    expect(methods(host)).toEqual(['notifications/dev.trunkline/draining'])
  })
})
