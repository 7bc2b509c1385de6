/** Exposed names and URIs, there and back (BRIDGING 4; 8.9). */
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { request } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'

const namesIn = async (host: Host, method: string, list: string, field: string): Promise<unknown[]> =>
  ((await host.call(method))[list] as JsonMap[]).map((entry) => entry[field])
const tools = (host: Host): Promise<unknown[]> => namesIn(host, 'tools/list', 'tools', 'name')

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test('B102 a call to a tool of no server answers -32602 and reaches no downstream', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('echo') } })
    await using host = await connect(gateway)
    for (const name of ['echo', 'b__echo', '', '__proto__', 'a__'])
      await expect(host.call('tools/call', { name })).rejects.toMatchObject({ code: -32602, message: `Unknown tool: ${name}` })
    await expect(host.call('prompts/get', { name: 'b__nope' })).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })
  test('B103 B104 a read of an unknown resource is not found, by the code of the era, with its URI', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ resources: ['file:///r'] }) } })
    await using host = await connect(gateway)
    for (const uri of ['nope:///x', 'b+file:///r', 'https://example.com/x']) {
      const code = era === 'modern' ? -32602 : -32002
      await expect(host.call('resources/read', { uri })).rejects.toMatchObject({ code, data: { uri } })
    }
    expect(gateway.fake('a').received).toEqual([])
  })
  test('B161 B168 every exposed name and URI finds its way back, completion references too', async () => {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          tools: ['dots.and/slash', 'plain'],
          prompts: ['p r'],
          resources: ['file:///r', 'ui://panel/x'],
          templates: ['file:///{path}'],
        }),
      },
    })
    await using host = await connect(gateway)
    const a = gateway.fake('a')
    for (const name of await tools(host)) await host.call('tools/call', { name })
    expect(new Set(a.all('tools/call').map(({ params }) => params['name']))).toEqual(new Set(['dots.and/slash', 'plain']))
    const [prompt] = await namesIn(host, 'prompts/list', 'prompts', 'name')
    await host.call('prompts/get', { name: prompt })
    expect(a.all('prompts/get').map(({ params }) => params['name'])).toEqual(['p r'])
    const uris = await namesIn(host, 'resources/list', 'resources', 'uri')
    expect(uris.map(String).toSorted()).toEqual(['a+file:///r', 'ui://~a/panel/x'])
    for (const uri of uris) await host.call('resources/read', { uri })
    expect(new Set(a.all('resources/read').map(({ params }) => params['uri']))).toEqual(new Set(['file:///r', 'ui://panel/x']))
    const argument = { name: 'path', value: '' }
    const [template] = await namesIn(host, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')
    expect(template).toBe('a+file:///{path}')
    await host.call('completion/complete', { ref: { type: 'ref/prompt', name: prompt }, argument })
    await host.call('completion/complete', { ref: { type: 'ref/resource', uri: template }, argument })
    expect(a.all('completion/complete').map(({ params }) => params['ref'])).toEqual([
      { type: 'ref/prompt', name: 'p r' },
      { type: 'ref/resource', uri: 'file:///{path}' },
    ])
  })
  test('B109 B110 URIs in results are exposed; text, data and blob are not touched', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ tools: ['t'], prompts: ['p'], resources: ['file:///r'] }) },
    })
    await using host = await connect(gateway)
    const blocks = [
      { type: 'resource_link', uri: 'file:///x', name: 'x' },
      { type: 'resource', resource: { uri: 'file:///y', text: 'see file:///r' } },
      { type: 'resource', resource: { uri: 'file:///z', blob: 'ZmlsZTovLy9y' } },
      { type: 'text', text: 'file:///r' },
      { type: 'resource_link', uri: 'https://example.com/x', name: 'h' },
      { type: 'of a later revision', uri: 'file:///r', resource: { uri: 'file:///r' } },
    ]
    const exposed = [
      { type: 'resource_link', uri: 'a+file:///x', name: 'x' },
      { type: 'resource', resource: { uri: 'a+file:///y', text: 'see file:///r' } },
      { type: 'resource', resource: { uri: 'a+file:///z', blob: 'ZmlsZTovLy9y' } },
      { type: 'text', text: 'file:///r' },
      { type: 'resource_link', uri: 'https://example.com/x', name: 'h' },
      { type: 'of a later revision', uri: 'file:///r', resource: { uri: 'file:///r' } },
    ]
    const structuredContent = { uri: 'file:///r' }
    gateway.fake('a').on('tools/call', () => ({ content: blocks, structuredContent }))
    expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({ content: exposed, structuredContent })
    gateway.fake('a').on('prompts/get', () => ({ messages: blocks.map((content) => ({ role: 'user', content })) }))
    expect(await host.call('prompts/get', { name: 'a__p' })).toMatchObject({
      messages: exposed.map((content) => ({ role: 'user', content })),
    })
    expect(await host.call('resources/read', { uri: 'a+file:///r' })).toMatchObject({
      contents: [{ uri: 'a+file:///r', text: 'text of file:///r' }],
    })
  })
})

