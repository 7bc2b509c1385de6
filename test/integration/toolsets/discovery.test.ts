/** Three fixed tools in place of a long list (`discovery`): what they find, and that a call through them is the call itself (DECISIONS 5). */
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, test } from 'vitest'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import { curated } from '../../support/curation.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp, toolNames } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { KEY, MODERN, RpcError } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { TASKS, taskServer } from '../tasks/task-server.ts'

const UI = 'io.modelcontextprotocol/ui'
const SEARCH = 'gateway__search_tools'
const DESCRIBE = 'gateway__describe_tool'
const CALL = 'gateway__call_tool'
const OWN = [SEARCH, DESCRIBE, CALL]
const region = { type: 'string', 'x-mcp-header': 'Region', description: 'Where the machine stands' }
const RESTART = {
  name: 'restart_machine',
  description: 'Restarts a machine.\nTakes a minute.',
  inputSchema: { type: 'object', properties: { region } },
}
const A = fake.of({ tools: [RESTART, 'list_machines', 'delete_machine'] })
const WIDE = toolsetOf({}, { name: 'wide', discovery: 'search', always: ['a__list_*'] })
const toWide = { toolset: 'wide' }

const start = (
  a: FakeSpec = A,
  toolsets: readonly ToolsetOptions[] = [WIDE],
  more: Partial<GatewaySetup> = {},
): Promise<TestGateway> =>
  startGateway({ servers: { a, b: fake.offering('send_mail') }, gateway: { toolsets, ...more.gateway }, ...more })

const textOf = ({ content }: JsonMap): string => (content as { text: string }[])[0]!.text
const search = async (host: Host, args: JsonMap): Promise<JsonMap[]> => {
  const result = await host.call('tools/call', { name: SEARCH, arguments: args })
  expect(result).not.toHaveProperty('isError')
  return (JSON.parse(textOf(result)) as { tools: JsonMap[] }).tools
}
const callThrough = (host: Host, args: JsonMap, more: JsonMap = {}): Promise<JsonMap> =>
  host.call('tools/call', { name: CALL, arguments: args, ...more })

