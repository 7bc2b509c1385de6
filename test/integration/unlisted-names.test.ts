/** Names under the prefix of a server that no list shows: what is forwarded, and what a rule keeps (BRIDGING 3.20; B278). */
import { describe, expect, test } from 'vitest'
import { curated } from '../support/curation.ts'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { RpcError } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import { toolsetOf } from '../support/toolsets.ts'

const KINDS: FakeKind[] = ['legacy stdio', 'legacy http', 'modern http']
const hidden = (kind: FakeKind = 'legacy stdio') =>
  fake.of({
    kind,
    tools: ['shown'],
    prompts: ['shown'],
    on: {
      'tools/call': ({ params }) => ({
        content: [{ type: 'text', text: `ran ${String(params['name'])}` }],
        resultType: 'complete',
      }),
      'prompts/get': ({ params }) => ({ description: String(params['name']), messages: [], resultType: 'complete' }),
    },
  })
const RAN = { content: [{ type: 'text', text: 'ran hidden' }] }
const CALL = { name: 'a__hidden', arguments: {} }
const UNKNOWN = { code: -32602, message: 'Unknown tool: a__hidden' }

describe.each(everyTransport)('over $name', ({ connect }) => {
  test.each(KINDS)('B278 a tool and a prompt that a %s server does not list are called all the same', async (kind) => {
    await using gateway = await startGateway({ servers: { a: hidden(kind), b: fake.offering('x') } })
    await using host = await connect(gateway)
    expect(await host.call('tools/call', CALL)).toMatchObject(RAN)
    expect(await host.call('prompts/get', { name: 'a__hidden' })).toMatchObject({ description: 'hidden' })
    expect(gateway.fake('b').all('tools/call')).toEqual([])
  })
})

test('B285 a name that a rule keeps from being forwarded unlisted is called once a list shows it, announced or not', async () => {
  const tools = [{ name: 'shown', inputSchema: { type: 'object' } }]
  const a = fake.of({ kind: 'legacy stdio', tools: ['shown'], on: { 'tools/list': () => ({ tools }) } })
  await using gateway = await startGateway({
    servers: { a, b: fake.offering('x') },
    // What is new must be seen before it is called.
    options: { a: { onChange: 'hold' } },
    gateway: { freshMs: 0 },
  })
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/list')
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject(UNKNOWN)
  tools.push({ name: 'hidden', inputSchema: { type: 'object' } })
  expect(await host.call('tools/call', CALL)).toHaveProperty('content')
})

test('B278 it goes over the connection of its caller', async () => {
  await using gateway = await startGateway({ servers: { a: hidden() } })
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  for (const name of ['a__shown', 'a__hidden']) await host.call('tools/call', { name })
  const [shown, unlisted] = a.all('tools/call').map(({ connection }) => connection)
  expect(unlisted).toBe(shown)
  expect(unlisted).not.toBe(a.connections[0])
})

test('B278 what the server says of a name that it does not know is its own answer', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['shown'],
        on: {
          'tools/call': () => {
            throw new RpcError({ code: -32602, message: 'no such tool here' })
          },
        },
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining('no such tool here') as string,
  })
})

test.each<[string, object]>([
  ['a filter denies it', { filter: { deny: 'hid*' } }],
  ['a filter allows others', { filter: { allow: ['shown'] } }],
  ['a filter asks for hints', { trusted: true, filter: { annotations: { destructive: 'deny' } } }],
])('B278 it is unknown where %s', async (_, rules) => {
  await using gateway = await startGateway({ servers: { a: hidden() }, options: { a: await curated(rules) } })
  await using host = await modernHttp.connect(gateway)
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject(UNKNOWN)
  expect(gateway.fake('a').all('tools/call')).toEqual([])
})

test('B278 a filter that denies others, and asks for no hints, keeps nothing else from the server', async () => {
  await using gateway = await startGateway({
    servers: { a: hidden() },
    options: { a: await curated({ filter: { deny: 'other' } }) },
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', CALL)).toMatchObject(RAN)
})

test.each(['hold', 'quarantine'] as const)('B278 it is unknown where a lock is on_change: %s', async (onChange) => {
  await using gateway = await startGateway({ servers: { a: hidden() }, options: { a: { onChange } } })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject(UNKNOWN)
  expect(gateway.fake('a').all('tools/call')).toEqual([])
})

test.each([
  ['allows its name', { tools: ['a__*'] }, {}, true],
  ['names others', { tools: ['a__shown'] }, {}, false],
  ['asks for hints', { tools: ['a__*'], where: { readOnlyHint: true } }, {}, false],
  ['asks a person before', { tools: ['a__*'] }, { confirm: ['a__h*'] }, false],
] as const)('B278 at a toolset that %s', async (_, choice, more, isForwarded) => {
  await using gateway = await startGateway({
    servers: { a: hidden() },
    gateway: { toolsets: [toolsetOf(choice, { name: 'default', ...more })] },
  })
  await using host = await legacyHttp.connect(gateway)
  const called = host.call('tools/call', CALL)
  if (isForwarded) expect(await called).toMatchObject(RAN)
  else await expect(called).rejects.toMatchObject(UNKNOWN)
})

test.each(['constructor', 'toString', '__proto__'])('B278 a tool called %s is one like any other for a toolset', async (name) => {
  const toolsets = [
    toolsetOf({ tools: ['*'] }, { name: 'asks', confirm: [`a__${name}`] }),
    toolsetOf({ tools: ['a__*'] }, { name: 'allows' }),
  ]
  await using gateway = await startGateway({ servers: { a: hidden() }, gateway: { toolsets } })
  for (const toolset of ['asks', 'allows']) {
    await using host = await legacyHttp.connect(gateway, { toolset })
    const called = host.call('tools/call', { name: `a__${name}`, arguments: {} })
    if (toolset === 'asks') await expect(called).rejects.toMatchObject({ code: -32602 })
    else expect(await called).toMatchObject({ content: [{ text: `ran ${name}` }] })
  }
})

test('B278 what the server lists and a limit leaves out is unknown', async () => {
  const long = { name: 'hidden', description: 'x'.repeat(200), inputSchema: { type: 'object' } }
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['shown', long] }) },
    options: { a: { limits: { maxTextBytes: 100 } } },
  })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject(UNKNOWN)
})

test('B278 a bare name with several servers belongs to none', async () => {
  await using gateway = await startGateway({ servers: { a: hidden(), b: hidden() } })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', { name: 'hidden' })).rejects.toMatchObject({ code: -32602 })
})
