/** Servers that list something on one connection alone: of a session, of a principal, or shared by all (BRIDGING 3.7, 3.20). */
import { expect, test } from 'vitest'
import type { ServerOptions } from '../../src/downstream/options.ts'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, legacySse, modernHttp, toolNames } from '../support/fake-host.ts'
import type { FakeConnection } from '../support/fakes/connection.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const tool = (name: string): JsonMap => ({ name, inputSchema: { type: 'object' } })
const isToolsChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'

/** A gateway whose server shows the tool `secret` on every connection on which `reveal` was called. */
const startRevealing = async (kind: FakeKind, options: Partial<ServerOptions> = {}) => {
  const revealed = new Set<FakeConnection>()
  const gateway = await startGateway({
    servers: {
      a: fake.of({
        kind,
        tools: ['reveal'],
        on: {
          'tools/list': ({ connection }) => ({ tools: ['reveal', ...(revealed.has(connection) ? ['secret'] : [])].map(tool) }),
          'tools/call': ({ params, connection }) => {
            if (params['name'] === 'reveal') {
              revealed.add(connection)
              connection.notify('notifications/tools/list_changed')
            }
            return { content: [{ type: 'text', text: String(params['name']) }] }
          },
        },
      }),
      b: fake.offering('other'),
    },
    options: { a: options },
  })
  return { gateway, revealed }
}

test.each<FakeKind>(['legacy http', 'legacy sse', 'legacy stdio'])(
  'B056 what a %s server reveals to a session is listed to it alone, announced and callable',
  async (kind) => {
    const { gateway } = await startRevealing(kind)
    await using _ = gateway
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacySse.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    const common = ['a__reveal', 'b__other']
    await two.call('tools/call', { name: 'b__other' })
    await one.call('tools/call', { name: 'a__reveal' })
    await one.heard.until(isToolsChanged)
    expect(await toolNames(one)).toEqual(['a__reveal', 'a__secret', 'b__other'])
    expect([await toolNames(two), await toolNames(modern)]).toEqual([common, common])
    expect(await one.call('tools/call', { name: 'a__secret' })).toEqual({ content: [{ type: 'text', text: 'secret' }] })
    expect(two.heard.entries.filter(isToolsChanged)).toEqual([])
  },
)

test.each<FakeKind>(['legacy sse', 'legacy stdio'])(
  'what a %s server revealed to a session is gone with its link, which is announced',
  async (kind) => {
    const { gateway, revealed } = await startRevealing(kind)
    await using _ = gateway
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__reveal' })
    await host.heard.until(isToolsChanged)
    host.heard.clear()
    for (const connection of revealed) connection.drop()
    await host.heard.until(isToolsChanged)
    expect(await toolNames(host)).toEqual(['a__reveal', 'b__other'])
  },
)

test('B128 a change for everybody reaches a session with lists of its own, too, and what it alone sees stays', async () => {
  const { gateway, revealed } = await startRevealing('legacy stdio')
  await using _ = gateway
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__reveal' })
  await host.heard.until(isToolsChanged)
  host.heard.clear()
  const a = gateway.fake('a')
  const everybody = (connection: FakeConnection): string[] => ['reveal', 'third', ...(revealed.has(connection) ? ['secret'] : [])]
  a.on('tools/list', ({ connection }) => ({ tools: everybody(connection).map(tool) }))
  a.connections[0]!.notify('notifications/tools/list_changed')
  await host.heard.until(isToolsChanged)
  expect(await toolNames(host)).toEqual(['a__reveal', 'a__third', 'a__secret', 'b__other'])
})

test.each<FakeKind>(['legacy http', 'legacy sse'])(
  'B129 a %s server that announces one change on every connection is read over its main one',
  async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['one'] }) } })
    const a = gateway.fake('a')
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyHttp.connect(gateway)
    for (const host of [one, two]) await host.call('tools/call', { name: 'a__one' })
    a.offers.tools.push(tool('two'))
    const before = a.all('tools/list').length
    for (const connection of a.connections) connection.notify('notifications/tools/list_changed')
    for (const host of [one, two]) await host.heard.until(isToolsChanged)
    expect(await toolNames(one)).toEqual(['a__one', 'a__two'])
    expect(a.all('tools/list').length - before).toBe(1)
    for (const host of [one, two]) expect(host.heard.entries.filter(isToolsChanged)).toHaveLength(1)
  },
)