test('B158 B159 B160 names come from the key, whatever the server calls itself, in the alphabet that hosts take', async () => {
  const odd = ['ünï', 'a b', 'x'.repeat(200), 'dots.and-dashes_', '工具', '..']
  await using gateway = await startGateway({ servers: { a: fake.offering(...odd), b: fake.offering(...odd) } })
  await using host = await modernHttp.connect(gateway)
  const names = (await tools(host)) as string[]
  expect(names).toHaveLength(12)
  expect(new Set(names).size).toBe(12)
  for (const name of names) expect(name).toMatch(/^[ab]__[A-Za-z0-9_-]{1,45}$/)
})

test('B160 a name is the same whatever else is configured, running or listed, in whichever order', async () => {
  const odd = ['ünï', 'a b', 'x'.repeat(200), 'plain', '工具']
  const read = async (servers: Record<string, FakeSpec>): Promise<string[]> => {
    await using gateway = await startGateway({ servers })
    await using host = await modernHttp.connect(gateway)
    return ((await tools(host)) as string[]).filter((name) => name.startsWith('a__')).toSorted()
  }
  const alone = await read({ a: fake.offering(...odd) })
  expect(await read({ b: fake.offering(...odd, 'a__plain'), a: fake.offering(...odd.toReversed()) })).toEqual(alone)
  const fewer = await read({ a: fake.offering(odd[2]!, odd[1]!) })
  expect(alone).toEqual(expect.arrayContaining(fewer))
})

test('B162 long names that differ at their end stay apart, and are the same after a restart', async () => {
  const long = ['x'.repeat(100) + 1, 'x'.repeat(100) + 2]
  const read = async (): Promise<unknown[]> => {
    await using gateway = await startGateway({ servers: { a: fake.offering(...long) } })
    await using host = await modernHttp.connect(gateway)
    return await tools(host)
  }
  const names = await read()
  expect(new Set(names).size).toBe(2)
  expect(await read()).toEqual(names)
})

test('prefix never: original names and URIs, the first server owns what two offer (B163)', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['echo', 'mine'], resources: ['file:///r'] }), b: fake.offering('echo', 'other') },
    gateway: { prefix: 'never' },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await tools(host)).toEqual(['echo', 'mine', 'other'])
  await host.call('tools/call', { name: 'echo' })
  expect(gateway.fake('b').received).toEqual([])
  expect(await host.call('resources/read', { uri: 'file:///r' })).toMatchObject({ contents: [{ uri: 'file:///r' }] })
})

