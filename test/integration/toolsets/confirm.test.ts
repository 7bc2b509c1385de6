/** Tools whose calls a person is asked about: by the way of each era, bound to caller, tool and arguments, and never slipped by. */
import { describe, expect, test } from 'vitest'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import type { PolicyRule } from '../../../src/policy/options.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { everyLegacyTransport, everyTransport, legacyHttp, modernHttp, modernPipe } from '../../support/fake-host.ts'
import type { Host, HostOptions } from '../../support/fake-host.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { identityOf, toolsetOf } from '../../support/toolsets.ts'

const OPS = toolsetOf({}, { name: 'ops', confirm: ['*__delete_*'] })
const able: HostOptions = { toolset: 'ops', capabilities: { elicitation: { form: {} } } }
const CALL = { name: 'a__delete_repo', arguments: { repo: 'x' } }
const DECLINED = { isError: true, content: [{ type: 'text', text: 'declined by the user' }] }

const start = (spec: FakeSpec = {}, toolsets: readonly ToolsetOptions[] = [OPS]): Promise<TestGateway> =>
  startGateway({
    servers: { a: fake.of({ tools: ['delete_repo', 'list_repos'], ...spec }) },
    gateway: { toolsets },
  })

/** A call to its end; `answer`: what the person says. Legacy hosts are asked while it is open. */
const callWith = async (host: Host, answer: JsonMap, asked: JsonMap[] = [], call: JsonMap = CALL): Promise<JsonMap> => {
  if (host.era === 'legacy') {
    host.answer('elicitation/create', (params) => (asked.push(params), answer))
    return host.call('tools/call', call)
  }
  const { inputRequests, requestState } = await host.call('tools/call', call)
  const [key, request] = Object.entries(inputRequests as Record<string, { params: JsonMap }>)[0]!
  asked.push(request.params)
  return host.call('tools/call', { ...call, requestState, inputResponses: { [key]: answer } })
}

describe.each(everyTransport)('a host over $name', ({ connect, era }) => {
  test.each(everyFakeKind)('asks its person first, and the call reaches the %s server only then', async (kind) => {
    await using gateway = await start({ kind })
    await using host = await connect(gateway, able)
    const asked: JsonMap[] = []
    expect(await callWith(host, { action: 'accept' }, asked)).toMatchObject({ content: [{ text: '{"repo":"x"}' }] })
    expect(asked).toEqual([
      {
        mode: 'form',
        message: 'Toolset ops asks before each call of a__delete_repo. Call it with {"repo":"x"}?',
        requestedSchema: { type: 'object', properties: {} },
      },
    ])
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => [params['name'], params['arguments']]),
    ).toEqual([['delete_repo', { repo: 'x' }]])
    expect(gateway.fake('a').all('tools/call')[0]!.params).not.toHaveProperty('inputResponses')
  })

  test.each(['decline', 'cancel'])('told %s, ends the call as declined, and the server hears nothing', async (action) => {
    await using gateway = await start()
    await using host = await connect(gateway, able)
    expect(await callWith(host, { action })).toMatchObject(DECLINED)
    expect(gateway.fake('a').received).toEqual([])
  })

  test('that cannot ask is refused with the toolset and the option', async () => {
    await using gateway = await start()
    await using host = await connect(gateway, { toolset: 'ops' })
    const words = /a person must be asked before each call of a__delete_repo \(toolsets\.ops\.confirm\)/
    if (era === 'modern') {
      const data = { requiredCapabilities: { elicitation: { form: {} } } }
      await expect(host.call('tools/call', CALL)).rejects.toMatchObject({
        code: -32021,
        message: expect.stringMatching(words),
        data,
      })
    } else {
      const text = expect.stringMatching(words)
      expect(await host.call('tools/call', CALL)).toMatchObject({ isError: true, content: [{ text }] })
    }
    expect(gateway.fake('a').received).toEqual([])
  })

  test('asks nobody about other tools, nor in other toolsets', async () => {
    await using gateway = await start({}, [OPS, toolsetOf({}, { name: 'free' })])
    await using host = await connect(gateway, able)
    expect(await host.call('tools/call', { name: 'a__list_repos' })).toMatchObject({ content: [{ text: 'null' }] })
    await using free = await connect(gateway, { toolset: 'free' })
    expect(await free.call('tools/call', CALL)).toMatchObject({ content: [{ text: '{"repo":"x"}' }] })
  })
})

