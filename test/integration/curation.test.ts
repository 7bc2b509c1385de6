/** What the configuration leaves of servers, as hosts see it: lists and calls agree, in every era and over every transport. */
import { describe, expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import { curated } from '../support/curation.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { everyModernTransport, everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { KEY, MODERN, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { toolsetOf } from '../support/toolsets.ts'

const start = async (spec: FakeSpec, entry: object, options: object = {}) =>
  startGateway({ servers: { a: spec }, options: { a: { ...(await curated(entry)), ...options } } })

const listed = async (host: Host, method: string, list: string, field: string): Promise<unknown[]> =>
  ((await host.call(method))[list] as JsonMap[]).map((entry) => entry[field])

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test('what is hidden is in no list, and cannot be called, read, completed or subscribed: it is unknown', async () => {
    await using gateway = await start(
      fake.of({
        tools: ['get', 'delete_x'],
        prompts: ['p', 'internal_p'],
        resources: ['file:///pub/r', 'file:///etc/r'],
        templates: ['file:///pub/{+x}', 'file:///{x}'],
      }),
      {
        filter: { deny: ['delete_*'] },
        prompts: { deny: ['internal_*'] },
        resources: { allow: ['file:///pub/**'], deny: ['file:///pub/no/**'] },
      },
    )
    await using host = await connect(gateway)
    expect(await listed(host, 'tools/list', 'tools', 'name')).toEqual(['a__get'])
    expect(await listed(host, 'prompts/list', 'prompts', 'name')).toEqual(['a__p'])
    expect(await listed(host, 'resources/list', 'resources', 'uri')).toEqual(['a+file:///pub/r'])
    expect(await listed(host, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')).toEqual(['a+file:///pub/{+x}'])

    const argument = { name: 'x', value: '' }
    const unknownTool = { code: -32602, message: 'Unknown tool: a__delete_x' }
    await expect(host.call('tools/call', { name: 'a__delete_x' })).rejects.toMatchObject(unknownTool)
    await expect(host.call('prompts/get', { name: 'a__internal_p' })).rejects.toMatchObject({
      message: 'Unknown prompt: a__internal_p',
    })
    for (const ref of [
      { type: 'ref/prompt', name: 'a__internal_p' },
      { type: 'ref/resource', uri: 'a+file:///{x}' },
      { type: 'ref/resource', uri: 'file:///{x}' },
    ])
      await expect(host.call('completion/complete', { ref, argument })).rejects.toMatchObject({ code: -32602 })
    const code = era === 'modern' ? -32602 : -32002
    for (const uri of [
      'a+file:///etc/r',
      'file:///etc/r',
      'a+file:///pub/../etc/r',
      'a+file:///pub/%2e%2e/etc/r',
      'file:///pub/no/r',
    ]) {
      await expect(host.call('resources/read', { uri })).rejects.toMatchObject({ code, message: `Resource not found: ${uri}` })
      if (era === 'legacy') await expect(host.call('resources/subscribe', { uri })).rejects.toMatchObject({ code: -32002 })
    }
    expect(gateway.fake('a').received).toEqual([])

    await host.call('tools/call', { name: 'a__get' })
    await host.call('prompts/get', { name: 'a__p' })
    await host.call('completion/complete', { ref: { type: 'ref/resource', uri: 'a+file:///pub/{+x}' }, argument })
    for (const uri of ['a+file:///pub/r', 'a+file:///pub/unlisted'])
      expect((await host.call('resources/read', { uri }))['contents']).toMatchObject([{ uri }])
  })

  test('a tool is listed and called under its new name only, and the server hears the old one', async () => {
    await using gateway = await start(fake.offering('search_code', 'other'), {
      tools: { search_code: { name: 'find', title: 'Find', description: 'Find code.', annotations: { readOnlyHint: true } } },
    })
    await using host = await connect(gateway)
    const { tools } = await host.call('tools/list')
    expect(tools).toContainEqual({
      name: 'a__find',
      inputSchema: { type: 'object' },
      title: 'Find',
      description: 'Find code.',
      annotations: { readOnlyHint: true },
    })
    await host.call('tools/call', { name: 'a__find' })
    await expect(host.call('tools/call', { name: 'a__search_code' })).rejects.toMatchObject({ code: -32602 })
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['name']),
    ).toEqual(['search_code'])
  })
})

