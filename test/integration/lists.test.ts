/** The four lists: complete, in order, and never lost because of one server (BRIDGING 3.18, 3.19; 8.6, 8.8). */
import { createServer } from 'node:http'
import { ListPromptsResultSchema, ListResourcesResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp, modernPipe, toolNames } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { listening } from '../support/listening.ts'

/** A server that pages its tools: `pages` by cursor, the first under no cursor. */
const paged = (kind: FakeSpec['kind'], pages: ReadonlyMap<string | undefined, JsonMap>): FakeSpec =>
  fake.of({
    ...(kind !== undefined && { kind }),
    tools: ['x'],
    on: { 'tools/list': ({ params }) => pages.get(params['cursor'] as string | undefined) ?? { tools: [] } },
  })
const tool = (name: string): JsonMap => ({ name, inputSchema: { type: 'object' } })

describe.each(everyFakeKind)('from a %s server', (kind) => {
  test('B116 pages are followed until there is no cursor; an empty one is a cursor', async () => {
    const pages = new Map<string | undefined, JsonMap>([
      [undefined, { tools: [tool('one')], nextCursor: '' }],
      ['', { tools: [tool('two')], nextCursor: 'three' }],
      ['three', { tools: [tool('three')] }],
    ])
    await using gateway = await startGateway({ servers: { a: paged(kind, pages) } })
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toEqual(['a__one', 'a__two', 'a__three'])
  })
  test('B118 a repeated cursor ends the reading; what was read is served', async () => {
    const pages = new Map<string | undefined, JsonMap>([
      [undefined, { tools: [tool('one')], nextCursor: 'again' }],
      ['again', { tools: [tool('two')], nextCursor: 'again' }],
    ])
    await using gateway = await startGateway({ servers: { a: paged(kind, pages) } })
    await using host = await modernHttp.connect(gateway)
    expect((await toolNames(host)).map(String).toSorted()).toEqual(['a__one', 'a__two'])
    const asked = gateway.fake('a').all('tools/list')
    await gateway.running.fleet.get('a')!.offers.read()
    const cursors = gateway.fake('a').all('tools/list').slice(asked.length)
    expect(cursors.map(({ params }) => params['cursor'])).toEqual([undefined, 'again'])
  })
  test('B119 cursors of the server stay between it and us, whatever the pages of the host', async () => {
    const pages = new Map<string | undefined, JsonMap>([
      [undefined, { tools: [tool('one')], nextCursor: 'cursor-of-the-server' }],
      ['cursor-of-the-server', { tools: [tool('two'), tool('three')] }],
    ])
    await using gateway = await startGateway({ servers: { a: paged(kind, pages) }, gateway: { pageMaxItems: 1 } })
    await using host = await modernHttp.connect(gateway)
    const first = await host.call('tools/list')
    expect(first['nextCursor']).toEqual(expect.any(String))
    expect(JSON.stringify(first)).not.toContain('cursor-of-the-server')
    await expect(host.call('tools/list', { cursor: 'cursor-of-the-server' })).rejects.toMatchObject({ code: -32602 })
  })
  test('B113 a list the server does not know is empty, the others stay', async () => {
    const missing = { 'resources/templates/list': undefined, 'prompts/list': undefined }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['x'], resources: ['file:///r'], prompts: ['p'] }) },
      early: true,
    })
    for (const method of Object.keys(missing)) gateway.fake('a').on(method, (turn) => turn.fail(-32601, 'Method not found'))
    await gateway.ready()
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toEqual(['a__x'])
    expect((await host.call('prompts/list'))['prompts']).toEqual([])
    expect((await host.call('resources/templates/list'))['resourceTemplates']).toEqual([])
    expect((await host.call('resources/list'))['resources']).toHaveLength(1)
  })
})

