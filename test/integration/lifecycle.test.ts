/** Handshakes and what every message of an era carries (BRIDGING 8.1, 8.2). */
import { describe, expect, test, vi } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import {
  everyLegacyTransport,
  everyModernTransport,
  everyTransport,
  legacyHttp,
  legacyPipe,
  modernHttp,
  modernPipe,
} from '../support/fake-host.ts'
import { KEY, LEGACY, metaOf, MODERN } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const start = (): Promise<TestGateway> =>
  startGateway({
    servers: { a: fake.of({ tools: ['echo'], resources: ['file:///r'], prompts: ['p'], instructions: 'Use it well.' }) },
  })
const isProgress = ({ method }: Message): boolean => method === 'notifications/progress'

describe.each(everyLegacyTransport)('over $name', ({ connect }) => {
  test.each(LEGACY)('B024 initialize for %s is answered with it', async (revision) => {
    await using gateway = await start()
    await using host = await connect(gateway, { revision })
    expect(host.welcome['protocolVersion']).toBe(revision)
  })
  test.each(['2026-07-28', '2099-01-01', '1.0'])('B025 B026 initialize for %s is answered with 2025-11-25', async (revision) => {
    await using gateway = await start()
    await using host = await connect(gateway, { revision })
    expect(host.welcome['protocolVersion']).toBe('2025-11-25')
  })
  test('B040 B043 B045 initialize tells the stable superset, our name, and the instructions of each server', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    expect(host.welcome).toMatchObject({
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        logging: {},
      },
      serverInfo: { name: 'trunkline' },
    })
    expect(Object.keys(host.welcome['capabilities'] as JsonMap)).not.toContain('experimental')
    expect(host.welcome['instructions']).toContain('Use it well.')
    expect(host.welcome['instructions']).toContain('a__')
  })
  test('requests before initialized are answered, ping among them', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { hesitates: true })
    expect(await host.call('ping')).toEqual({})
    expect(await host.call('tools/call', { name: 'a__echo' })).toMatchObject({ content: [{ type: 'text' }] })
  })
  test('B028 a host is asked nothing before it has said initialized, and then what was to be asked', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { capabilities: { roots: {} }, hesitates: true })
    host.answer('roots/list', () => ({ roots: [{ uri: 'file:///own' }] }))
    gateway.fake('a').on('tools/call', async (turn) => {
      const roots = turn.ask('roots/list')
      turn.progress(1)
      return { content: [{ type: 'text', text: JSON.stringify((await roots).result) }] }
    })
    const pending = host.begin('tools/call', { name: 'a__echo', _meta: { progressToken: 'p' } })
    // The server sent it after its question.
    await Promise.race([pending.messages, host.heard].map((journal) => journal.until(isProgress)))
    const asked = (): Message[] => [...pending.messages.entries, ...host.heard.entries].filter(({ id }) => id !== undefined)
    expect(asked()).toEqual([])
    host.notify('notifications/initialized')
    expect((await pending.response).result).toMatchObject({ content: [{ text: '{"roots":[{"uri":"file:///own"}]}' }] })
    expect(asked().map(({ method }) => method)).toEqual(['roots/list'])
  })
  test('7.4 initialize a second time is answered -32600 on a pipe or connection, and the first stays', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { revision: '2025-06-18' })
    const again = host.call('initialize', { protocolVersion: '2025-11-25', capabilities: {} })
    if (connect === legacyHttp.connect) expect(await again).toMatchObject({ protocolVersion: '2025-11-25' })
    else await expect(again).rejects.toMatchObject({ code: -32600 })
    expect(await host.call('ping')).toEqual({})
  })
  test('initialize without a version is answered -32602', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    if (connect === legacyHttp.connect)
      await expect(host.call('initialize', { capabilities: {} })).rejects.toMatchObject({ code: -32602 })
    else await expect(host.call('initialize', { capabilities: {} })).rejects.toMatchObject({ code: -32600 })
  })
  test('B106 results carry nothing of the modern era', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['echo'], resources: ['file:///r'], prompts: ['p'] }) },
    })
    await using host = await connect(gateway)
    const results = await Promise.all([
      host.call('tools/list'),
      host.call('resources/list'),
      host.call('tools/call', { name: 'a__echo' }),
      host.call('resources/read', { uri: 'a+file:///r' }),
    ])
    for (const result of results)
      expect(Object.keys(result).filter((key) => ['resultType', 'ttlMs', 'cacheScope'].includes(key))).toEqual([])
  })
})