const SEARCH = {
  name: 'search',
  inputSchema: {
    type: 'object',
    properties: { org: { type: 'string', 'x-mcp-header': 'Org' }, per_page: { type: 'integer' }, q: { type: 'string' } },
    required: ['org', 'q', 'per_page'],
  },
}
const ARGS = { org: { value: 'acme', hide: true }, per_page: { default: 20 } }
const FILLED = { org: 'acme', per_page: 20, q: 'x' }

describe.each(everyFakeKind)('a %s server', (kind) => {
  test('gets pinned arguments and defaults beside the bytes of the host; headers mirror what is sent', async () => {
    await using gateway = await start(fake.of({ kind, tools: [SEARCH] }), { tools: { search: { args: ARGS } } })
    for (const { connect } of [legacyHttp, modernHttp]) {
      await using host = await connect(gateway)
      const { tools } = await host.call('tools/list')
      expect(tools).toMatchObject([
        { inputSchema: { properties: { per_page: { type: 'integer', default: 20 }, q: { type: 'string' } }, required: ['q'] } },
      ])
      const meta = JSON.stringify(host.era === 'modern' ? { [KEY.version]: MODERN, [KEY.capabilities]: {} } : {})
      const params = `{"name":"a__search", "arguments":{ "q" : "\\u0061+b", "n":1.50},"_meta":${meta}}`
      await host.sendRaw(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":${params}}`, 77).response
    }
    const calls = gateway.fake('a').all('tools/call')
    expect(calls).toHaveLength(2)
    for (const { raw, headers } of calls) {
      expect(raw).toContain('{"org":"acme","per_page":20, "q" : "\\u0061+b", "n":1.50}')
      if (kind === 'modern http') expect(headers['mcp-param-org']).toBe('acme')
    }
  })
})

describe('arguments that are not the host’s to choose', () => {
  test.each(everyTransport)('over $name it is told so, and the server hears nothing', async ({ connect }) => {
    await using gateway = await start(fake.offering(SEARCH), {
      tools: { search: { args: { org: { value: 'acme', hide: true }, q: { value: 'x' } } } },
    })
    await using host = await connect(gateway)
    const call = (args: unknown): Promise<JsonMap> => host.call('tools/call', { name: 'a__search', arguments: args })
    await expect(call({ org: 'evil' })).resolves.toMatchObject({ isError: true, content: [{ text: 'unknown argument "org"' }] })
    await expect(call({ q: 'y' })).resolves.toMatchObject({
      isError: true,
      content: [{ text: 'the argument "q" is fixed: leave it out, or send what its schema says' }],
    })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
    await call({ q: 'x' })
    expect(gateway.fake('a').all('tools/call')[0]?.params['arguments']).toEqual({ org: 'acme', q: 'x' })
  })

  test.each(['own', 'undici'])('T-21 a header for a hidden argument never reaches the server (%s)', async (httpClient) => {
    const args = { org: { hide: true }, q: { value: 'ours', hide: true } }
    const properties = { org: { type: 'string', 'x-mcp-header': 'Org' }, q: { type: 'string', 'x-mcp-header': 'Q' } }
    const tool = { name: 'search', inputSchema: { type: 'object', properties } }
    await using gateway = await start(
      fake.of({ kind: 'modern http', tools: [tool] }),
      { tools: { search: { args } } },
      { httpClient },
    )
    await using host = await modernHttp.connect(gateway)
    const headers = { 'mcp-param-org': 'evil', 'mcp-param-q': 'evil', 'mcp-param-other': 'kept' }
    await host.call('tools/call', { name: 'a__search', arguments: {} }, { headers })
    const [call] = gateway.fake('a').all('tools/call')
    expect(call!.headers['mcp-param-org']).toBeUndefined()
    expect(call!.headers['mcp-param-q']).toBe('ours')
    expect(call!.headers['mcp-param-other']).toBe('kept')
  })

  test('B221 pinned arguments and their headers stand in the second attempt, too', async () => {
    let refused = false
    const spec = fake.of({
      kind: 'modern http',
      tools: [SEARCH],
      on: {
        'tools/call': () => {
          if (refused) return { content: [] }
          refused = true
          throw new RpcError({ code: -32020, message: 'Header mismatch' })
        },
      },
    })
    await using gateway = await start(spec, { tools: { search: { args: ARGS } } })
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__search', arguments: { q: 'x' } })
    const calls = gateway.fake('a').all('tools/call')
    expect(calls.map(({ params }) => params['arguments'])).toEqual([FILLED, FILLED])
    expect(calls.map(({ headers }) => headers['mcp-param-org'])).toEqual(['acme', 'acme'])
  })
})

describe('calls that are continued', () => {
  const asks = (): FakeSpec =>
    fake.of({
      kind: 'modern http',
      tools: [SEARCH],
      on: {
        'tools/call': ({ params }) =>
          params['requestState'] === undefined ? { resultType: 'input_required', requestState: 's' } : { content: [] },
      },
    })

  test.each(everyModernTransport)(
    'B061 over $name a retry has its pinned arguments, whatever the tool is called',
    async ({ connect }) => {
      await using gateway = await start(asks(), { tools: { search: { name: 'find', args: ARGS } } })
      await using host = await connect(gateway)
      const call = { name: 'a__find', arguments: { q: 'x' } }
      const { requestState } = await host.call('tools/call', call)
      await host.call('tools/call', { ...call, requestState })
      const calls = gateway.fake('a').all('tools/call')
      expect(calls.map(({ params }) => params['arguments'])).toEqual([FILLED, FILLED])
    },
  )

  test('B061 B064 the retry of a parked call is the same request, although its arguments were pinned', async () => {
    const handle: Handle = async (turn) => {
      await turn.ask('elicitation/create', { message: 'sure?', requestedSchema: { type: 'object', properties: {} } })
      return { content: [] }
    }
    const spec = fake.of({ kind: 'legacy http', tools: [SEARCH], on: { 'tools/call': handle } })
    await using gateway = await start(spec, { tools: { search: { args: ARGS } } })
    await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
    const call = { name: 'a__search', arguments: { q: 'x' } }
    const { requestState, inputRequests } = await host.call('tools/call', call)
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as JsonMap).map((key) => [key, { action: 'decline' }]))
    expect(await host.call('tools/call', { ...call, requestState, inputResponses })).toMatchObject({ content: [] })
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['arguments']),
    ).toEqual([FILLED])
  })

  test('B066 a call that is continued for a legacy host has its pinned arguments in every round', async () => {
    await using gateway = await start(asks(), { tools: { search: { args: ARGS } } })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__search', arguments: { q: 'x' } })
    const calls = gateway.fake('a').all('tools/call')
    expect(calls.map(({ params }) => [params['requestState'], params['arguments']])).toEqual([
      [undefined, FILLED],
      ['s', FILLED],
    ])
  })

  test('T-06 what was hidden since cannot be called with a state of before', async () => {
    await using gateway = await start(asks(), {})
    await using host = await modernHttp.connect(gateway)
    const call = { name: 'a__search', arguments: { q: 'x' } }
    const { requestState } = await host.call('tools/call', call)
    const { running } = gateway
    const { configuration } = running
    const servers = [{ ...configuration.servers[0]!, ...(await curated({ filter: { deny: 'search' } })) }]
    await running.apply({ ...configuration, servers }, new Set())
    await expect(host.call('tools/call', { ...call, requestState })).rejects.toMatchObject({
      code: -32602,
      message: 'Unknown tool: a__search',
    })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })
})

