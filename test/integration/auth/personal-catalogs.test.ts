/** So many catalogs of single callers are kept; whose was dropped notices nothing (B250, T-29). */
import { expect, test } from 'vitest'
import type { Caller } from '../../../src/rpc/call.ts'
import type { ChangedList } from '../../../src/wire/protocol/methods.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { modernPipe } from '../../support/fake-host.ts'
import { asPrincipal, startGateway } from '../../support/gateway.ts'

const ECHO = { name: 'a__echo', arguments: {} }
const LISTED = { tools: [{ name: 'a__echo' }, { name: 'b__echo' }] }

const scene = async () => {
  const gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }), b: fake.of({ kind: 'modern http', tools: ['echo'] }) },
    options: { a: { credential: PER_USER }, b: { credential: PER_USER } },
    gateway: { maxPersonalCatalogs: 1 },
  })
  /** A handshake may begin to read the caller's lists: they are known when this resolves. */
  const meet = async (principal: string) => {
    const host = await modernPipe.connect(asPrincipal(gateway, principal))
    await host.call('tools/list')
    return host
  }
  const dropped = () => gateway.running.limits.all.find(({ option }) => option === 'limits.personal_catalogs')?.count ?? 0
  return { gateway, meet, dropped, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() }
}

test('B250 a caller whose catalog was dropped calls, lists and watches as before, over the connections it has', async () => {
  await using stage = await scene()
  const { gateway, dropped } = stage
  const { feed } = gateway.running.gateway
  await using ann = await stage.meet('ann')
  await using bob = await stage.meet('bob')
  expect(await ann.call('tools/list')).toMatchObject(LISTED)
  const told: string[] = []
  const watching = { principal: 'ann', scope: EVERYTHING, revision: '2026-07-28', capabilities: {} } as Caller
  const listener = { changed: (list: ChangedList) => void told.push(list) }
  feed.watchers.watch(watching, listener)
  const before = dropped()
  for (const times of [1, 2]) {
    expect(await bob.call('tools/list')).toMatchObject(LISTED)
    expect(dropped() - before).toBe(2 * times - 1)
    expect(await ann.call('tools/call', ECHO)).toMatchObject({ resultType: 'complete' })
    expect(dropped() - before).toBe(2 * times)
  }
  await bob.call('tools/list')
  gateway.running.gateway.apply(gateway.running.configuration.gateway)
  expect(told).toEqual([])
  feed.watchers.unwatch(listener)
  expect(gateway.fake('a').all('server/discover')).toHaveLength(2)
})

test('B250 one whose connections were closed meanwhile, too, has them opened again by its next call', async () => {
  await using stage = await scene()
  await using ann = await stage.meet('ann')
  await using bob = await stage.meet('bob')
  await ann.call('tools/list')
  const before = stage.dropped()
  for (const { personal } of stage.gateway.running.fleet.downstreams$.value) personal?.sweep(Infinity)
  await bob.call('tools/list')
  expect(stage.dropped() - before).toBe(1)
  expect(await ann.call('tools/call', ECHO)).toMatchObject({ resultType: 'complete' })
  expect(await ann.call('tools/list')).toMatchObject(LISTED)
})

test('F-22 F-25 a server that a reload has removed, with a call of one caller in flight, delays no end of the gateway', async () => {
  await using stage = await scene()
  const { gateway, meet } = stage
  await using ann = await meet('ann')
  gateway.fake('a').on('tools/call', fake.never)
  const pending = ann.call('tools/call', ECHO)
  await gateway.fake('a').until('tools/call')
  const { fleet } = gateway.running
  fleet.apply([], new Set(), 60_000)
  await fleet.stop()
  await expect(pending).resolves.toMatchObject({ isError: true })
}, 10_000)

test('B250 B128 after a reload that ends the sign-in per caller all callers have the lists of the server, also those that had their own', async () => {
  await using stage = await scene()
  const { gateway, meet } = stage
  await using ann = await meet('ann')
  expect(await ann.call('tools/list')).toMatchObject(LISTED)
  gateway.fake('a').offers.tools.splice(0, 1, { name: 'other', inputSchema: { type: 'object' } })
  const { configuration } = gateway.running
  const servers = configuration.servers.map((server) => (server.key === 'a' ? { ...server, credential: undefined } : server))
  await gateway.running.apply({ ...configuration, servers }, new Set(['a']))
  await gateway.ready()
  const now = { tools: [{ name: 'a__other' }, { name: 'b__echo' }] }
  expect(await ann.call('tools/list')).toMatchObject(now)
  await using bob = await meet('bob')
  expect(await bob.call('tools/list')).toMatchObject(now)
  expect(await ann.call('tools/call', { name: 'a__other', arguments: {} })).toMatchObject({ resultType: 'complete' })
})