const MISUSES: readonly (readonly [name: string, params: JsonMap, text: RegExp])[] = [
  ...OWN.map((name) => [name, {}, /needs arguments/] as const),
  [SEARCH, { arguments: {} }, /needs "query"/],
  [SEARCH, { arguments: { query: ' ' } }, /needs "query"/],
  [SEARCH, { arguments: { query: 'x', limit: 0 } }, /"limit" must be a whole number from 1 to 20/],
  [SEARCH, { arguments: { query: 'x', limit: 'many' } }, /"limit" must be/],
  [SEARCH, { arguments: { query: 'x', server: 'a' } }, /takes query, limit, not "server"/],
  [DESCRIBE, { arguments: {} }, /needs "name"/],
  [DESCRIBE, { arguments: { name: 'a__nope' } }, /^Unknown tool: a__nope$/],
  [CALL, { arguments: {} }, /needs "name"/],
  [CALL, { arguments: { name: 'a__x', region: 'eu' } }, /not "region"; what the tool takes stands inside of "arguments"/],
  [CALL, { arguments: { name: 'a__x', arguments: '{"region":"eu"}' } }, /must be an object/],
  [CALL, { arguments: { name: CALL, arguments: { name: 'a__x' } } }, /is called by itself/],
]

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test('lists the three and what is always listed, the same to everybody', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    await using other = await connect(gateway, { ...toWide, capabilities: { elicitation: { form: {} } } })
    expect(await toolNames(host)).toEqual([...OWN, 'a__list_machines'])
    const tools = async (one: Host): Promise<string> => JSON.stringify((await one.call('tools/list'))['tools'])
    expect(await tools(other)).toBe(await tools(host))
    expect(await tools(host)).toContain('Servers: A, B.')
  })

  test('a tool is found, described and called', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    const found = await search(host, { query: 'reboot or restart a computer', limit: 2 })
    expect(found[0]).toEqual({
      name: 'a__restart_machine',
      server: 'A',
      score: expect.any(Number),
      description: 'Restarts a machine.',
    })
    const described = await host.call('tools/call', { name: DESCRIBE, arguments: { name: 'a__restart_machine' } })
    expect(JSON.parse(textOf(described))).toEqual({ ...RESTART, name: 'a__restart_machine' })
    gateway.fake('a').forget()
    expect(textOf(await callThrough(host, { name: 'a__restart_machine', arguments: { region: 'eu' } }))).toBe('{"region":"eu"}')
    const [call, ...others] = gateway.fake('a').all('tools/call')
    expect(call!.params).toMatchObject({ name: 'restart_machine', arguments: { region: 'eu' } })
    expect(others).toEqual([])
    expect(gateway.fake('b').all('tools/call')).toEqual([])
  })

  test('a tool that is for the apps of its server alone is found, described and called through these by no model', async () => {
    const ui = (resourceUri: string | undefined, visibility: string[] | undefined): JsonMap => ({
      ui: { resourceUri, visibility },
    })
    const a = fake.of({
      tools: [
        { ...RESTART, _meta: ui('ui://machine', undefined) },
        { ...RESTART, name: 'restart_at_once', _meta: ui(undefined, ['app']) },
      ],
    })
    await using gateway = await start(a)
    await using host = await connect(gateway, { ...toWide, capabilities: { extensions: { [UI]: {} } } })
    const found = await search(host, { query: 'restart a machine', limit: 1 })
    expect(found).toMatchObject([{ name: 'a__restart_machine' }])
    expect(await search(host, { query: 'restart at once' })).not.toContainEqual(
      expect.objectContaining({ name: 'a__restart_at_once' }),
    )
    gateway.fake('a').forget()
    for (const name of ['a__restart_at_once', 'restart_at_once']) {
      const described = await host.call('tools/call', { name: DESCRIBE, arguments: { name } })
      for (const result of [described, await callThrough(host, { name })]) {
        expect(result).toMatchObject({ isError: true })
        expect(textOf(result)).toBe(`Unknown tool: ${name}`)
      }
    }
    expect(gateway.fake('a').all('tools/call')).toEqual([])
    for (const name of ['a__restart_at_once', 'restart_at_once']) await host.call('tools/call', { name })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  })

  test('inner arguments arrive byte for byte', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    const inner = '{"region" :"\\u0065u","z":[1.0, 9007199254740993,-0,1e400],"a": {"__proto__":null}}'
    const meta = era === 'modern' ? `{"${KEY.version}":"${MODERN}","${KEY.capabilities}":{}}` : '{}'
    const params = `{"_meta":${meta},"name":"${CALL}","arguments":{ "arguments": ${inner} ,"name":"a__restart_machine"}}`
    await host.sendRaw(`{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":${params}}`, 'raw').response
    expect((await gateway.fake('a').until('tools/call')).raw).toContain(`"arguments":${inner}`)
  })

  test('a tool without arguments is called without', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    expect(textOf(await callThrough(host, { name: 'b__send_mail' }))).toBe('null')
    expect((await gateway.fake('b').until('tools/call')).params).not.toHaveProperty('arguments')
  })

  test('B282 null counts as absent: for the number of answers, and for the arguments as in a plain call', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    expect(await search(host, { query: 'machine', limit: null })).toHaveLength(3)
    const result = await callThrough(host, { name: 'b__send_mail', arguments: null })
    expect(result).not.toHaveProperty('isError')
    expect((await gateway.fake('b').until('tools/call')).raw).toContain('"arguments":null')
  })

  test('what is wrong with a call of one of the three is told to the model, and reaches no server', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, toWide)
    gateway.fake('a').forget()
    for (const [name, args, text] of MISUSES)
      expect(await host.call('tools/call', { name, ...args })).toMatchObject({
        isError: true,
        content: [{ type: 'text', text: expect.stringMatching(text) }],
      })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('what the toolset hides is not found, not described, and unknown to a call through it', async () => {
    await using gateway = await start(A, [
      toolsetOf({ tools: ['a__list_*', 'a__restart_*'] }, { name: 'wide', discovery: 'search' }),
    ])
    await using host = await connect(gateway, toWide)
    expect((await search(host, { query: 'machine delete mail', limit: 20 })).map(({ name }) => name).sort()).toEqual([
      'a__list_machines',
      'a__restart_machine',
    ])
    for (const name of ['a__delete_machine', 'b__send_mail', 'a__nope']) {
      expect(await host.call('tools/call', { name: DESCRIBE, arguments: { name } })).toMatchObject({ isError: true })
      const unknown = { code: -32602, message: `Unknown tool: ${name}` }
      await expect(callThrough(host, { name })).rejects.toMatchObject(unknown)
      await expect(host.call('tools/call', { name })).rejects.toMatchObject(unknown)
    }
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })

  test('errors, failures and progress of the tool come back as of a plain call', async () => {
    const steps: Record<string, Handle> = {
      refuse: () => {
        throw new RpcError({ code: -32001, message: 'no such machine' })
      },
      fail: () => ({ isError: true, content: [{ type: 'text', text: 'too hot' }] }),
      report: async (turn) => {
        turn.progress(1, { total: 2 })
        return { content: [] }
      },
    }
    const on = { 'tools/call': (turn: Parameters<Handle>[0]) => steps[String(turn.params['name'])]!(turn) }
    await using gateway = await start(fake.of({ tools: Object.keys(steps), on }))
    await using host = await connect(gateway, toWide)
    const outcome = (call: Promise<JsonMap>): Promise<unknown> => call.catch(({ code, message }: RpcError) => ({ code, message }))
    for (const name of ['a__refuse', 'a__fail'])
      expect(await outcome(callThrough(host, { name }))).toEqual(await outcome(host.call('tools/call', { name })))
    const pending = host.begin('tools/call', { name: CALL, arguments: { name: 'a__report' } }, { meta: { progressToken: 'p' } })
    await pending.response
    const heard = [...pending.messages.entries, ...host.heard.entries].map(({ params }) => params)
    expect(heard).toEqual([{ progressToken: 'p', progress: 1, total: 2 }])
  })

  test('a person is asked about the tool that is called, not about ours', async () => {
    await using gateway = await start(A, [{ ...WIDE, confirm: ['a__delete_*'] }])
    await using host = await connect(gateway, { ...toWide, capabilities: { elicitation: { form: {} } } })
    const args = { name: 'a__delete_machine', arguments: { id: 7 } }
    const message = 'Toolset wide asks before each call of a__delete_machine. Call it with {"id":7}?'
    if (era === 'legacy') {
      host.answer('elicitation/create', (params) => ({ action: params['message'] === message ? 'accept' : 'decline' }))
      expect(textOf(await callThrough(host, args))).toBe('{"id":7}')
    } else {
      const asked = await callThrough(host, args)
      expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { confirm: { params: { message } } } })
      expect(gateway.fake('a').all('tools/call')).toEqual([])
      const { requestState } = asked
      const answered = { requestState, inputResponses: { confirm: { action: 'accept' } } }
      await expect(callThrough(host, { ...args, arguments: { id: 8 } }, answered)).rejects.toMatchObject({ code: -32602 })
      expect(textOf(await callThrough(host, args, answered))).toBe('{"id":7}')
    }
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['arguments']),
    ).toEqual([{ id: 7 }])
  })

  test('a server that asks in the middle is answered, and gets its own state back', async () => {
    const asks: Handle = ({ params }) =>
      params['inputResponses'] === undefined
        ? {
            resultType: 'input_required',
            inputRequests: {
              sure: {
                method: 'elicitation/create',
                params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
              },
            },
            requestState: 'own',
          }
        : {
            content: [
              { type: 'text', text: JSON.stringify([params['inputResponses'], params['requestState'], params['arguments']]) },
            ],
          }
    await using gateway = await start(fake.of({ kind: 'modern http', tools: ['ask'], on: { 'tools/call': asks } }))
    await using host = await connect(gateway, { ...toWide, capabilities: { elicitation: { form: {} } } })
    const args = { name: 'a__ask', arguments: { n: 1 } }
    const answer = { action: 'accept', content: {} }
    host.answer('elicitation/create', () => answer)
    const first = await callThrough(host, args)
    const { requestState } = first
    const result = era === 'legacy' ? first : await callThrough(host, args, { requestState, inputResponses: { sure: answer } })
    expect(JSON.parse(textOf(result))).toEqual([{ sure: answer }, 'own', { n: 1 }])
  })

  test('what the configuration says of the tool holds: its name and words, its arguments, the limit of its results', async () => {
    const entry = {
      tools: {
        restart_machine: {
          name: 'reboot',
          description: 'Power cycle.',
          args: { region: { value: 'eu', hide: true } },
          result: { max_tokens: 64, overflow: 'resource' },
        },
      },
    }
    const on = {
      'tools/call': ({ params }: Parameters<Handle>[0]) => ({
        content: [{ type: 'text', text: JSON.stringify(params).padEnd(4_000, 'z') }],
      }),
    }
    await using gateway = await start({ ...A, on }, [WIDE], { options: { a: await curated(entry) } })
    await using host = await connect(gateway, toWide)
    expect((await search(host, { query: 'power cycle' }))[0]).toMatchObject({ name: 'a__reboot' })
    expect(await search(host, { query: 'region' })).toEqual([])
    const result = await callThrough(host, { name: 'a__reboot', arguments: { id: 7 } })
    expect(textOf(result)).toContain('"arguments":{"region":"eu","id":7}')
    expect(result['content']).toContainEqual(expect.objectContaining({ type: 'resource_link' }))
    await expect(callThrough(host, { name: 'a__restart_machine' })).rejects.toMatchObject({ code: -32602 })
  })

  test('where everything is listed the three are unknown', async () => {
    await using gateway = await start(A, [WIDE, toolsetOf({}, { name: 'narrow' })])
    await using host = await connect(gateway, { toolset: 'narrow' })
    expect(await toolNames(host)).toHaveLength(4)
    for (const name of OWN)
      await expect(host.call('tools/call', { name, arguments: { name: 'a__list_machines', query: 'x' } })).rejects.toMatchObject({
        code: -32602,
        message: `Unknown tool: ${name}`,
      })
  })

  test('auto lists everything up to the budget, and the three beyond it', async () => {
    const auto = (name: string, tools: number, tokens: number): ToolsetOptions =>
      toolsetOf({}, { name, discovery: 'auto', budget: { tools, tokens } })
    await using gateway = await start(A, [auto('fits', 4, 1_000), auto('many', 3, 1_000), auto('long', 4, 10)])
    const listed = async (toolset: string): Promise<unknown[]> => {
      await using host = await connect(gateway, { toolset })
      return await toolNames(host)
    }
    expect(await listed('fits')).toHaveLength(4)
    expect(await listed('many')).toEqual(OWN)
    expect(await listed('long')).toEqual(OWN)
  })
})

