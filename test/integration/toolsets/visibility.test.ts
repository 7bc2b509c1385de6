/** One predicate for lists, calls and all that follows from them (DECISIONS 5; B260, B265, T-03, T-30). */
import { describe, expect, test } from 'vitest'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import type { EndpointPath } from '../../../src/rpc/call.ts'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { everyLegacyTransport, everyTransport, legacyHttp, legacyPipe, modernHttp, modernPipe } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { KEY, MODERN, request } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { identityOf, toolsetOf } from '../../support/toolsets.ts'

const REVIEW = toolsetOf(
  { tools: ['a__read*', 'b__*'], resources: ['a+file:///open/**'], prompts: ['a__ask'] },
  { name: 'review', description: 'Read only.' },
)
const A = fake.of({
  tools: ['read_file', 'delete_file'],
  prompts: ['ask', 'tell'],
  resources: ['file:///open/one', 'file:///shut/two'],
  templates: ['db://{table}/{id}'],
  instructions: 'Use a.',
})
const start = (toolsets: readonly ToolsetOptions[] = [REVIEW], more: Record<string, FakeSpec> = {}): Promise<TestGateway> =>
  startGateway({
    servers: { a: A, b: fake.offering('search'), c: fake.of({ tools: ['secret'], instructions: 'Use c.' }), ...more },
    gateway: { toolsets },
  })

const listed = async (host: Host, method: string, list: string, field: string): Promise<unknown[]> =>
  ((await host.call(method))[list] as JsonMap[]).map((entry) => entry[field])
const tools = (host: Host): Promise<unknown[]> => listed(host, 'tools/list', 'tools', 'name')

describe.each(everyTransport)('a toolset over $name', ({ connect, era }) => {
  const unknown = { code: -32602 }
  const notFound = { code: era === 'modern' ? -32602 : -32002 }

  test('lists what it holds and nothing else, and says so', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { toolset: 'review' })
    expect(await tools(host)).toEqual(['a__read_file', 'b__search'])
    expect(await listed(host, 'prompts/list', 'prompts', 'name')).toEqual(['a__ask'])
    expect(await listed(host, 'resources/list', 'resources', 'uri')).toEqual(['a+file:///open/one'])
    expect(await listed(host, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')).toEqual([])
    expect(host.welcome['instructions']).toMatch(/^Read only\.\n\n## A\n[^]*Use a\.$/)
  })

  test('what it hides is unknown to calls, prompts, reads and completion, and reaches no server', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { toolset: 'review' })
    for (const name of ['a__delete_file', 'c__secret', 'delete_file', 'a__nope'])
      await expect(host.call('tools/call', { name })).rejects.toMatchObject({ ...unknown, message: `Unknown tool: ${name}` })
    await expect(host.call('prompts/get', { name: 'a__tell' })).rejects.toMatchObject(unknown)
    const hidden = ['a+file:///shut/two', 'file:///shut/two', 'a+db://users/7', 'db://users/7', 'c+file:///x']
    const beside = ['a+file:///open/../shut/two', 'a+file:///open/%2e%2e/shut/two', 'a+file:///open/..%5cshut/two']
    for (const uri of [...hidden, ...beside]) await expect(host.call('resources/read', { uri })).rejects.toMatchObject(notFound)
    const argument = { name: 'x', value: '' }
    for (const ref of [
      { type: 'ref/prompt', name: 'a__tell' },
      { type: 'ref/resource', uri: 'a+db://{table}/{id}' },
    ])
      await expect(host.call('completion/complete', { ref, argument })).rejects.toMatchObject(unknown)
    for (const key of ['a', 'b', 'c']) expect(gateway.fake(key).received).toEqual([])
  })

  test('what it shows can be called, read and completed', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { toolset: 'review' })
    await host.call('tools/call', { name: 'a__read_file' })
    await host.call('prompts/get', { name: 'a__ask' })
    await host.call('completion/complete', { ref: { type: 'ref/prompt', name: 'a__ask' }, argument: { name: 'x', value: '' } })
    for (const uri of ['a+file:///open/one', 'a+file:///open/unlisted', 'file:///open/one'])
      expect(await host.call('resources/read', { uri })).toMatchObject({ contents: [{ uri }] })
  })

  test('without a name a host gets default where there is one, else everything', async () => {
    await using gateway = await start([toolsetOf({ tools: ['b__*'] }, { name: 'default' })])
    await using host = await connect(gateway)
    expect(await tools(host)).toEqual(['b__search'])
    await expect(host.call('tools/call', { name: 'a__read_file' })).rejects.toMatchObject(unknown)
    await using open = await start()
    await using other = await connect(open)
    expect(await tools(other)).toHaveLength(4)
  })
})

