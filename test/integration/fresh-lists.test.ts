/** Lists that change without being announced, or a moment after it: what a host that asks for them gets (BRIDGING 3.22; B285). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, toolNames } from '../support/fake-host.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const tool = (name: string): JsonMap => ({ name, inputSchema: { type: 'object' } })
const isToolsChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
const ALWAYS = { freshMs: 0 }
const KINDS: FakeKind[] = ['legacy stdio', 'legacy http', 'legacy sse', 'modern stdio', 'modern http']
/** Modern servers say with it that nothing may be kept. */
const listed = (tools: readonly JsonMap[]): JsonMap => ({ tools: [...tools], ttlMs: 0, cacheScope: 'private' })

describe.each(everyTransport)('over $name', ({ connect }) => {
  test.each(KINDS)('B285 a %s server that changes its list without a word: the next list is the new one', async (kind) => {
    const tools = [tool('one')]
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['one'], on: { 'tools/list': () => listed(tools) } }) },
      gateway: ALWAYS,
    })
    await using host = await connect(gateway)
    expect(await toolNames(host)).toEqual(['a__one'])
    tools.push(tool('two'))
    expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
  })
})

test('B128 B285 a change that a request for a later page finds is announced: it may be on an earlier page', async () => {
  const tools = [tool('one'), tool('two'), tool('three')]
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['one'], on: { 'tools/list': () => listed(tools) } }) },
    gateway: { ...ALWAYS, pageMaxItems: 2 },
  })
  await using host = await legacyHttp.connect(gateway)
  const { nextCursor } = await host.call('tools/list')
  tools[0] = tool('uno')
  await host.call('tools/list', { cursor: nextCursor })
  await host.heard.until(isToolsChanged)
  expect(await toolNames(host)).toEqual(['a__uno', 'a__two'])
})

test('B285 a list that was read a moment ago is not read again', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('one') }, gateway: { freshMs: 3_600_000 } })
  await using host = await legacyHttp.connect(gateway)
  const before = gateway.fake('a').all('tools/list').length
  for (let n = 0; n < 5; n++) await toolNames(host)
  expect(gateway.fake('a').all('tools/list')).toHaveLength(before)
})

test('B285 a server that is slow to list: the old list is served, and the difference announced', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('one') }, gateway: ALWAYS })
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  const release = Promise.withResolvers<void>()
  a.on('tools/list', async () => {
    await release.promise
    return { tools: [tool('one'), tool('two')] }
  })
  expect(await toolNames(host)).toEqual(['a__one'])
  release.resolve()
  await host.heard.until(isToolsChanged)
  expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
})

test('B285 a lifetime that a modern server gave is believed', async () => {
  const lists = (ttlMs: number) => ({
    kind: 'modern http' as const,
    on: { 'tools/list': () => ({ tools: [tool('one')], ttlMs, cacheScope: 'private' }) },
  })
  await using gateway = await startGateway({
    servers: { kept: fake.of(lists(3_600_000)), never: fake.of(lists(0)) },
    gateway: ALWAYS,
  })
  await using host = await legacyHttp.connect(gateway)
  const counts = (): number[] => ['kept', 'never'].map((key) => gateway.fake(key).all('tools/list').length)
  const before = counts()
  await toolNames(host)
  const [kept, never] = counts()
  expect(kept).toBe(before[0])
  expect(never).toBe(before[1]! + 1)
})

test('B285 a list asked for right after it was announced to have changed is the new one, whatever its age', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['one'] }) },
    gateway: { freshMs: 3_600_000 },
  })
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  a.on('tools/call', ({ connection }) => {
    a.offers.tools.push(tool('two'))
    connection.notify('notifications/tools/list_changed')
    return { content: [] }
  })
  await host.call('tools/call', { name: 'a__one' })
  expect(await toolNames(host)).toEqual(['a__one', 'a__two'])
})

test('B285 what a process of a session lists to it alone is seen by its next list, announced or not', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['add'] }) }, gateway: ALWAYS })
  await using host = await legacyHttp.connect(gateway)
  await using other = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  const added = new Set<unknown>()
  a.on('tools/list', ({ connection }) => ({ tools: ['add', ...(added.has(connection) ? ['two'] : [])].map(tool) }))
  a.on('tools/call', ({ connection }) => {
    added.add(connection)
    return { content: [] }
  })
  await host.call('tools/call', { name: 'a__add' })
  expect(await toolNames(host)).toEqual(['a__add', 'a__two'])
  expect(await toolNames(other)).toEqual(['a__add'])
})

test('B285 a lazy server that is not running is not started by a list', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['one'] }) },
    options: { a: { start: 'lazy' } },
    gateway: ALWAYS,
  })
  await using host = await legacyHttp.connect(gateway)
  expect(await toolNames(host)).toEqual(['a__one'])
})
