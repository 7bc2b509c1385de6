/** Servers that list something to one session alone (`dynamic_lists`; BRIDGING 3.20). */
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, legacySse, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { FakeConnection } from '../support/fakes/connection.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const tool = (name: string): JsonMap => ({ name, inputSchema: { type: 'object' } })
const names = async (host: Host): Promise<unknown[]> =>
  ((await host.call('tools/list'))['tools'] as JsonMap[]).map(({ name }) => name)
const isToolsChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'

/** A gateway whose server shows the tool `secret` on every connection on which `reveal` was called. */
const startRevealing = async (kind: FakeKind, dynamicLists: boolean) => {
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
    options: { a: { dynamicLists } },
  })
  return { gateway, revealed }
}

test.each<FakeKind>(['legacy http', 'legacy sse', 'legacy stdio'])(
  'B056 what a %s server reveals to a session is listed to it alone, announced and callable',
  async (kind) => {
    const { gateway } = await startRevealing(kind, true)
    await using _ = gateway
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacySse.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    const common = ['a__reveal', 'b__other']
    await two.call('tools/call', { name: 'b__other' })
    await one.call('tools/call', { name: 'a__reveal' })
    await one.heard.until(isToolsChanged)
    expect(await names(one)).toEqual(['a__reveal', 'a__secret', 'b__other'])
    expect([await names(two), await names(modern)]).toEqual([common, common])
    expect(await one.call('tools/call', { name: 'a__secret' })).toEqual({ content: [{ type: 'text', text: 'secret' }] })
    for (const host of [two, modern])
      await expect(host.call('tools/call', { name: 'a__secret' })).rejects.toMatchObject({ code: -32602 })
    expect(two.heard.entries.filter(isToolsChanged)).toEqual([])
  },
)

test.each<FakeKind>(['legacy sse', 'legacy stdio'])(
  'what a %s server revealed to a session is gone with its link, which is announced',
  async (kind) => {
    const { gateway, revealed } = await startRevealing(kind, true)
    await using _ = gateway
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__reveal' })
    await host.heard.until(isToolsChanged)
    host.heard.clear()
    for (const connection of revealed) connection.drop()
    await host.heard.until(isToolsChanged)
    expect(await names(host)).toEqual(['a__reveal', 'b__other'])
  },
)

test('B128 a change for everybody reaches a session with lists of its own, too, and what it alone sees stays', async () => {
  const { gateway, revealed } = await startRevealing('legacy stdio', true)
  await using _ = gateway
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__reveal' })
  await host.heard.until(isToolsChanged)
  host.heard.clear()
  const a = gateway.fake('a')
  const everybody = (connection: FakeConnection): string[] => ['reveal', 'third', ...(revealed.has(connection) ? ['secret'] : [])]
  a.on('tools/list', ({ connection }) => ({ tools: everybody(connection).map(tool) }))
  a.connections[0].notify('notifications/tools/list_changed')
  await host.heard.until(isToolsChanged)
  expect(await names(host)).toEqual(['a__reveal', 'a__third', 'a__secret', 'b__other'])
})

test('B056 without dynamic_lists everybody is listed what the catalogue link is', async () => {
  const { gateway } = await startRevealing('legacy stdio', false)
  await using _ = gateway
  await using host = await legacyHttp.connect(gateway)
  const a = gateway.fake('a')
  await host.call('tools/call', { name: 'a__reveal' })
  await a.until('tools/list')
  expect(a.all('tools/list').every(({ connection }) => connection === a.connections[0])).toBe(true)
  expect(await names(host)).toEqual(['a__reveal', 'b__other'])
})