test.each([legacyHttp, modernHttp])(
  'B260 a person is asked at the path of the server alone, too, over $name',
  async ({ connect }) => {
    await using gateway = await start({}, [toolsetOf({}, { name: 'free' }), { ...OPS, name: 'default' }])
    await using host = await connect(gateway, { ...able, path: '/servers/a/mcp' })
    expect(await callWith(host, { action: 'decline' }, [], { ...CALL, name: 'delete_repo' })).toMatchObject(DECLINED)
    expect(gateway.fake('a').received).toEqual([])
  },
)

test.each(everyLegacyTransport)('a person is asked by us and then by the server, over $name', async ({ connect }) => {
  const asks = (turn: { params: JsonMap }): JsonMap =>
    turn.params['inputResponses'] === undefined
      ? {
          resultType: 'input_required',
          inputRequests: {
            sure: {
              method: 'elicitation/create',
              params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
            },
          },
        }
      : { content: [{ type: 'text', text: 'gone' }] }
  await using gateway = await start({ kind: 'modern http', on: { 'tools/call': asks } })
  await using host = await connect(gateway, able)
  const asked: unknown[] = []
  host.answer('elicitation/create', ({ message }) => (asked.push(message), { action: 'accept', content: {} }))
  expect(await host.call('tools/call', CALL)).toMatchObject({ content: [{ text: 'gone' }] })
  expect(asked).toEqual([expect.stringMatching(/^Toolset ops asks/), 'Sure?'])
})

describe('the state of a question', () => {
  const ask = async (host: Host, call: JsonMap = CALL): Promise<JsonMap> => {
    const { requestState } = await host.call('tools/call', call)
    return { ...call, requestState, inputResponses: { confirm: { action: 'accept' } } }
  }

  test.each([7, true, {}, ['x']])('T-06 is never %j: the call is refused, not let through', async (requestState) => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway, able)
    for (const more of [{}, { inputResponses: { confirm: { action: 'accept' } } }])
      await expect(host.call('tools/call', { ...CALL, requestState, ...more })).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('T-06 is absent where it is null: the person is asked, as at a first call', async () => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway, able)
    const asked = await host.call('tools/call', { ...CALL, requestState: null })
    expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { confirm: { method: 'elicitation/create' } } })
    const answered = { ...CALL, requestState: null, inputResponses: { confirm: { action: 'accept' } } }
    await expect(host.call('tools/call', answered)).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test.each([7, null, ''])('T-06 means nothing in a session (%j): the person is asked', async (requestState) => {
    await using gateway = await start()
    await using host = await legacyHttp.connect(gateway, able)
    host.answer('elicitation/create', () => ({ action: 'decline' }))
    expect(await host.call('tools/call', { ...CALL, requestState })).toMatchObject(DECLINED)
    expect(gateway.fake('a').received).toEqual([])
  })

  test('is good for the same tool and arguments alone', async () => {
    await using gateway = await start({ tools: ['delete_repo', 'delete_all'] })
    await using host = await modernHttp.connect(gateway, able)
    const retry = await ask(host)
    for (const change of [{ name: 'a__delete_all' }, { arguments: { repo: 'y' } }, { arguments: { repo: 'x', force: true } }])
      await expect(host.call('tools/call', { ...retry, ...change })).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('is good once', async () => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway, able)
    const retry = await ask(host)
    await host.call('tools/call', retry)
    await expect(host.call('tools/call', retry)).rejects.toMatchObject({ code: -32602, message: 'requestState already used' })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('is good once, also where a reload has lowered limits.park_ttl since the question', async () => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway, able)
    const retries = [await ask(host), await ask(host)]
    const { configuration } = gateway.running
    const { gateway: options } = configuration
    const next = { ...configuration, gateway: { ...options, parking: { ...options.parking, ttlMs: 0 } } }
    await gateway.running.apply(next, new Set())
    for (const retry of retries) await host.call('tools/call', retry)
    for (const retry of retries)
      await expect(host.call('tools/call', retry)).rejects.toMatchObject({ code: -32602, message: 'requestState already used' })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  })

  test('is good for its own principal and toolset alone', async () => {
    await using gateway = await start({}, [OPS, { ...OPS, name: 'other' }])
    await using ana = await modernPipe.connect(gateway, { ...able, identity: identityOf('ana') })
    await using bob = await modernPipe.connect(gateway, { ...able, identity: identityOf('bob') })
    await using beside = await modernPipe.connect(gateway, { ...able, toolset: 'other', identity: identityOf('ana') })
    const retry = await ask(ana)
    for (const host of [bob, beside]) await expect(host.call('tools/call', retry)).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('cannot be made up: forged, of another kind or without an answer, nothing reaches the server', async () => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway, able)
    const retry = await ask(host)
    const forged = ['', 'x', `${String(retry['requestState'])}A`, String(retry['requestState']).replace(/.$/, '_')]
    for (const requestState of forged)
      await expect(host.call('tools/call', { ...retry, requestState })).rejects.toMatchObject({ code: -32602 })
    for (const confirm of ['yes', { action: 'yes' }, {}, { action: 'accept', content: 'x' }])
      await expect(host.call('tools/call', { ...retry, inputResponses: { confirm } })).rejects.toMatchObject({ code: -32602 })
    for (const inputResponses of [{}, { other: { action: 'accept' } }])
      expect(await host.call('tools/call', { ...retry, inputResponses })).toMatchObject({ resultType: 'input_required' })
    expect(await host.call('tools/call', { ...CALL, inputResponses: { confirm: { action: 'accept' } } })).toMatchObject({
      resultType: 'input_required',
    })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('a legacy host cannot bring one at all', async () => {
    await using gateway = await start()
    await using host = await legacyHttp.connect(gateway, able)
    host.answer('elicitation/create', () => ({ action: 'decline' }))
    const given = { ...CALL, requestState: 'x', inputResponses: { confirm: { action: 'accept' } } }
    expect(await host.call('tools/call', given)).toMatchObject(DECLINED)
    expect(gateway.fake('a').received).toEqual([])
  })
})