test.each(everyFakeKind.flatMap((kind) => [legacyHttp, modernHttp].map((host) => [kind, host.name, host.connect] as const)))(
  'a tool of a %s server is called by a host on %s',
  async (kind, _name, connect) => {
    await using gateway = await start({ ...A, kind })
    await using host = await connect(gateway, toWide)
    expect((await search(host, { query: 'restart' }))[0]).toMatchObject({ name: 'a__restart_machine' })
    expect(textOf(await callThrough(host, { name: 'a__restart_machine', arguments: { region: 'eu' } }))).toBe('{"region":"eu"}')
  },
)

describe('headers', () => {
  const call = async (kind: 'modern http', headers: Record<string, string>): Promise<JsonMap> => {
    await using gateway = await start({ ...A, kind })
    await using host = await modernHttp.connect(gateway, toWide)
    const args = { name: 'a__restart_machine', arguments: { region: 'eu' } }
    await host.call('tools/call', { name: CALL, arguments: args }, { headers })
    return (await gateway.fake('a').until('tools/call')).headers
  }

  test('B219 are those of the tool that is called, from its own arguments', async () => {
    expect(await call('modern http', {})).toMatchObject({ 'mcp-name': 'restart_machine', 'mcp-param-region': 'eu' })
  })

  test('of the host that name parameters are not taken for those of the tool', async () => {
    const headers = await call('modern http', { 'mcp-param-region': 'us', 'mcp-param-other': 'x' })
    expect(headers).toMatchObject({ 'mcp-param-region': 'eu' })
    expect(headers).not.toHaveProperty('mcp-param-other')
  })
})