describe('more than one way to a server', () => {
  test('a toolset knows tools by their new names and believes what the operator says of them; its words win', async () => {
    const entry = {
      filter: { deny: 'hidden' },
      tools: { search: { name: 'find', description: 'server', annotations: { readOnlyHint: true }, args: ARGS } },
    }
    const toolset = toolsetOf(
      { tools: ['a__*'], where: { readOnlyHint: true } },
      { name: 'some', override: { a__find: { description: 'toolset' } } },
    )
    await using gateway = await startGateway({
      servers: { a: fake.offering(SEARCH, 'hidden', { name: 'liar', inputSchema: {}, annotations: { readOnlyHint: true } }) },
      options: { a: await curated(entry) },
      gateway: { toolsets: [toolset] },
    })
    await using host = await modernHttp.connect(gateway, { toolset: 'some' })
    const { tools } = await host.call('tools/list')
    expect(tools).toMatchObject([{ name: 'a__find', description: 'toolset', inputSchema: { required: ['q'] } }])
    await host.call('tools/call', { name: 'a__find', arguments: { q: 'x' } })
    expect(gateway.fake('a').all('tools/call')[0]?.params['arguments']).toEqual(FILLED)
    for (const name of ['a__liar', 'a__hidden', 'a__search'])
      await expect(host.call('tools/call', { name })).rejects.toMatchObject({ message: `Unknown tool: ${name}` })
  })

  test('alone at its own path it has its own names; what is hidden and pinned stays so', async () => {
    await using gateway = await start(fake.offering(SEARCH, 'secret'), {
      filter: { deny: 'secret' },
      tools: { search: { name: 'find', args: ARGS } },
    })
    await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
    expect(await listed(host, 'tools/list', 'tools', 'name')).toEqual(['search'])
    await host.call('tools/call', { name: 'search', arguments: { q: 'x' } })
    await expect(host.call('tools/call', { name: 'secret' })).rejects.toMatchObject({ code: -32602 })
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['arguments']),
    ).toEqual([FILLED])
  })

  test('what a server lists to one session alone is curated, too', async () => {
    await using gateway = await start(fake.offering('get', 'delete_x'), { filter: { deny: 'delete_*' } }, { dynamicLists: true })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__get' })
    gateway
      .fake('a')
      .offers.tools.push({ name: 'mine', inputSchema: { type: 'object' } }, { name: 'delete_y', inputSchema: { type: 'object' } })
    gateway
      .fake('a')
      .connections.at(-1)
      ?.say(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(await listed(host, 'tools/list', 'tools', 'name')).toEqual(['a__get', 'a__mine'])
  })

  test('a reload that changes the rules restarts nothing and is told to hosts', async () => {
    await using gateway = await start(fake.offering('get', 'put'), {})
    await using host = await legacyHttp.connect(gateway)
    const { running } = gateway
    const { configuration } = running
    const servers = [{ ...configuration.servers[0]!, ...(await curated({ filter: { deny: 'put' } })) }]
    await running.apply({ ...configuration, servers }, new Set())
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(await listed(host, 'tools/list', 'tools', 'name')).toEqual(['a__get'])
    expect(gateway.fake('a').all('initialize')).toEqual([])
  })

  test('an update of a hidden resource is told to nobody', async () => {
    await using gateway = await start(fake.of({ resources: ['file:///pub/r', 'file:///etc/r'] }), {
      resources: { deny: 'file:///etc/**' },
    })
    await using host = await legacyHttp.connect(gateway)
    await host.call('resources/subscribe', { uri: 'a+file:///pub/r' })
    gateway.fake('a').updated('file:///etc/r')
    gateway.fake('a').updated('file:///pub/r')
    await host.heard.until(
      ({ method, params }) => method === 'notifications/resources/updated' && params?.['uri'] === 'a+file:///pub/r',
    )
    expect(host.heard.entries.filter(({ method }) => method === 'notifications/resources/updated')).toHaveLength(1)
  })
})