describe.each(everyModernTransport)('over $name', ({ connect }) => {
  test('B029 B031 B008 B011 server/discover tells versions, capabilities and how long that holds', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    expect(host.welcome).toMatchObject({
      resultType: 'complete',
      supportedVersions: [MODERN],
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
      cacheScope: expect.stringMatching(/^(public|private)$/) as string,
      _meta: { [KEY.serverInfo]: { name: 'trunkline' } },
    })
    expect(host.welcome['ttlMs']).toBeGreaterThan(0)
    expect(host.welcome['instructions']).toContain('Use it well.')
  })
  test('B029 what server/discover tells holds for no time while a server is starting', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<JsonMap>()
    const servers = { a: fake.of({ tools: ['x'], on: { 'tools/list': () => released } }) }
    await using gateway = await startGateway({ servers, gateway: { handshakeBudgetMs: 0 }, early: true })
    await using host = await connect(gateway)
    expect(host.welcome).toMatchObject({ resultType: 'complete', ttlMs: 0 })
    release({ tools: [] })
    await vi.waitFor(async () => expect((await host.call('server/discover'))['ttlMs']).toBe(60_000))
  })
  test('B008 B011 B149 every result is complete, says who answered, and how long it holds where that is known', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const cacheable = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
    for (const method of cacheable) {
      const result = await host.call(method)
      expect([method, result]).toEqual([method, expect.objectContaining({ resultType: 'complete', cacheScope: 'private' })])
      expect(result['ttlMs']).toBeGreaterThanOrEqual(0)
    }
    const read = await host.call('resources/read', { uri: 'a+file:///r' })
    expect(read).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' })
    const called = await host.call('tools/call', { name: 'a__echo' })
    expect(called).toMatchObject({ resultType: 'complete', _meta: { [KEY.serverInfo]: { name: 'trunkline' } } })
  })
  test('B014 a request without protocolVersion or clientCapabilities is answered -32602', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const missing = host.call('tools/list', {}, { meta: { [KEY.capabilities]: undefined } })
    await expect(missing).rejects.toMatchObject({ code: -32602 })
  })
  test('B015 a request without clientInfo is served', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    expect(await host.call('tools/list', {}, { meta: { [KEY.clientInfo]: undefined } })).toHaveProperty('tools')
  })
  test('B030 an unsupported version is answered -32022 with what is supported', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const headers = { 'mcp-protocol-version': '2099-01-01' }
    await expect(host.call('tools/list', {}, { meta: { [KEY.version]: '2099-01-01' }, headers })).rejects.toMatchObject({
      code: -32022,
      data: { supported: [MODERN], requested: '2099-01-01' },
    })
  })
  test('B036 capabilities are of one request only', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) } })
    await using host = await connect(gateway)
    await host.call('tools/call', { name: 'a__echo' }, { meta: { [KEY.capabilities]: { sampling: {}, elicitation: {} } } })
    await host.call('tools/call', { name: 'a__echo' })
    const declared = gateway
      .fake('a')
      .all('tools/call')
      .map(({ message }) => metaOf(message)[KEY.capabilities])
    expect(declared).toEqual([{ sampling: {}, elicitation: { form: {} } }, {}])
  })
})

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test.each(['one', '1', 1, 0, 9007199254740991])('B001 an id of %j comes back as it was', async (id) => {
    await using gateway = await start()
    await using host = await connect(gateway)
    expect((await host.begin('tools/list', {}, { id }).response).id).toBe(id)
    expect((await host.begin('no/such', {}, { id }).response).id).toBe(id)
    expect((await host.begin('tools/call', { name: 'a__echo' }, { id }).response).id).toBe(id)
  })
  test.each([String.raw`"caf\u00e9\/1"`, '"1.0"', '-3', '"\\u0000"'])(
    'B001 an id spelled %s comes back in that spelling',
    async (id) => {
      await using gateway = await start()
      await using host = await connect(gateway)
      const meta = era === 'modern' ? `,"_meta":{"${KEY.version}":"${MODERN}","${KEY.capabilities}":{}}` : ''
      const text = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"a__echo"${meta}}}`
      expect(await host.sendRaw(text, JSON.parse(id) as string | number).raw).toContain(`"id":${id},`)
    },
  )
  test('B004 nothing is ever said to a notification', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    host.notify('notifications/unheard_of', { any: 1 })
    host.notify('tools/list', {})
    await host.call('tools/list')
    expect(host.heard.entries).toEqual([])
  })
  test('B004 a server that answers twice, and then fails the same call, has answered once', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const texts: string[] = []
    gateway.fake('a').on('tools/call', (turn) => {
      const result = (text: string): string => `{"jsonrpc":"2.0","id":${turn.id},"result":{"content":[],"said":"${text}"}}`
      turn.say(result('first'))
      turn.say(result('second'))
      turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"error":{"code":1,"message":"third"}}`)
    })
    const pending = host.begin('tools/call', { name: 'a__echo' })
    expect((await pending.response).result).toMatchObject({ said: 'first' })
    gateway.fake('a').off('tools/call')
    await host.call('tools/call', { name: 'a__echo' })
    texts.push(...host.texts, ...pending.texts)
    expect([...host.heard.entries, ...pending.messages.entries]).toEqual([])
    expect(texts).toEqual([])
  })
  test('B005 what a server says without an integer code or a message becomes an error that has both', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    for (const error of ['{"code":1.5,"message":"x"}', '{"code":"1","message":"x"}', '{"code":1}', '{"message":"x"}', '{}']) {
      gateway.fake('a').on('prompts/get', (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"error":${error}}`))
      const answer = await host.begin('prompts/get', { name: 'a__p' }).response
      expect(answer.error, error).toMatchObject({ code: -32603, message: expect.any(String) as string })
    }
  })
  test('B005 errors have an integer code and a message', async () => {
    await using gateway = await start()
    await using host = await connect(gateway)
    for (const [method, params] of [
      ['no/such', {}],
      ['tools/call', { name: 'z__nope' }],
      ['resources/read', { uri: 'nope:///x' }],
      ['prompts/get', { name: 'z__nope' }],
    ] as const) {
      const { error } = await host.begin(method, params).response
      expect(Number.isInteger(error?.code)).toBe(true)
      expect(error?.message).toEqual(expect.any(String))
      if (era === 'modern') expect([-32002, -32042]).not.toContain(error?.code)
    }
  })
})

test.each([legacyHttp, legacyPipe, modernHttp, modernPipe])(
  'B001 over $name a call that a limit refuses has its id',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ tools: ['echo'] }) }, hostLimits: { maxInFlight: 1 } })
    gateway.fake('a').on('tools/call', fake.never)
    await using host = await connect(gateway)
    const open = host.begin('tools/call', { name: 'a__echo' })
    await gateway.fake('a').until('tools/call')
    for (const id of ['7', 7]) {
      const answer = await host.begin('tools/list', {}, { id }).response
      expect([answer.id, JSON.stringify(answer)]).toEqual([id, expect.stringContaining('listen.limits.in_flight (1)')])
    }
    open.cancel()
  },
)

test.each([legacyPipe, modernPipe])(
  'B004 over $name nothing answers a list that its host no longer waits for',
  async ({ connect }) => {
    const { promise: released, resolve: release } = Promise.withResolvers<JsonMap>()
    const servers = { a: fake.of({ tools: ['echo'], on: { 'tools/list': () => released } }) }
    await using gateway = await startGateway({ servers, gateway: { handshakeBudgetMs: 0 }, early: true })
    await using host = await connect(gateway)
    const [left, kept] = [host.begin('tools/list', {}, { id: 'left' }), host.begin('tools/list', {}, { id: 'kept' })]
    host.notify('notifications/cancelled', { requestId: 'left' })
    await gateway.fake('a').until('tools/list')
    release({ tools: [] })
    const first = await Promise.race([left, kept].map(({ response }) => response))
    expect(first.id).toBe('kept')
  },
)

describe.each(everyFakeKind)('a %s server', (kind) => {
  test("B002 B003 B135 gets ids and progress tokens of ours, never the same twice, never the host's", async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['echo'] }) } })
    await using host = await modernHttp.connect(gateway)
    await using legacy = await legacyHttp.connect(gateway)
    for (let n = 0; n < 4; n++)
      await Promise.all(
        [host, legacy].map((who) =>
          who.call('tools/call', { name: 'a__echo', _meta: { progressToken: 'mine' } }, { id: `host-${n}` }),
        ),
      )
    const calls = gateway.fake('a').all('tools/call')
    const on = ({ connection }: (typeof calls)[number]): number => gateway.fake('a').connections.indexOf(connection)
    expect(new Set(calls.map((call) => `${on(call)}/${call.id}`)).size).toBe(8)
    const tokens = calls.map(({ message }) => metaOf(message)['progressToken'])
    expect(tokens).not.toContain('mine')
    expect(tokens.every((token) => typeof token === 'number' || typeof token === 'string')).toBe(true)
    expect(new Set(calls.map((call, at) => `${on(call)}/${String(tokens[at])}`)).size).toBe(8)
    expect(calls.some(({ raw }) => raw.includes('host-'))).toBe(false)
    expect(calls.some(({ raw }) => raw.includes('"id":null'))).toBe(false)
  })
  test('B017 B020 never gets the per-request keys of the host, but all its other _meta', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['echo'] }) } })
    await using host = await modernHttp.connect(gateway)
    const meta = {
      'com.example/x': { deep: [1] },
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'vendor=1,other=2',
      baggage: 'a=1',
      [KEY.logLevel]: 'info',
    }
    await host.call('tools/call', { name: 'a__echo' }, { meta })
    const { message } = await gateway.fake('a').until('tools/call')
    const sent = metaOf(message)
    const { [KEY.logLevel]: logLevel, ...others } = meta
    expect(sent).toMatchObject(others)
    if (kind.startsWith('legacy')) expect(Object.keys(sent).filter((key) => Object.values<string>(KEY).includes(key))).toEqual([])
    else
      expect(sent).toMatchObject({
        [KEY.version]: MODERN,
        [KEY.capabilities]: {},
        [KEY.clientInfo]: { name: 'trunkline' },
        [KEY.logLevel]: logLevel,
      })
  })
})

test('B012 B013 all our own requests to a modern server describe themselves', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern stdio', tools: ['echo'], resources: ['file:///r'], prompts: ['p'] }) },
    early: true,
  })
  const methods = ['server/discover', 'tools/list', 'resources/list', 'prompts/list', 'subscriptions/listen']
  for (const method of methods)
    expect(metaOf((await gateway.fake('a').until(method)).message)).toMatchObject({
      [KEY.version]: MODERN,
      [KEY.capabilities]: expect.any(Object) as object,
      [KEY.clientInfo]: { name: 'trunkline' },
    })
})

test.each(['legacy http', 'legacy sse', 'legacy stdio'] as const)(
  'B027 a %s server hears initialized after its answer and before any other request',
  async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['echo'] }) }, early: true })
    await gateway.fake('a').until('tools/list')
    const methods = gateway.fake('a').received.flatMap(({ message: { method } }) => (method === undefined ? [] : [method]))
    const from = methods.indexOf('initialize')
    expect(methods[from + 1]).toBe('notifications/initialized')
  },
)

test('B009 an answer without resultType is complete, B010 one with an unknown resultType is an invalid response', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) } })
  await using host = await modernHttp.connect(gateway)
  gateway.fake('a').on('tools/call', (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{"content":[]}}`))
  expect(await host.call('tools/call', { name: 'a__echo' })).toMatchObject({ resultType: 'complete', content: [] })
  gateway.fake('a').on('tools/call', () => ({ resultType: 'strange', content: [] }))
  expect(await host.call('tools/call', { name: 'a__echo' })).toMatchObject({
    isError: true,
    content: [{ text: 'A violated the protocol' }],
  })
  gateway.fake('a').on('prompts/get', () => ({ resultType: 'strange', messages: [] }))
  await expect(host.call('prompts/get', { name: 'a__p' })).rejects.toMatchObject({
    code: -32603,
    data: { [KEY.gateway]: { kind: 'protocol' } },
  })
})

