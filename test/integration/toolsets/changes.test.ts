/** Toolsets and OAuth scopes while things change: what is announced, what is taken away, what a token lacks. */
import { describe, expect, test } from 'vitest'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import { fake } from '../../support/fake-downstream.ts'
import { everyLegacyTransport, everyTransport, legacyPipe, modernPipe, toolNames } from '../../support/fake-host.ts'
import type { HostOptions } from '../../support/fake-host.ts'
import type { JsonMap, Message } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { identityOf, toolsetOf } from '../../support/toolsets.ts'

const isToolsChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
const add = (gateway: TestGateway, name: string): void => {
  gateway.fake('a').offers.tools.push({ name, inputSchema: { type: 'object' } })
  gateway.fake('a').changed('tools')
}
/** The same servers, other toolsets: what a reload does. */
const reload = ({ running }: TestGateway, toolsets: readonly ToolsetOptions[]): Promise<void> =>
  running.apply({ ...running.configuration, gateway: { ...running.configuration.gateway, toolsets } }, new Set())

describe.each(everyLegacyTransport)('over $name', ({ connect }) => {
  test('a change outside the toolset is not announced, one inside is', async () => {
    const toolsets = [toolsetOf({ tools: ['a__in*'] }, { name: 'some' })]
    await using gateway = await startGateway({ servers: { a: fake.offering('in1', 'out1') }, gateway: { toolsets } })
    await using some = await connect(gateway, { toolset: 'some' })
    await using all = await connect(gateway)
    add(gateway, 'out2')
    await all.heard.until(isToolsChanged)
    add(gateway, 'in2')
    await some.heard.until(isToolsChanged)
    expect(await toolNames(some)).toEqual(['a__in1', 'a__in2'])
    expect(some.heard.entries.filter(isToolsChanged)).toHaveLength(1)
  })

  test('a reload that changes the toolset is announced and in force for sessions that are open', async () => {
    const toolsets = [toolsetOf({ tools: ['a__one'] }, { name: 'some' })]
    await using gateway = await startGateway({ servers: { a: fake.offering('one', 'two') }, gateway: { toolsets } })
    await using host = await connect(gateway, { toolset: 'some' })
    await reload(gateway, [toolsetOf({ tools: ['a__two'] }, { name: 'some' })])
    await host.heard.until(isToolsChanged)
    expect(await toolNames(host)).toEqual(['a__two'])
    await expect(host.call('tools/call', { name: 'a__one' })).rejects.toMatchObject({ code: -32602 })
  })
})

test('a pipe whose toolset is taken away sees nothing any more', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['one'], resources: ['file:///r'] }) },
    gateway: { toolsets: [toolsetOf({}, { name: 'some' })] },
  })
  await using host = await legacyPipe.connect(gateway, { toolset: 'some' })
  await host.call('resources/subscribe', { uri: 'a+file:///r' })
  await reload(gateway, [])
  await host.heard.until(isToolsChanged)
  gateway.fake('a').updated('file:///r')
  expect(await toolNames(host)).toEqual([])
  await expect(host.call('tools/call', { name: 'a__one' })).rejects.toMatchObject({ code: -32602 })
  await expect(host.call('resources/read', { uri: 'a+file:///r' })).rejects.toMatchObject({ code: -32002 })
  expect(host.heard.entries.map(({ method }) => method)).not.toContain('notifications/resources/updated')
})

test('a list waits only for servers that the toolset could hold', async () => {
  const toolsets = [toolsetOf({ tools: ['a__*'] }, { name: 'some' })]
  await using gateway = await startGateway({
    servers: { a: fake.offering('one'), slow: fake.of({ on: { initialize: fake.never, 'server/discover': fake.never } }) },
    gateway: { toolsets, listBudgetMs: 3_600_000 },
    early: true,
  })
  await using host = await modernPipe.connect(gateway, { toolset: 'some' })
  expect(await toolNames(host)).toEqual(['a__one'])
})

describe.each(everyTransport)('stable over $name', ({ connect }) => {
  test('neither what a host calls itself nor what it can do changes what it sees', async () => {
    const toolsets = [toolsetOf({ tools: ['a__one'] }, { name: 'some' })]
    await using gateway = await startGateway({ servers: { a: fake.offering('one', 'two') }, gateway: { toolsets } })
    const seen = new Set<string>()
    for (const capabilities of [{}, { sampling: {} }, { elicitation: {}, roots: {} }])
      for (const name of ['cursor', 'ops', 'admin']) {
        const meta = { 'io.modelcontextprotocol/clientInfo': { name, version: '1' } }
        await using host = await connect(gateway, { toolset: 'some', capabilities, meta })
        seen.add((await toolNames(host)).join())
      }
    expect([...seen]).toEqual(['a__one'])
  })
})