test.each(['principal', 'shared'] as const)(
  'B128 with sharing: %s a change is read over the connection that announced it, and holds for all that share it',
  async (sharing) => {
    const { gateway, revealed } = await startRevealing('legacy stdio', { sharing })
    await using _ = gateway
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacySse.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    await one.call('tools/call', { name: 'a__reveal' })
    await Promise.all([one, two].map((host) => host.heard.until(isToolsChanged)))
    for (const host of [one, two, modern]) expect(await toolNames(host)).toEqual(['a__reveal', 'a__secret', 'b__other'])
    for (const host of [one, two]) expect(host.heard.entries.filter(isToolsChanged)).toHaveLength(1)
    for (const host of [one, two]) host.heard.clear()
    for (const connection of revealed) connection.drop()
    await Promise.all([one, two].map((host) => host.heard.until(isToolsChanged)))
    expect(await toolNames(one)).toEqual(['a__reveal', 'b__other'])
  },
)

test('B128 what a server announces on the connection of hosts without a session is listed to them, and to no session', async () => {
  const { gateway } = await startRevealing('legacy stdio')
  await using _ = gateway
  await using modern = await modernHttp.connect(gateway)
  await using session = await legacyHttp.connect(gateway)
  const pending = modern.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await pending.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  await modern.call('tools/call', { name: 'a__reveal' })
  await pending.messages.until(isToolsChanged)
  expect(await toolNames(modern)).toEqual(['a__reveal', 'a__secret', 'b__other'])
  expect(await toolNames(session)).toEqual(['a__reveal', 'b__other'])
})

test('B156 a further change on that connection outdates their list at once, until it has been read again', async () => {
  const { gateway, revealed } = await startRevealing('legacy stdio')
  await using _ = gateway
  await using modern = await modernHttp.connect(gateway)
  const a = gateway.fake('a')
  const pending = modern.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await pending.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  await modern.call('tools/call', { name: 'a__reveal' })
  await pending.messages.until(isToolsChanged)
  expect((await modern.call('tools/list'))['ttlMs']).toBeGreaterThan(0)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  a.on('tools/list', async ({ connection }) => {
    if (!revealed.has(connection)) return { tools: [tool('reveal')] }
    await released
    return { tools: ['reveal', 'secret', 'third'].map(tool) }
  })
  pending.messages.clear()
  await modern.call('tools/call', { name: 'a__reveal' })
  expect(await modern.call('tools/list')).toMatchObject({
    tools: ['a__reveal', 'a__secret', 'b__other'].map((name) => ({ name })),
    ttlMs: 0,
  })
  release()
  await pending.messages.until(isToolsChanged)
  const list = await modern.call('tools/list')
  expect(list['tools']).toHaveLength(4)
  expect(list['ttlMs']).toBeGreaterThan(0)
})

test('B056 with dynamic_lists the lists of a session are read as soon as its connection is open', async () => {
  const { gateway } = await startRevealing('legacy stdio', { dynamicLists: true })
  await using _ = gateway
  const a = gateway.fake('a')
  a.on('tools/list', ({ connection }) => ({
    tools: ['reveal', ...(connection === a.connections[0] ? [] : ['own'])].map(tool),
  }))
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__reveal' })
  await host.heard.until(isToolsChanged)
  expect(await toolNames(host)).toEqual(['a__reveal', 'a__own', 'b__other'])
})

test('B056 F-25 what a session sees on its link to a server that was started again stays when a call ends on the link before', async () => {
  const revealed = new Set<FakeConnection>()
  const waited = Promise.withResolvers<JsonMap>()
  const server = fake.of({
    kind: 'legacy stdio',
    tools: ['reveal'],
    on: {
      'tools/list': ({ connection }) => ({ tools: ['reveal', ...(revealed.has(connection) ? ['secret'] : [])].map(tool) }),
      'tools/call': ({ params, connection }) => {
        if (params['name'] === 'wait') return waited.promise
        revealed.add(connection)
        connection.notify('notifications/tools/list_changed')
        return { content: [] }
      },
    },
  })
  await using gateway = await startGateway({ servers: { a: server }, gateway: { freshMs: 600_000 } })
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  /** Resolves once what the own link reveals was read, and is listed. */
  const reveal = async (): Promise<void> => {
    await host.call('tools/call', { name: 'a__reveal' })
    const latest = [...revealed].at(-1)
    await a.until('tools/list', ({ connection }) => connection === latest)
    while (!(await toolNames(host)).includes('a__secret'));
  }
  await reveal()
  const pending = host.begin('tools/call', { name: 'a__wait' })
  const before = (await a.until('tools/call', ({ params }) => params['name'] === 'wait')).connection
  gateway.running.fleet.restart('a', 60_000)
  await gateway.ready()
  await reveal()
  waited.resolve({ content: [] })
  await pending.response
  await before.closed
  expect(await toolNames(host)).toEqual(['a__reveal', 'a__secret'])
})