test('B032 hosts of both eras are served on one URL at the same time', async () => {
  await using gateway = await start()
  const hosts = await Promise.all([legacyHttp, modernHttp, legacyHttp, modernHttp].map(({ connect }) => connect(gateway)))
  const lists = await Promise.all(hosts.map((host) => host.call('tools/list')))
  for (const { tools } of lists) expect(tools).toEqual([{ name: 'a__echo', inputSchema: { type: 'object' } }])
  await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()))
})

test('B034 the body decides the era: a legacy request with a modern header is no modern one, and the reverse', async () => {
  await using gateway = await start()
  await using host = await legacyHttp.connect(gateway)
  const result = await host.call('tools/list', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } })
  expect(result).not.toHaveProperty('resultType')
  const inSession = await host.call('tools/list', {}, { headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' } })
  expect(inSession).toHaveProperty('tools')
  expect(inSession).not.toHaveProperty('resultType')
  const described = { [KEY.version]: MODERN, [KEY.capabilities]: {} }
  const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' }
  expect(await host.call('tools/list', {}, { meta: described, headers })).toHaveProperty('resultType', 'complete')
})

test.each([legacyHttp, legacyPipe, modernHttp])(
  'B035 over $name the first answer does not wait for hanging servers',
  async ({ connect }) => {
    const hanging = fake.of({ tools: ['x'], on: { initialize: fake.never } })
    await using gateway = await startGateway({
      servers: Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`h${n}`, hanging])),
      early: true,
    })
    await using host = await connect(gateway)
    expect(gateway.running.fleet.downstreams$.value.map(({ health$ }) => health$.value.state)).toEqual(Array(10).fill('starting'))
    expect(host.welcome).toHaveProperty('capabilities')
  },
)