test('a tool that runs as a task becomes the host’s task', async () => {
  await using gateway = await start(taskServer())
  await using host = await modernHttp.connect(gateway, { ...toWide, capabilities: { extensions: { [TASKS]: {} } } })
  const { resultType, taskId } = await callThrough(host, { name: 'a__must' })
  expect(resultType).toBe('task')
  expect(await host.call('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  await using legacy = await legacyHttp.connect(gateway, toWide)
  expect(await callThrough(legacy, { name: 'a__may' }, { task: { ttl: 1_000 } })).toMatchObject({ task: { status: 'working' } })
})

test('a tool that comes later is found, and the list of the three does not change', async () => {
  await using gateway = await start({ ...A, prompts: ['first'] })
  await using host = await legacyHttp.connect(gateway, toWide)
  const before = JSON.stringify(await host.call('tools/list'))
  expect(await search(host, { query: 'snapshot' })).toEqual([])
  const { catalog$ } = gateway.running.gateway.feed
  const known = firstValueFrom(catalog$.pipe(filter(({ index }) => index.tools.has('a__take_snapshot'))))
  gateway.fake('a').offers.tools.push({ name: 'take_snapshot', inputSchema: { type: 'object' } })
  gateway.fake('a').offers.prompts.push({ name: 'last' })
  gateway.fake('a').changed('tools')
  gateway.fake('a').changed('prompts')
  await known
  expect((await search(host, { query: 'snapshot' })).map(({ name }) => name)).toEqual(['a__take_snapshot'])
  expect(JSON.stringify(await host.call('tools/list'))).toBe(before)
  await host.heard.until(({ method }) => method === 'notifications/prompts/list_changed')
  expect(host.heard.entries.map(({ method }) => method)).not.toContain('notifications/tools/list_changed')
})

test('a list that grows over the budget of auto becomes the three, which is announced', async () => {
  await using gateway = await start(A, [toolsetOf({}, { name: 'wide', discovery: 'auto', budget: { tools: 4, tokens: 1_000 } })])
  await using host = await legacyHttp.connect(gateway, toWide)
  expect(await toolNames(host)).toHaveLength(4)
  gateway.fake('a').offers.tools.push({ name: 'take_snapshot', inputSchema: { type: 'object' } })
  gateway.fake('a').changed('tools')
  await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
  expect(await toolNames(host)).toEqual(OWN)
})

test('without prefixes a tool that bears the name of one of ours does not take its place', async () => {
  await using gateway = await start(fake.offering(CALL, 'x'), [{ ...WIDE, always: ['*'] }], {
    gateway: { prefix: 'never', toolsets: [{ ...WIDE, always: ['*'] }] },
  })
  await using host = await legacyHttp.connect(gateway, toWide)
  expect(await toolNames(host)).toEqual([...OWN, 'x', 'send_mail'])
  expect(textOf(await callThrough(host, { name: 'x', arguments: { n: 1 } }))).toBe('{"n":1}')
  expect(
    gateway
      .fake('a')
      .all('tools/call')
      .map(({ params }) => params['name']),
  ).toEqual(['x'])
})

test('at the path of one server the three know its tools by their own names', async () => {
  await using gateway = await start(A, [{ ...WIDE, name: 'default' }])
  await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
  expect(await toolNames(host)).toEqual([...OWN, 'list_machines'])
  expect((await search(host, { query: 'restart' }))[0]).toMatchObject({ name: 'restart_machine' })
  expect(textOf(await callThrough(host, { name: 'restart_machine', arguments: {} }))).toBe('{}')
})