test.each(everyLegacyTransport)('what it hides cannot be subscribed to over $name', async ({ connect }) => {
  await using gateway = await start()
  await using host = await connect(gateway, { toolset: 'review' })
  await host.call('resources/subscribe', { uri: 'a+file:///open/one' })
  await expect(host.call('resources/subscribe', { uri: 'a+file:///shut/two' })).rejects.toMatchObject({ code: -32002 })
  gateway.fake('a').updated('file:///shut/two')
  gateway.fake('a').updated('file:///open/one')
  const isUpdate = ({ method }: { method?: string }): boolean => method === 'notifications/resources/updated'
  await host.heard.until(isUpdate)
  expect(host.heard.entries.filter(isUpdate).map(({ params }) => params)).toEqual([{ uri: 'a+file:///open/one' }])
})

test('T-03 an unknown toolset, one of chance and a path of chance are all 404 with an empty body, in both eras', async () => {
  await using gateway = await start()
  const random = `t${Math.random().toString(36).slice(2)}`
  const paths = [random, 'reviews', 'REVIEW', 'review/', 'review/x', '%72eview', '__proto__', 'default', 'review review', '', '.']
  const bodies = [
    { body: request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }), headers: {} },
    {
      body: request(1, 'tools/list', { _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } }),
      headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' },
    },
  ]
  for (const options of bodies)
    for (const path of [...paths.map((name) => `/mcp/${name}`), `/${random}`, `/servers/${random}/mcp`, `/messages/${random}`]) {
      const reply = await send(new URL(path, gateway.url), options)
      expect([path, reply.status, await reply.body]).toEqual([path, 404, ''])
    }
  const stream = await send(new URL(`/sse/${random}`, gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
  expect([stream.status, await stream.body]).toEqual([404, ''])
})

test('a legacy session belongs to the toolset it was opened at', async () => {
  await using gateway = await start([REVIEW, toolsetOf({}, { name: 'ops' })])
  await using host = await legacyHttp.connect(gateway, { toolset: 'review' })
  const headers = (host as unknown as { headers(): Record<string, string> }).headers()
  for (const [path, status] of [
    ['/mcp/review', 200],
    ['/mcp/ops', 404],
    ['/mcp', 404],
  ] as const)
    expect((await send(new URL(path, gateway.url), { body: request(9, 'tools/list'), headers })).status).toBe(status)
})