test.each([
  ['tools/list', 'tools', 'tools'],
  ['prompts/list', 'prompts', 'prompts'],
  ['resources/list', 'resources', 'resources'],
  ['resources/templates/list', 'resourceTemplates', 'resources'],
] as const)('B113 %s that the server no longer knows is empty, not the list before', async (method, member, changed) => {
  const offer = { tools: ['x'], prompts: ['p'], resources: ['file:///r'], templates: ['file:///{t}'] }
  await using gateway = await startGateway({ servers: { a: fake.of(offer) } })
  await using host = await legacyHttp.connect(gateway)
  expect((await host.call(method))[member]).toHaveLength(1)
  gateway.fake('a').on(method, (turn) => turn.fail(-32601, 'Method not found'))
  gateway.fake('a').changed(changed)
  await host.heard.until((message) => message.method === `notifications/${changed}/list_changed`)
  expect((await host.call(method))[member]).toEqual([])
  expect(serverStatuses(gateway.running)[0]!.warnings).toEqual([])
})

describe.each(everyTransport)('over $name', ({ connect }) => {
  test('B114 B115 servers come in configuration order, the same bytes each time', async () => {
    await using gateway = await startGateway({
      servers: { z: fake.offering('b', 'a'), m: fake.of({ kind: 'modern http', tools: ['b', 'a'] }), a: fake.offering('x') },
    })
    await using host = await connect(gateway)
    expect(await toolNames(host)).toEqual(['z__b', 'z__a', 'm__b', 'm__a', 'a__x'])
    const [first, second] = await Promise.all([host.begin('tools/list', {}, { id: 'i' }).raw, connect(gateway)])
    await using other = second
    const entries = (raw: string): string => raw.slice(raw.indexOf('"tools":'), raw.lastIndexOf(']'))
    expect(entries(await other.begin('tools/list', {}, { id: 'j' }).raw)).toBe(entries(first))
  })
  test('B117 B119 pages have cursors of our own; others are answered -32602', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.offering('a', 'b', 'c', 'd', 'e') },
      gateway: { pageMaxItems: 2 },
    })
    await using host = await connect(gateway)
    const found: unknown[] = []
    let cursor: unknown
    do {
      const page = await host.call('tools/list', cursor === undefined ? {} : { cursor })
      found.push(...(page['tools'] as JsonMap[]).map(({ name }) => name))
      cursor = page['nextCursor']
    } while (cursor !== undefined)
    expect(found).toEqual(['a__a', 'a__b', 'a__c', 'a__d', 'a__e'])
    const { nextCursor } = await host.call('tools/list')
    for (const [method, wrong] of [
      ['tools/list', 'nonsense'],
      ['tools/list', 7],
      ['tools/list', `${String(nextCursor)}x`],
      ['prompts/list', nextCursor],
    ] as const)
      await expect(host.call(method, { cursor: wrong })).rejects.toMatchObject({ code: -32602 })
    // What some hosts write for none (B282).
    for (const cursor of ['', null])
      expect(await host.call('tools/list', { cursor })).toMatchObject({ tools: [{ name: 'a__a' }, {}] })
  })
  test('B120 a server that fails is left out, the list is answered', async () => {
    await using gateway = await startGateway({
      servers: {
        bad: fake.of({ tools: ['x'], on: { initialize: (turn) => turn.fail(-32603, 'broken') } }),
        good: fake.offering('y'),
      },
      // Not waited for: it has failed.
      gateway: { listBudgetMs: 600_000 },
      early: true,
    })
    await using host = await connect(gateway)
    expect(await toolNames(host)).toEqual(['good__y'])
  })
})

test.each<[what: string, answer: Handle]>([
  ['an error', (turn) => turn.fail(-32603, 'broken')],
  ['something that is no list', () => ({ prompts: 'many' })],
  ['no result of this protocol', () => ({ resultType: 'task' })],
])('B120 RELIABILITY 1: a list that answers %s leaves out that list only', async (_, answer) => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ kind: 'modern http', tools: ['x'], prompts: ['p'], on: { 'prompts/list': answer } }),
      b: fake.of({ prompts: ['q'] }),
    },
    gateway: { listBudgetMs: 600_000 },
    early: true,
  })
  await using host = await modernHttp.connect(gateway)
  expect(await toolNames(host)).toEqual(['a__x'])
  expect(((await host.call('prompts/list'))['prompts'] as JsonMap[]).map(({ name }) => name)).toEqual(['b__q'])
})