test('B023 nobody is treated differently for the name it gives itself', async () => {
  await using gateway = await start()
  await using host = await modernHttp.connect(gateway)
  const results = await Promise.all(
    ['claude', 'trunkline', '__proto__', ''].map((name) =>
      host.call('tools/list', {}, { meta: { [KEY.clientInfo]: { name, version: '0' } } }),
    ),
  )
  for (const { tools } of results) expect(tools).toEqual(results[0]!['tools'])
})

test('B023 no server gets the names of another for what it says of itself', async () => {
  const calling = (name: string, tool: string): FakeSpec =>
    fake.of({
      tools: [tool],
      on: {
        initialize: ({ params }) => ({
          protocolVersion: params['protocolVersion'],
          capabilities: { tools: {} },
          serverInfo: { name, title: name, version: '1' },
        }),
        'tools/call': () => ({ content: [{ type: 'text', text: tool }] }),
      },
    })
  await using gateway = await startGateway({ servers: { a: calling('b', 'x'), b: calling('a', 'y') } })
  await using host = await modernHttp.connect(gateway)
  const { tools } = await host.call('tools/list')
  expect((tools as JsonMap[]).map(({ name }) => name)).toEqual(['a__x', 'b__y'])
  expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'x' }] })
  expect(await host.call('tools/call', { name: 'b__y' })).toMatchObject({ content: [{ text: 'y' }] })
})

