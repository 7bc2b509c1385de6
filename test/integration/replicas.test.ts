/** Two gateways of one configuration, each with a state folder of its own, behind a proxy that asks now one, now the other. */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { everyTransport, modernHttp } from '../support/fake-host.ts'
import { tokenOf, TWO_TOKENS } from '../support/credentials.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'
import { TIMES } from '../support/replicas.ts'

const setup = (more: Partial<GatewaySetup> = {}): GatewaySetup => ({
  servers: { a: fake.offering('a', 'b', 'c', 'd', 'e') },
  gateway: { pageMaxItems: 2 },
  ...more,
})
const KEY = '0123456789abcdef'.repeat(4)

describe.each(everyTransport)('over $name', ({ connect }) => {
  test('B117 a cursor of one replica is good at the other, without a common key where hosts bring no credential', async () => {
    await using one = await startGateway(setup())
    await using other = await startGateway(setup())
    await using host = await connect(one)
    await using again = await connect(other)
    const { nextCursor } = await host.call('tools/list')
    expect(await again.call('tools/list', { cursor: nextCursor })).toMatchObject({ tools: [{ name: 'a__c' }, { name: 'a__d' }] })
  })
})

test('a gateway that ends leaves the store that others share with it as it is', async () => {
  const store = new MemoryStore()
  await store.set('of-another', 'kept', 60_000)
  const one = await startGateway(setup({ store }))
  await one[Symbol.asyncDispose]()
  expect(await store.get('of-another')).toBe('kept')
})

test.each([
  ['with a common state.key', KEY, true],
  ['without one', undefined, false],
])('B117 a cursor of an authenticated host %s', async (_name, stateKey, isGood) => {
  const more = { host: { auth: TWO_TOKENS }, ...(stateKey !== undefined && { stateKey }) }
  await using one = await startGateway(setup(more))
  await using other = await startGateway(setup(more))
  await using host = await modernHttp.connect(one, { token: () => tokenOf('A') })
  await using again = await modernHttp.connect(other, { token: () => tokenOf('A') })
  await using stranger = await modernHttp.connect(other, { token: () => tokenOf('B') })
  const { nextCursor } = await host.call('tools/list')
  const second = again.call('tools/list', { cursor: nextCursor })
  if (isGood) expect(await second).toMatchObject({ tools: [{ name: 'a__c' }, { name: 'a__d' }] })
  else await expect(second).rejects.toMatchObject({ code: -32602 })
  await expect(stranger.call('tools/list', { cursor: nextCursor })).rejects.toMatchObject({ code: -32602 })
})

test('a replica with a wrong URL says so in its log', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  await using wrong = await startGateway(setup({ stateKey: KEY, replicaUrl: url, replicaTimes: TIMES }))
  expect(await wrong.log.until(({ text }) => text.includes('(replicas.url)'))).toMatchObject({ level: 'warn', facts: { url } })
})