test('a stream of HTTP+SSE has its messages beside its own toolset, and nowhere else', async () => {
  await using gateway = await start([REVIEW, toolsetOf({}, { name: 'ops' })])
  const stream = await send(new URL('/sse/review', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
  const { data } = await stream.events.until(({ event }) => event === 'endpoint')
  expect(data).toMatch(/^\/messages\/review\?sessionId=/)
  const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
  for (const path of [data.replace('/review', ''), data.replace('review', 'ops')])
    expect((await send(new URL(path, gateway.url), { body })).status).toBe(404)
  expect((await send(new URL(data, gateway.url), { body })).status).toBe(202)
  stream.close()
})

test('B260 /servers/<key>/mcp shows and routes only what the toolsets allow of that server, else it is 404', async () => {
  await using gateway = await start([REVIEW, { ...REVIEW, name: 'default' }])
  for (const { connect } of [legacyHttp, modernHttp]) {
    await using host = await connect(gateway, { path: '/servers/a/mcp' })
    expect(await tools(host)).toEqual(['read_file'])
    expect(await listed(host, 'resources/list', 'resources', 'uri')).toEqual(['file:///open/one'])
    await host.call('tools/call', { name: 'read_file' })
    await expect(host.call('tools/call', { name: 'delete_file' })).rejects.toMatchObject({ code: -32602 })
    await host.call('resources/read', { uri: 'file:///open/three' })
    for (const uri of ['file:///shut/two', 'db://users/7', 'other://any'])
      await expect(host.call('resources/read', { uri })).rejects.toThrow(/not found/)
  }
  expect(
    gateway
      .fake('a')
      .all('resources/read')
      .map(({ params }) => params['uri']),
  ).toEqual(['file:///open/three', 'file:///open/three'])
  const reply = await send(new URL('/servers/c/mcp', gateway.url), { body: request(1, 'initialize', {}) })
  expect([reply.status, await reply.body]).toEqual([404, ''])
})

test('a server whose key is also the name of a toolset has a path of its own', async () => {
  await using gateway = await start([toolsetOf({ tools: ['b__*'] }, { name: 'a' })])
  await using asToolset = await modernHttp.connect(gateway, { path: '/mcp/a' })
  await using asServer = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
  expect(await tools(asToolset)).toEqual(['b__search'])
  expect(await tools(asServer)).toEqual(['read_file', 'delete_file'])
})

test('B265 a bare name or URI is looked for within the toolset only', async () => {
  const app = (name: string): JsonMap => ({ name, inputSchema: { type: 'object' }, _meta: { ui: { resourceUri: 'ui://panel' } } })
  const more = { d: fake.of({ tools: [app('open'), app('wipe')], resources: ['ui://panel'] }) }
  await using gateway = await start([toolsetOf({ tools: ['d__open'] }, { name: 'apps' }), REVIEW], more)
  const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }
  await using host = await modernHttp.connect(gateway, { toolset: 'apps', capabilities })
  await host.call('tools/call', { name: 'open' })
  // The template of a tool that is shown can be read, though no list of the toolset names it.
  expect(await host.call('resources/read', { uri: 'ui://~d/panel' })).toMatchObject({ contents: [{ uri: 'ui://~d/panel' }] })
  await expect(host.call('tools/call', { name: 'wipe' })).rejects.toMatchObject({ code: -32602 })
  await using other = await modernHttp.connect(gateway, { toolset: 'review', capabilities })
  for (const [method, params] of [
    ['tools/call', { name: 'open' }],
    ['resources/read', { uri: 'ui://panel' }],
  ] as const)
    await expect(other.call(method, params)).rejects.toMatchObject({ code: -32602 })
  expect(gateway.fake('d').all('tools/call')).toHaveLength(1)
})

test('a retry cannot carry a call into a toolset that hides the tool', async () => {
  const asks = { resultType: 'input_required', inputRequests: {}, requestState: 's' }
  const more = { d: fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': () => asks } }) }
  await using gateway = await start([REVIEW, toolsetOf({}, { name: 'ops' })], more)
  await using ops = await modernHttp.connect(gateway, { toolset: 'ops' })
  await using review = await modernHttp.connect(gateway, { toolset: 'review' })
  const { requestState } = await ops.call('tools/call', { name: 'd__t' })
  await expect(review.call('tools/call', { name: 'd__t', requestState })).rejects.toMatchObject({ code: -32602 })
  expect(gateway.fake('d').all('tools/call')).toHaveLength(1)
})

test('a task of a server that the toolset hides does not exist there', async () => {
  const TASKS = 'io.modelcontextprotocol/tasks'
  const task = { taskId: 'orig', status: 'working', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: 60_000 }
  const d = fake.of({
    kind: 'modern http',
    tools: ['work'],
    capabilities: { tools: {}, extensions: { [TASKS]: {} } },
    on: { 'tools/call': () => ({ resultType: 'task', ...task }), 'tasks/get': () => task },
  })
  await using gateway = await start([REVIEW, toolsetOf({}, { name: 'ops' })], { d })
  const capabilities = { extensions: { [TASKS]: {} } }
  await using ops = await modernHttp.connect(gateway, { toolset: 'ops', capabilities })
  await using review = await modernHttp.connect(gateway, { toolset: 'review', capabilities })
  const { taskId } = await ops.call('tools/call', { name: 'd__work' })
  expect(await ops.call('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  for (const method of ['tasks/get', 'tasks/cancel'])
    await expect(review.call(method, { taskId })).rejects.toMatchObject({ code: -32602 })
  expect(gateway.fake('d').all('tasks/get')).toHaveLength(1)
})

describe('by credential', () => {
  const OPS = toolsetOf({}, { name: 'ops' })
  const toolsOf = async (gateway: TestGateway, options: Parameters<typeof modernPipe.connect>[1]): Promise<unknown[]> => {
    await using host = await modernPipe.connect(gateway, options)
    return await tools(host)
  }

  test('the first of its toolsets is what it gets unasked, the others at their paths, and no other', async () => {
    await using gateway = await start([REVIEW, OPS, toolsetOf({ servers: ['c'] }, { name: 'default' })])
    const identity = identityOf('ana', { toolsets: ['review', 'ops'] })
    expect(await toolsOf(gateway, { identity })).toEqual(['a__read_file', 'b__search'])
    expect(await toolsOf(gateway, { identity, toolset: 'ops' })).toHaveLength(4)
    const scope = (path: EndpointPath) => gateway.running.context.core.scopeFor(identity, path)
    for (const path of [{ toolset: 'default' }, { toolset: 'nope' }, { server: 'nope' }]) expect(scope(path)).toBeUndefined()
    expect(scope({})).toBe(scope({ toolset: 'review' }))
  })

  test('a credential without toolsets of the configuration gets nothing, never everything', async () => {
    await using gateway = await start()
    const { core } = gateway.running.context
    for (const toolsets of [[], ['gone'], ['gone', 'review']]) {
      expect(core.scopeFor(identityOf('ana', { toolsets }), {})).toBeUndefined()
    }
    for (const toolsets of [[], ['gone']]) expect(core.scopeFor(identityOf('ana', { toolsets }), { server: 'a' })).toBeUndefined()
  })

  test('B260 at the path of one server all toolsets of a credential count, and nothing beside them', async () => {
    const one = toolsetOf({ tools: ['a__read*'] }, { name: 'one' })
    const two = toolsetOf({ tools: ['a__delete*', 'c__*'] }, { name: 'two' })
    await using gateway = await start([one, two, OPS])
    const path = { server: 'a' }
    const { core } = gateway.running.context
    for (const [toolsets, names] of [
      [['one'], ['read_file']],
      [
        ['one', 'two'],
        ['read_file', 'delete_file'],
      ],
    ] as const) {
      const scope = core.scopeFor(identityOf('ana', { toolsets }), path)!
      const { rows } = gateway.running.gateway.feed.viewOf({ scope, revision: '2026-07-28' }).list('tools')
      expect(rows.map(({ exposed }) => exposed)).toEqual(names)
    }
    expect(core.scopeFor(identityOf('ana', { toolsets: ['one'] }), { server: 'c' })).toBeUndefined()
  })

  test.each([
    ['part of the server', identityOf('ana', { toolsets: ['review'] }), false],
    ['tools by their annotations', identityOf('ana', { toolsets: ['readers'] }), false],
    ['part of the server, and all of another one', identityOf('ana', { toolsets: ['review', 'others'] }), false],
    ['all of the server', identityOf('ana', { toolsets: ['review', 'ops'] }), true],
    ['the scope to read', identityOf('ana', { scopes: ['mcp:a'] }), false],
    ['the scope to write', identityOf('ana', { scopes: ['mcp:a:write'] }), true],
    ['no limits', identityOf('ana'), true],
  ] as const)(
    'B260 with %s, methods of no revision reach a server at its path only where all of it is allowed',
    async (_, identity, isRelayed) => {
      const readers = toolsetOf({ where: { readOnlyHint: true } }, { name: 'readers' })
      const toolsets = [REVIEW, OPS, readers, toolsetOf({ servers: ['b', 'c'] }, { name: 'others' })]
      await using gateway = await startGateway({
        servers: { a: A, b: fake.offering('search') },
        gateway: { toolsets, scopes: ['mcp:a', 'mcp:a:write'] },
      })
      gateway.fake('a').on('vendor/erase', () => ({}))
      await using host = await legacyPipe.connect(gateway, { server: 'a', identity })
      host.notify('notifications/vendor/erase')
      const called = host.call('vendor/erase')
      const refused =
        identity.scopes === undefined ? 'Method not found: vendor/erase' : 'insufficient_scope: this takes mcp:a mcp:a:write'
      if (isRelayed) expect(await called).toEqual({})
      else await expect(called).rejects.toThrow(refused)
      host.notify('notifications/roots/list_changed')
      await gateway.fake('a').until('notifications/roots/list_changed')
      const reached = ['vendor/erase', 'notifications/vendor/erase'].map((method) => gateway.fake('a').all(method).length)
      expect(reached).toEqual(isRelayed ? [1, 1] : [0, 0])
    },
  )

  test('T-30 ten thousand interleaved reads of two principals: each gets its own list, private, and cursors do not cross', async () => {
    await using gateway = await start([REVIEW, OPS])
    await using ana = await modernPipe.connect(gateway, { identity: identityOf('ana', { toolsets: ['review'] }) })
    await using bob = await modernPipe.connect(gateway, { identity: identityOf('bob', { toolsets: ['ops'] }) })
    const expected = new Map([
      [ana, 'a__read_file b__search private'],
      [bob, 'a__read_file a__delete_file b__search c__secret private'],
    ])
    const seen = new Map([ana, bob].map((host) => [host, new Set<string>()]))
    const read = async (host: Host): Promise<void> => {
      const { tools: entries, cacheScope } = await host.call('tools/list')
      seen.get(host)?.add([...(entries as JsonMap[]).map(({ name }) => name), cacheScope].join(' '))
    }
    for (let round = 0; round < 100; round++)
      await Promise.all(Array.from({ length: 100 }, (_, n) => read(n % 2 === 0 ? ana : bob)))
    for (const [host, words] of expected) expect([...(seen.get(host) ?? [])]).toEqual([words])
  })
})