test('B039 elicitation {} of a host is form only for a modern server', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) } })
  await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {}, roots: {} } })
  await host.call('tools/call', { name: 'a__echo' })
  const { message } = await gateway.fake('a').until('tools/call')
  expect(metaOf(message)[KEY.capabilities]).toEqual({ elicitation: { form: {} }, roots: {} })
})

test('B037 a legacy link declares what its host declared and nothing else', async () => {
  await using gateway = await start()
  await using host = await legacyHttp.connect(gateway, { capabilities: { sampling: {}, experimental: { x: {} } } })
  await host.call('tools/call', { name: 'a__echo' })
  const { connection } = await gateway.fake('a').until('tools/call')
  expect(connection.declared).toEqual({ sampling: {}, experimental: { x: {} } })
})

test('B037 B043 a legacy link declares of a modern host what can be carried for it, and no extension but the known one', async () => {
  await using gateway = await start()
  const apps = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  const more = { experimental: { x: {} }, 'com.example/y': {}, extensions: { ...apps, 'com.example/z': {} } }
  await using host = await modernHttp.connect(gateway, { capabilities: { sampling: {}, ...more } })
  await host.call('tools/call', { name: 'a__echo' })
  const { connection } = await gateway.fake('a').until('tools/call')
  expect(connection.declared).toEqual({ sampling: {}, extensions: apps })
})

const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
const SAMPLING = { messages: [], maxTokens: 1 }
const ASKS: readonly [declared: JsonMap, method: string, params: JsonMap, code: number][] = [
  [{}, 'roots/list', {}, -32601],
  [{ roots: {}, sampling: {} }, 'elicitation/create', FORM, -32601],
  [{ roots: {}, elicitation: {} }, 'sampling/createMessage', SAMPLING, -32601],
  [{ elicitation: {} }, 'elicitation/create', { ...FORM, mode: 'url', url: 'https://example.com', elicitationId: 'e' }, -32602],
  [{ elicitation: { url: {} } }, 'elicitation/create', FORM, -32602],
  [{ sampling: {} }, 'sampling/createMessage', { ...SAMPLING, tools: [] }, -32602],
]

