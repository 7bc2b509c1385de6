/** Processes that wait for a session: where there are none, and when they end (DECISIONS 3). */
import { expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const CALL = { name: 'a__t', arguments: {} }

const slow = (spare: GatewaySetup['spare']): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) }, options: { a: { spare: 1 } }, spare })

const openOf = (gateway: TestGateway): number => gateway.fake('a').connections.filter(({ isOpen }) => isOpen).length
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10))
}

test('with no host, and with modern hosts alone, there is one process for the lists and one for each caller', async () => {
  await using gateway = await slow({ minStartMs: 0 })
  expect(gateway.running.fleet.get('a')?.dialer.processes).toHaveLength(1)
  await using host = await modernHttp.connect(gateway)
  await host.call('tools/call', CALL)
  expect(gateway.running.fleet.get('a')?.dialer.processes).toHaveLength(2)
})

test('the first legacy session brings a spare, which the next one is given, and idleness ends it', async () => {
  await using gateway = await slow({ minStartMs: 0, idleMs: 1_000 })
  await using first = await legacyHttp.connect(gateway)
  await first.call('tools/call', CALL)
  await until(() => openOf(gateway) === 3)
  const spare = gateway.fake('a').connections.at(-1)
  await using second = await legacyHttp.connect(gateway)
  await second.call('tools/call', CALL)
  await until(() => openOf(gateway) === 4)
  expect(spare?.isOpen).toBe(true)
  await until(() => openOf(gateway) === 3)
  expect(spare?.isOpen).toBe(true)
})

test('F-24 a spare that still waits for its start is started at once when a session needs it', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) },
    options: { a: { spare: 1 } },
    spare: { minStartMs: 0 },
    // Only starts that a call waits for get a slot.
    gateway: { maxStarts: 0 },
    early: true,
  })
  await using first = await legacyHttp.connect(gateway)
  await first.call('tools/call', CALL)
  await until(() => gateway.running.limits.all.some(({ option, count }) => option === 'limits.starts' && count > 0))
  await using second = await legacyHttp.connect(gateway)
  expect(await second.call('tools/call', CALL)).toHaveProperty('content')
})

test('a server that starts quickly has none', async () => {
  await using gateway = await slow({ minStartMs: 60_000 })
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', CALL)
  await host.call('tools/call', CALL)
  expect(gateway.running.fleet.get('a')?.dialer.processes).toHaveLength(2)
})

test('ps tells the pid of each process, and what it holds in memory', async () => {
  await using gateway = await slow({})
  const { processes } = serverStatuses(gateway.running)[0]!
  expect(processes.map(({ pid }) => pid)).toEqual(gateway.fake('a').connections.map(({ pid }) => pid))
  if (process.platform === 'linux') expect(processes[0]!.memoryBytes).toBeGreaterThan(1_000_000)
})