test('B163 a name stays with its owner while that is down', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.offering('echo'), b: fake.offering('echo') },
    gateway: { prefix: 'never' },
    options: { a: { timeouts: { graceMs: 0 } } },
  })
  await using host = await modernHttp.connect(gateway)
  gateway.fake('a').intercept = (_request, response) => (response.destroy(), true)
  for (const connection of gateway.fake('a').connections) connection.drop()
  expect(await host.call('tools/call', { name: 'echo' })).toMatchObject({ isError: true })
  expect(gateway.fake('b').received).toEqual([])
})

test('B260 /servers/<key>/mcp shows one server alone, under its own names and URIs, and is 404 for a key that nobody has', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['echo'], resources: ['file:///r'] }), b: fake.offering('echo', 'other') },
  })
  gateway.fake('a').on('tools/call', (turn) => {
    if (turn.params['name'] === 'echo') return { content: [] }
    return turn.fail(-32602, `no tool ${String(turn.params['name'])}`)
  })
  for (const { connect } of [legacyHttp, modernHttp]) {
    await using host = await connect(gateway, { path: '/servers/a/mcp' })
    expect(await tools(host)).toEqual(['echo'])
    await host.call('tools/call', { name: 'echo' })
    expect(await host.call('resources/read', { uri: 'file:///r' })).toMatchObject({ contents: [{ uri: 'file:///r' }] })
    for (const name of ['other', 'a__echo'])
      await expect(host.call('tools/call', { name })).rejects.toMatchObject({ code: -32602, message: `no tool ${name}` })
    const called = gateway.fake('a').all('tools/call')
    expect(called.slice(-2).map(({ params }) => params['name'])).toEqual(['other', 'a__echo'])
  }
  expect(gateway.fake('b').received).toEqual([])
  for (const path of ['/servers/nobody/mcp', '/servers/A/mcp', '/servers//mcp', '/servers/a/mcp/x'])
    expect(
      (
        await send(new URL(path, gateway.url), {
          body: request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} }),
        })
      ).status,
    ).toBe(404)
})

test('B164 http URIs stay what they are and are read from the server that lists them', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ resources: ['https://example.com/a'] }), b: fake.of({ resources: ['http://example.com/b'] }) },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await namesIn(host, 'resources/list', 'resources', 'uri')).toEqual(['https://example.com/a', 'http://example.com/b'])
  await host.call('resources/read', { uri: 'http://example.com/b' })
  expect(gateway.fake('a').received).toEqual([])
  expect(gateway.fake('b').all('resources/read')).toHaveLength(1)
})

test('B165 an expanded exposed template is read under its original', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ templates: ['db://{table}/{id}'] }) } })
  await using host = await modernHttp.connect(gateway)
  const read = await host.call('resources/read', { uri: 'a+db://users/7' })
  expect(read).toMatchObject({ contents: [{ uri: 'a+db://users/7', text: 'text of db://users/7' }] })
})

test('B166 a bare URI is read where exactly one server owns it, and answered in the spelling of the host', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ resources: ['file:///a', 'file:///both'], templates: ['db://{x}'] }),
      b: fake.of({ resources: ['file:///both'], templates: ['{+any}'] }),
    },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('resources/read', { uri: 'file:///a' })).toMatchObject({ contents: [{ uri: 'file:///a' }] })
  expect(await host.call('resources/read', { uri: 'db://t' })).toMatchObject({ contents: [{ uri: 'db://t' }] })
  await expect(host.call('resources/read', { uri: 'file:///both' })).rejects.toMatchObject({ code: -32602 })
  expect(gateway.fake('b').received).toEqual([])
})

test('B167 they stay where the configuration says so (unalias_arguments)', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['t'], resources: ['file:///r'] }) },
    options: { a: { unaliasArguments: false } },
  })
  await using host = await modernHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__t', arguments: { one: 'a+file:///r' } })
  expect((await gateway.fake('a').until('tools/call')).params['arguments']).toEqual({ one: 'a+file:///r' })
})