test('a tool that is known only later is asked about all the same', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['delete_repo'], on: { 'tools/list': fake.never } }) },
    gateway: { toolsets: [OPS] },
    early: true,
  })
  await using host = await modernPipe.connect(gateway, able)
  const pending = host.begin('tools/call', CALL)
  const turn = await gateway.fake('a').until('tools/list')
  turn.answer({ tools: [{ name: 'delete_repo', inputSchema: { type: 'object' } }] })
  expect((await pending.response).result).toMatchObject({ resultType: 'input_required' })
  expect(gateway.fake('a').all('tools/call')).toEqual([])
})

test('what a person reads cannot be reordered or overwritten by the arguments', async () => {
  await using gateway = await start()
  await using host = await modernHttp.connect(gateway, able)
  const { inputRequests } = await host.call('tools/call', { ...CALL, arguments: { repo: 'x\u202egnp' } })
  const { confirm } = inputRequests as { confirm: { params: { message: string } } }
  expect(confirm.params.message).toContain('{"repo":"xgnp"}')
})

test('B171 an app that uses the original name of a tool has its person asked about the name in lists', async () => {
  const tools = [
    { name: 'open', inputSchema: {}, _meta: { ui: { resourceUri: 'ui://panel' } } },
    { name: 'delete_repo', inputSchema: {}, _meta: { ui: { visibility: ['app'] } } },
  ]
  await using gateway = await start({ tools })
  const ui = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  await using host = await modernHttp.connect(gateway, { ...able, capabilities: { ...able.capabilities, extensions: ui } })
  const asked: JsonMap[] = []
  await callWith(host, { action: 'accept' }, asked, { ...CALL, name: 'delete_repo' })
  expect(asked[0]?.['message']).toBe('Toolset ops asks before each call of a__delete_repo. Call it with {"repo":"x"}?')
})

describe('with a policy', () => {
  const startWith = (rule: Omit<PolicyRule, 'id'>): Promise<TestGateway> =>
    startGateway({
      servers: { a: fake.of({ tools: ['delete_repo', 'list_repos'] }) },
      gateway: { toolsets: [OPS] },
      policy: { otherwise: 'allow', rules: [{ ...rule, id: 'policy.rules[0]' }] },
    })

  test.each(everyTransport)('T-06 over $name nobody is asked about a call that a rule denies', async ({ connect }) => {
    await using gateway = await startWith({ when: 'call.arguments.repo == "x"', decision: 'deny', reason: 'Not this one.' })
    await using host = await connect(gateway, able)
    const asked: JsonMap[] = []
    host.answer('elicitation/create', (params) => (asked.push(params), { action: 'accept' }))
    await expect(host.call('tools/call', CALL)).resolves.toMatchObject({
      isError: true,
      content: [{ text: 'denied by policy: Not this one.' }],
    })
    expect(asked).toEqual([])
    expect(gateway.fake('a').received).toEqual([])
  })

  test.each(everyTransport)('over $name a person is asked once where toolset and rule ask', async ({ connect }) => {
    await using gateway = await startWith({ when: 'true', decision: 'confirm', reason: 'Sure?' })
    await using host = await connect(gateway, able)
    const asked: JsonMap[] = []
    expect(await callWith(host, { action: 'accept' }, asked)).toMatchObject({ content: [{ text: '{"repo":"x"}' }] })
    expect(asked).toHaveLength(1)
  })
})