describe.each([legacyHttp, legacyPipe, modernHttp])('over $name', ({ connect }) => {
  test.each(ASKS)(
    'B038 a host that declares %j is never asked %s %j: the server gets %i',
    async (capabilities, method, params, code) => {
      await using gateway = await start()
      await using host = await connect(gateway, { capabilities })
      const answer = Promise.withResolvers<Message>()
      gateway.fake('a').on('tools/call', async (turn) => {
        answer.resolve(await turn.ask(method, params))
        return { content: [] }
      })
      const pending = host.begin('tools/call', { name: 'a__echo' })
      expect((await answer.promise).error?.code).toBe(code)
      expect((await pending.response).result).toMatchObject({ content: [] })
      expect([...pending.messages.entries, ...host.heard.entries]).toEqual([])
    },
  )

  test.each(ASKS)('B038 nor when it declares %j and %s %j is required for a result', async (capabilities, method, params) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) } })
    await using host = await connect(gateway, { capabilities })
    gateway.fake('a').on('tools/call', () => ({ resultType: 'input_required', inputRequests: { q: { method, params } } }))
    const pending = host.begin('tools/call', { name: 'a__echo' })
    expect((await pending.response).result).toMatchObject({ isError: true })
    expect([...pending.messages.entries, ...host.heard.entries]).toEqual([])
  })
})

describe.each([legacyHttp, legacyPipe])('over $name', ({ connect }) => {
  test.each([
    [false, { form: {} }, -32602],
    [true, { form: {}, url: {} }, undefined],
  ])('B038 URL mode that a host of 2025-06-18 declares exists only at a bridge (%s)', async (isBridge, elicitation, code) => {
    await using gateway = await start()
    const capabilities = { elicitation: { form: {}, url: {} } }
    await using host = await connect(gateway, {
      capabilities,
      revision: '2025-06-18',
      ...(isBridge && { server: 'a', path: '/servers/a/mcp' }),
    })
    const answer = Promise.withResolvers<Message>()
    const a = gateway.fake('a').on('tools/call', async (turn) => {
      answer.resolve(await turn.ask('elicitation/create', { message: 'Go', mode: 'url', url: 'https://example.com' }))
      return { content: [] }
    })
    host.answer('elicitation/create', () => ({ action: 'accept' }))
    await host.call('tools/call', { name: isBridge ? 'echo' : 'a__echo' })
    expect((await answer.promise).error?.code).toBe(code)
    expect((await a.until('tools/call')).connection.declared).toEqual({ elicitation })
  })
})

describe('3.1 a host that comes before its servers are known', () => {
  const HOUR_MS = 3_600_000
  const slow = (released: Promise<unknown>) =>
    fake.of({
      tools: ['x'],
      instructions: 'Use it well.',
      on: { 'tools/list': () => released.then(() => ({ tools: [], ttlMs: 0, cacheScope: 'private', resultType: 'complete' })) },
    })
  test.each([legacyPipe, modernPipe])(
    'on $name it is told the instructions of a server that is there soon',
    async ({ connect }) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      await using gateway = await startGateway({
        servers: { a: slow(released) },
        gateway: { handshakeBudgetMs: HOUR_MS },
        early: true,
      })
      const connecting = connect(gateway)
      await gateway.fake('a').until('tools/list')
      release()
      await using host = await connecting
      expect(host.welcome['instructions']).toContain('Use it well.')
    },
  )
  test.each([
    { row: legacyPipe, handshakeBudgetMs: 10, why: 'once timeouts.handshake_budget is over' },
    { row: modernPipe, handshakeBudgetMs: 10, why: 'once timeouts.handshake_budget is over' },
    { row: legacyPipe, handshakeBudgetMs: 0, why: 'at once where that is 0s' },
    { row: legacyHttp, handshakeBudgetMs: HOUR_MS, why: 'at once' },
    { row: modernHttp, handshakeBudgetMs: HOUR_MS, why: 'at once' },
  ])('over $row.name it is answered $why', async ({ row, handshakeBudgetMs }) => {
    await using gateway = await startGateway({
      servers: { a: slow(fake.never()) },
      gateway: { handshakeBudgetMs },
      early: true,
    })
    await using host = await row.connect(gateway)
    expect(host.welcome['instructions'] ?? '').not.toContain('Use it well.')
  })
})