test.each(everyFakeKind)(
  'B120 RELIABILITY 1: definitions of a %s server that break the schema take no list from a strict host',
  async (kind) => {
    const schema = { type: 'object' }
    const tools = [
      { name: 'none', inputSchema: null },
      { name: 'list', inputSchema: [] },
      { name: 'untyped', inputSchema: {} },
      { name: 'nulls', inputSchema: { type: 'object', required: null }, outputSchema: null, annotations: null },
      { name: 'hints', inputSchema: schema, annotations: { readOnlyHint: 1 } },
    ]
    const resources = [{ uri: 'x:nameless' }, { uri: 'x:r', name: 'r', description: null }]
    const sick = fake.of({ kind, tools, resources, prompts: [{ name: 'p', arguments: null }] })
    await using gateway = await startGateway({
      servers: { sick, good: fake.of({ tools: ['y'], resources: ['x:g'], prompts: ['q'] }) },
    })
    await using host = await legacyHttp.connect(gateway)
    const found = ListToolsResultSchema.parse(await host.call('tools/list')).tools
    expect(found.map(({ name }) => name)).toEqual(['sick__untyped', 'sick__nulls', 'sick__hints', 'good__y'])
    expect(found.every(({ inputSchema }) => inputSchema.type === 'object')).toBe(true)
    const { resources: listed } = ListResourcesResultSchema.parse(await host.call('resources/list'))
    expect(listed.map(({ uri }) => uri)).toEqual(['sick+x:r', 'good+x:g'])
    const { prompts } = ListPromptsResultSchema.parse(await host.call('prompts/list'))
    expect(prompts.map(({ name }) => name)).toEqual(['sick__p', 'good__q'])
    const [status] = serverStatuses(gateway.running)
    expect(status?.leftOut.map(({ name, reason }) => [name, reason])).toEqual([
      ['none', 'inputSchema is null'],
      ['list', 'inputSchema is not an object'],
      ['x:nameless', 'has no name'],
    ])
    expect(status?.findings.map(({ note }) => note)).toEqual(['annotations.readOnlyHint is not true or false; served without'])
    await gateway.log.until(
      ({ text, facts }) => text.includes('left out') && facts['first'] === 'tools "none": inputSchema is null',
    )
  },
)

test('7.1 a list fails only if every server has failed and nothing is stored', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ on: { initialize: () => ({ protocolVersion: '1999-01-01', capabilities: {} }) } }) },
  })
  await using host = await modernHttp.connect(gateway)
  await expect(host.call('tools/list')).rejects.toMatchObject({
    code: -32603,
    data: { 'dev.trunkline/gateway': { downstream: 'a', kind: 'version' } },
  })
})

test('B220 a tool of a modern HTTP server whose x-mcp-header breaks the rules is left out, the others stay', async () => {
  const annotated = (name: string, annotation: unknown, type = 'string'): JsonMap => ({
    name,
    inputSchema: { type: 'object', properties: { p: { type, 'x-mcp-header': annotation } } },
  })
  const tools = [
    annotated('good', 'Region'),
    annotated('empty', ''),
    annotated('space', 'a b'),
    annotated('number', 'N', 'number'),
  ]
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools }), b: fake.of({ kind: 'modern stdio', tools }) },
  })
  await using host = await modernHttp.connect(gateway)
  const listed = (await host.call('tools/list'))['tools'] as JsonMap[]
  expect(listed.map(({ name }) => name)).toEqual(['a__good', 'b__good', 'b__empty', 'b__space', 'b__number'])
  expect(listed.filter((entry) => JSON.stringify(entry).includes('x-mcp-header')).map(({ name }) => name)).toEqual([
    'a__good',
    'b__good',
  ])
})