describe('OAuth scopes', () => {
  const read = { annotations: { readOnlyHint: true } }
  const tool = (name: string, more: JsonMap = {}): JsonMap => ({ name, inputSchema: { type: 'object' }, ...more })
  const start = (toolsets: readonly ToolsetOptions[] = []): Promise<TestGateway> =>
    startGateway({
      servers: {
        a: fake.of({ tools: [tool('get', read), tool('put')], resources: ['file:///r'] }),
        b: fake.of({ tools: [tool('get', read)] }),
        c: fake.offering('free'),
      },
      options: { a: { trusted: true } },
      gateway: { toolsets, scopes: ['mcp:connect', 'mcp:a', 'mcp:a:write', 'mcp:b:write'] },
    })
  const as = (...scopes: string[]): HostOptions => ({ identity: identityOf('ana', { scopes }) })

  test.each([
    [['mcp:connect'], ['c__free']],
    [
      ['mcp:connect', 'mcp:a'],
      ['a__get', 'c__free'],
    ],
    [
      ['mcp:a', 'mcp:a:write'],
      ['a__get', 'a__put', 'c__free'],
    ],
    // Who may write may read.
    [['mcp:a:write'], ['a__get', 'a__put', 'c__free']],
    // What a server says of itself is not believed unless it is trusted: its tools take the right to write.
    [['mcp:b:write'], ['b__get', 'c__free']],
    [['mcp:other', 'mcp:a:read', 'openid'], ['c__free']],
  ])('granted %j, the list is %j, and nothing else can be called', async (scopes, expected) => {
    await using gateway = await start()
    await using host = await modernPipe.connect(gateway, as(...scopes))
    expect(await toolNames(host)).toEqual(expected)
    for (const name of ['a__get', 'a__put', 'b__get', 'c__free']) {
      const called = host.call('tools/call', { name })
      if (expected.includes(name)) expect(await called).toMatchObject({ content: [{ text: 'null' }] })
      else await expect(called).rejects.toMatchObject({ message: expect.stringContaining('insufficient_scope') })
    }
  })

  test('B238 what only the scopes hide is refused with all the scopes it takes; what does not exist is unknown', async () => {
    await using gateway = await start([toolsetOf({ tools: ['a__put'], resources: ['a+**'] }, { name: 'default' })])
    await using host = await modernPipe.connect(gateway, as('mcp:connect'))
    const refused = (call: Promise<unknown>, message: string) => expect(call).rejects.toMatchObject({ code: -32602, message })
    await refused(host.call('tools/call', { name: 'a__put' }), 'insufficient_scope: this takes mcp:a mcp:a:write')
    await refused(host.call('resources/read', { uri: 'a+file:///r' }), 'insufficient_scope: this takes mcp:a')
    await refused(host.call('tools/call', { name: 'a__get' }), 'Unknown tool: a__get')
    await refused(host.call('tools/call', { name: 'b__get' }), 'Unknown tool: b__get')
    expect(gateway.fake('a').received).toEqual([])
  })

  test('a credential without scopes is not limited by any, and one view serves all that differ in what does not matter', async () => {
    await using gateway = await start()
    await using host = await modernPipe.connect(gateway, { identity: identityOf('bob') })
    expect(await toolNames(host)).toHaveLength(4)
    const { core } = gateway.running.context
    const scopeOf = (...scopes: string[]) => core.scopeFor(identityOf('ana', { scopes }), {})
    expect(scopeOf('mcp:a', 'openid')).toBe(scopeOf('email', 'mcp:connect', 'mcp:a'))
    expect(scopeOf('mcp:a')).not.toBe(scopeOf('mcp:a:write'))
  })

  test('B260 a server that the scopes hide is no endpoint of its own', async () => {
    await using gateway = await start()
    const { core } = gateway.running.context
    const at = (server: string, ...scopes: string[]) => core.scopeFor(identityOf('ana', { scopes }), { server })
    expect(at('a', 'mcp:connect')).toBeUndefined()
    expect(at('a', 'mcp:a')).toEqual({ server: 'a', granted: 'mcp:a' })
  })
})

test('nothing is odd about a toolset before anything is known of the servers', async () => {
  const toolsets = [toolsetOf({ tools: ['a__in*'] }, { name: 'some', confirm: ['a__in*'] })]
  await using gateway = await startGateway({ servers: { a: fake.offering('in1') }, gateway: { toolsets } })
  await using host = await modernPipe.connect(gateway, { toolset: 'some' })
  expect(await toolNames(host)).toEqual(['a__in1'])
  expect(JSON.stringify(gateway.log.entries)).not.toContain('matches')
})