describe('time-outs of single tools', () => {
  test.each(everyFakeKind)('B085 a %s server gets as long as the tool has', async (kind) => {
    await using gateway = await start(fake.of({ kind, tools: ['slow', 'other'], on: { 'tools/call': fake.never } }), {
      tools: { slow: { timeout: '200ms' } },
    })
    await using host = await modernHttp.connect(gateway)
    const result = await host.call('tools/call', { name: 'a__slow' })
    expect(result).toMatchObject({ isError: true, _meta: { 'dev.trunkline/gateway': { kind: 'timeout', downstream: 'a' } } })
  })
})

test('ps counts what is shown, and tells rules that meet nothing', async () => {
  const spec = fake.of({ tools: ['get', 'put'], prompts: ['p', 'q'], resources: ['file:///a', 'file:///b'] })
  const entry = {
    filter: { deny: 'put' },
    prompts: { deny: 'q' },
    resources: { deny: 'file:///b' },
    tools: { gte: { title: 'x' } },
  }
  await using gateway = await start(spec, entry)
  expect(serverStatuses(gateway.running)).toMatchObject([
    {
      tools: 1,
      prompts: 1,
      resources: 1,
      findings: [{ kind: 'tools', name: 'gte', note: 'is configured, and the server has no such tool (configuration)' }],
    },
  ])
})