test.each([modernHttp, modernPipe])(
  'B220 at a bridge such a tool is left out as well, and a bridge without such tools relays lists, for $name',
  async ({ connect }) => {
    const annotated = (name: string, annotation: string): JsonMap => ({
      name,
      inputSchema: { type: 'object', properties: { p: { type: 'string', 'x-mcp-header': annotation } } },
    })
    const servers = {
      a: fake.of({ kind: 'modern http', tools: [annotated('good', 'Region'), annotated('empty', '')] }),
      b: fake.of({ kind: 'modern http', tools: [annotated('z', 'Region'), annotated('y', 'Zone')] }),
    }
    await using gateway = await startGateway({ servers })
    const namesAt = async (server: string): Promise<unknown[]> => {
      await using host = await connect(gateway, { server, path: `/servers/${server}/mcp` })
      return ((await host.call('tools/list'))['tools'] as JsonMap[]).map(({ name }) => name)
    }
    expect(await namesAt('a')).toEqual(['good'])
    expect(await namesAt('b')).toEqual(['z', 'y'])
  },
)

test('B016 B018 B019 unknown members and numbers of definitions reach the host byte for byte', async () => {
  const raw =
    '{"name":"x","inputSchema":{"type":"object","properties":{"n":{"const":12345678901234567890,"default":1.0,"e":1e400,"z":-0}},"__proto__":{"a":1}},"vendor":{"keep":[1.50]},"annotations":{"readOnlyHint":true,"x":1},"icons":[{"src":"http://h/i.png"}],"title":"T"}'
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['x'],
        on: { 'tools/list': (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{"tools":[${raw}]}}`) },
      }),
    },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.begin('tools/list').raw).toContain(`[${raw.replace('"name":"x"', '"name":"a__x"')}]`)
})

test('B021 a $ref to the network is passed on as it stands, and nobody fetches it', async () => {
  let fetched = 0
  const server = createServer((_, response) => response.end(String(++fetched)))
  await using opened = await listening(server)
  const $ref = `${opened.url}/schema.json`
  const inputSchema = { type: 'object', $schema: $ref, properties: { x: { $ref } }, $dynamicRef: $ref }
  const refers = { name: 'x', inputSchema, outputSchema: { type: 'array', items: { $ref } } }
  const results = { content: [], structuredContent: { x: 1 } }
  {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: [refers], on: { 'tools/call': () => results } }) },
    })
    for (const [transport, outputSchema] of [
      [modernHttp, refers.outputSchema],
      [legacyHttp, expect.objectContaining({ properties: { result: refers.outputSchema } }) as unknown],
    ] as const) {
      await using host = await transport.connect(gateway)
      expect((await host.call('tools/list'))['tools']).toEqual([{ name: 'a__x', inputSchema, outputSchema }])
      expect(await host.call('tools/call', { name: 'a__x', arguments: { x: 1 } })).toMatchObject(
        transport === modernHttp ? results : { structuredContent: { result: results.structuredContent } },
      )
    }
  }
  expect(fetched).toBe(0)
})

test.each([
  [
    { ttlMs: 20_000, cacheScope: 'private' },
    { ttlMs: 50_000, cacheScope: 'public' },
  ],
  [
    { ttlMs: 50_000, cacheScope: 'public' },
    { ttlMs: 20_000, cacheScope: 'private' },
  ],
])('B153 B154 a list whose pages say %j and %j has the least of both', async (first, second) => {
  const pages = new Map<string | undefined, JsonMap>([
    [undefined, { tools: [tool('one')], nextCursor: 'more', ...first }],
    ['more', { tools: [tool('two')], ...second }],
  ])
  await using gateway = await startGateway({ servers: { a: paged('modern http', pages) } })
  await using host = await modernHttp.connect(gateway)
  const listed = await host.call('tools/list')
  expect(listed['ttlMs']).toBeLessThanOrEqual(20_000)
  expect(listed['cacheScope']).toBe('private')
})

test('B154 B149 ttlMs is the least of what remains, cacheScope the most private', async () => {
  const server = (ttlMs: number, cacheScope: string): FakeSpec =>
    fake.of({ kind: 'modern http', tools: ['x'], on: { 'tools/list': () => ({ tools: [tool('x')], ttlMs, cacheScope }) } })
  await using both = await startGateway({ servers: { a: server(50_000, 'public'), b: server(20_000, 'private') } })
  await using host = await modernHttp.connect(both)
  const merged = await host.call('tools/list')
  expect(merged['ttlMs']).toBeLessThanOrEqual(20_000)
  expect(merged['ttlMs']).toBeGreaterThan(10_000)
  expect(merged['cacheScope']).toBe('private')
  await using negative = await startGateway({ servers: { a: server(-5, 'public') } })
  await using second = await modernHttp.connect(negative)
  const listed = await second.call('tools/list')
  expect(listed).toMatchObject({ cacheScope: 'public' })
  expect(listed['ttlMs'], 'as long as it is not read again: cache.fresh').toBeLessThanOrEqual(1_000)
})

test('B153 all pages of a list have one cacheScope', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ kind: 'modern http', tools: ['x'] }),
      b: fake.of({
        kind: 'modern http',
        tools: ['y'],
        on: { 'tools/list': () => ({ tools: [tool('y')], ttlMs: 1, cacheScope: 'private' }) },
      }),
    },
    gateway: { pageMaxItems: 1 },
  })
  await using host = await modernHttp.connect(gateway)
  const first = await host.call('tools/list')
  const second = await host.call('tools/list', { cursor: first['nextCursor'] })
  expect([first['cacheScope'], second['cacheScope']]).toEqual(['private', 'private'])
})

test('B149 hints of a read pass from a modern server and are none from a legacy one', async () => {
  await using gateway = await startGateway({
    servers: {
      m: fake.of({
        kind: 'modern http',
        resources: ['m:///r'],
        on: { 'resources/read': () => ({ contents: [{ uri: 'm:///r', text: '' }], ttlMs: 1234, cacheScope: 'public' }) },
      }),
      l: fake.of({ resources: ['l:///r'] }),
    },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('resources/read', { uri: 'm+m:///r' })).toMatchObject({ ttlMs: 1234, cacheScope: 'public' })
  expect(await host.call('resources/read', { uri: 'l+l:///r' })).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
})

test('reads are never answered from a cache', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: ['m:///r'] }) } })
  await using host = await modernHttp.connect(gateway)
  for (let n = 0; n < 3; n++) await host.call('resources/read', { uri: 'a+m:///r' })
  expect(gateway.fake('a').all('resources/read')).toHaveLength(3)
})

describe('completion', () => {
  test('B111 at most a hundred values are returned, and hasMore says so', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ prompts: ['p'] }) } })
    await using host = await modernHttp.connect(gateway)
    const values = Array.from({ length: 150 }, (_, n) => String(n))
    gateway.fake('a').on('completion/complete', () => ({ completion: { values, total: 150 } }))
    const ask = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } }
    const { completion } = await host.call('completion/complete', ask)
    expect(completion).toEqual({ values: values.slice(0, 100), total: 150, hasMore: true })
  })
  test.each([99, 100])('B111 %i values are returned as they are', async (count) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ prompts: ['p'] }) } })
    await using host = await modernHttp.connect(gateway)
    const completion = { values: Array.from({ length: count }, (_, n) => String(n)) }
    gateway.fake('a').on('completion/complete', () => ({ completion }))
    const ask = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } }
    expect(await host.call('completion/complete', ask)).toMatchObject({ completion })
    expect((await host.call('completion/complete', ask))['completion']).toEqual(completion)
  })
  test('B112 a server of 2024-11-05 without completion is asked, and its -32601 is an empty answer', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ prompts: ['p'], revision: '2024-11-05', capabilities: { prompts: {} } }) },
    })
    await using host = await legacyHttp.connect(gateway)
    gateway.fake('a').on('completion/complete', (turn) => turn.fail(-32601, 'Method not found'))
    const ask = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' }, context: { arguments: {} } }
    expect(await host.call('completion/complete', ask)).toMatchObject({ completion: { values: [] } })
    expect((await gateway.fake('a').until('completion/complete')).params).not.toHaveProperty('context')
  })
  test.each(everyFakeKind)(
    'B112 3.1 a later %s server without completion is asked, and its -32601 is an empty answer',
    async (kind) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind, prompts: ['p'], capabilities: { prompts: {} } }) },
      })
      const ask = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } }
      gateway.fake('a').on('completion/complete', (turn) => turn.fail(-32601, 'Method not found'))
      for (const { connect } of [legacyHttp, modernHttp]) {
        await using host = await connect(gateway)
        expect(await host.call('completion/complete', ask)).toMatchObject({ completion: { values: [] } })
      }
      await gateway.fake('a').until('completion/complete')
    },
  )
})

test.each(everyTransport)('B105 over $name a tool result with isError reaches the host as it is', async ({ connect }) => {
  await using gateway = await startGateway({
    servers: { a: fake.offering('x'), b: fake.of({ kind: 'modern http', tools: ['x'] }) },
  })
  await using host = await connect(gateway)
  const members = '"content":[{"type":"text","text":"n\\u006f"}],"isError":true,"vendor":{"a":1.0}'
  gateway.fake('a').on('tools/call', (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{${members}}}`))
  gateway
    .fake('b')
    .on('tools/call', (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{"resultType":"complete",${members}}}`))
  for (const name of ['a__x', 'b__x']) expect(await host.begin('tools/call', { name }).raw).toContain(members)
})

test('B103 B282 3.4 empty contents for what no list names are not found, for what is listed they pass', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ resources: ['a:///listed'] }) },
  })
  await using host = await modernHttp.connect(gateway)
  for (const contents of [[], null]) {
    gateway.fake('a').on('resources/read', () => ({ contents }))
    expect(await host.call('resources/read', { uri: 'a+a:///listed' })).toMatchObject({ contents })
    await expect(host.call('resources/read', { uri: 'a+a:///other' })).rejects.toMatchObject({ code: -32602 })
  }
})

test('B103 3.4 empty contents of a modern server pass whatever it lists, since it has an error for what does not exist', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: ['a:///listed'] }) } })
  gateway.fake('a').on('resources/read', () => ({ contents: [] }))
  for (const { connect } of [modernHttp, legacyHttp]) {
    await using host = await connect(gateway)
    expect(await host.call('resources/read', { uri: 'a+a:///other' })).toMatchObject({ contents: [] })
  }
})

test('B103 3.4 empty contents pass for what a template of their server matches, and for nothing else of a server with templates', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ templates: ['a:///t/{x}'] }),
      b: fake.of({ resources: ['a:///listed'] }),
      c: fake.of({ templates: ['{+any}'] }),
    },
  })
  for (const key of ['a', 'c']) gateway.fake(key).on('resources/read', () => ({ contents: [] }))
  for (const [transport, code] of [
    [modernHttp, -32602],
    [legacyHttp, -32002],
  ] as const) {
    await using host = await transport.connect(gateway)
    for (const uri of ['a+a:///t/1', 'c+x:///1'])
      expect(await host.call('resources/read', { uri })).toMatchObject({ contents: [] })
    for (const uri of ['a+a:///other', 'a+a:///listed'])
      await expect(host.call('resources/read', { uri })).rejects.toMatchObject({ code, data: { uri } })
  }
})