describe.each(everyFakeKind)('arguments for a %s server', (kind) => {
  test('B167 strings that are exposed URIs of that very server get their originals back', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['t'], resources: ['file:///r'] }), b: fake.of({ resources: ['file:///r'] }) },
    })
    await using host = await modernHttp.connect(gateway)
    const args = {
      one: 'a+file:///r',
      deep: [{ x: 'ui://~a/panel' }, 'b+file:///r', 'see a+file:///r', 'file:///r'],
      'a+file:///key': 1,
    }
    await host.call('tools/call', { name: 'a__t', arguments: args })
    expect((await gateway.fake('a').until('tools/call')).params['arguments']).toEqual({
      one: 'file:///r',
      deep: [{ x: 'ui://panel' }, 'b+file:///r', 'see a+file:///r', 'file:///r'],
      'a+file:///key': 1,
    })
  })
})

test('B167 B109 a link that has a prefix only because another server lists its URI comes back as the server wrote it', async () => {
  const uri = 'file:///r'
  const result = { content: [{ type: 'resource_link', uri, name: 'r' }] }
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ resources: [uri] }),
      b: fake.of({ tools: ['t'], resources: [], on: { 'tools/call': () => result } }),
    },
    gateway: { prefix: 'never' },
  })
  await using host = await modernHttp.connect(gateway)
  const { content } = await host.call('tools/call', { name: 't' })
  const [link] = content as [JsonMap]
  expect(link['uri']).toBe('b+file:///r')
  gateway.fake('b').forget()
  await host.call('tools/call', { name: 't', arguments: { open: link['uri'] } })
  expect((await gateway.fake('b').until('tools/call')).params['arguments']).toEqual({ open: uri })
})

test('B168 data.uri of a server error is exposed', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ tools: ['t'], resources: ['file:///r'] }) } })
  await using host = await modernHttp.connect(gateway)
  gateway.fake('a').on('tools/call', (turn) => turn.fail(-32602, 'no such file', { uri: 'file:///gone', more: 1 }))
  await expect(host.call('tools/call', { name: 'a__t' })).rejects.toMatchObject({
    code: -32602,
    message: 'no such file',
    data: { uri: 'a+file:///gone', more: 1 },
  })
})

test('B168 _meta.ui.resourceUri of a tool is exposed', async () => {
  const tool = { name: 't', inputSchema: { type: 'object' }, _meta: { ui: { resourceUri: 'ui://panel', keep: 1 } } }
  await using gateway = await startGateway({ servers: { a: fake.offering(tool) } })
  await using host = await modernHttp.connect(gateway)
  const [listed] = (await host.call('tools/list'))['tools'] as JsonMap[]
  expect(listed!['_meta']).toEqual({ ui: { resourceUri: 'ui://~a/panel', keep: 1 } })
})

test.each([
  ['that both list', ['ui://panel']],
  ['that none lists', []],
])('B168 under original names, the app of a tool is read from the server of the tool: a URI %s', async (_, resources) => {
  const tool = (name: string): JsonMap => ({
    name,
    inputSchema: { type: 'object' },
    _meta: { ui: { resourceUri: 'ui://panel' }, 'ui/resourceUri': 'ui://panel' },
  })
  const server = (key: string): FakeSpec =>
    fake.of({
      tools: [tool(`of_${key}`)],
      resources,
      on: { 'resources/read': ({ params }) => ({ contents: [{ uri: params['uri'], text: key }] }) },
    })
  await using gateway = await startGateway({ servers: { a: server('a'), b: server('b') }, gateway: { prefix: 'never' } })
  await using host = await modernHttp.connect(gateway, {
    capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
  })
  for (const { name, _meta } of (await host.call('tools/list'))['tools'] as JsonMap[]) {
    const { ui, 'ui/resourceUri': older } = _meta as { ui: { resourceUri: string }; 'ui/resourceUri': string }
    expect(older).toBe(ui.resourceUri)
    const { contents } = await host.call('resources/read', { uri: older })
    expect(contents).toEqual([{ uri: older, text: String(name).slice('of_'.length) }])
  }
})
