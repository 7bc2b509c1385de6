/** The series of `/metrics`, as far as Prometheus relies on it: no two alike, and no counter that decreases. */
import { afterEach, expect, test, vi } from 'vitest'
import { metricsText } from '../../../src/admin/state/metrics.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { legacyHttp, modernPipe } from '../../support/fake-host.ts'
import { asPrincipal, startGateway } from '../../support/gateway.ts'
import { RpcError } from '../../support/fakes/messages.ts'
import type { TestGateway } from '../../support/gateway.ts'

const start = (): Promise<TestGateway> =>
  startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['echo'] }) },
    options: { a: { credential: PER_USER } },
  })

afterEach(() => void vi.restoreAllMocks())

/** The lines of a metric. */
const linesOf = ({ running }: TestGateway, name: string): readonly string[] =>
  metricsText(running, false)
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))

test('deviations are counted for every caller of a server, those of one rule in one series', async () => {
  await using gateway = await start()
  const { fleet } = gateway.running
  fleet.for('a', 'ann')?.fidelity.note('taskDriven')
  fleet.for('a', 'ann')?.fidelity.note('taskByExtension')
  fleet.for('a', 'bob')?.fidelity.note('taskByExtension')
  expect(linesOf(gateway, 'trunkline_deviations_total')).toEqual([
    'trunkline_deviations_total{server="a",rule="3.17",feature="tasks",verdict="projected"} 3',
  ])
})

test('outages stay counted after the connection of their caller was closed for being idle', async () => {
  await using gateway = await start()
  gateway.fake('a').on('server/discover', () => {
    throw new RpcError({ code: -32603, message: 'broken' })
  })
  await using host = await modernPipe.connect(asPrincipal(gateway, 'ann'))
  await host.call('tools/call', { name: 'a__echo', arguments: {} }).catch(() => undefined)
  const outages = linesOf(gateway, 'trunkline_server_outages_total')
  expect(outages).toEqual(['trunkline_server_outages_total{server="a"} 1'])
  for (const { personal } of gateway.running.fleet.downstreams$.value) personal?.sweep(Infinity)
  expect(linesOf(gateway, 'trunkline_server_outages_total')).toEqual(outages)
})

test('F-04 a process that ended by itself is counted, also where it served a single session and the server stays healthy', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['echo'] }) } })
  const a = gateway.fake('a')
  a.on('tools/call', () => (a.connections.findLast(({ isOpen }) => isOpen)?.drop(), fake.never()))
  const crashes = () => linesOf(gateway, 'trunkline_server_crashes_total')
  expect(crashes()).toEqual(['trunkline_server_crashes_total{server="a"} 0'])
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__echo', arguments: {} }).catch(() => undefined)
  expect(crashes()).toEqual(['trunkline_server_crashes_total{server="a"} 1'])
  expect(linesOf(gateway, 'trunkline_server_outages_total')).toEqual(['trunkline_server_outages_total{server="a"} 0'])
  a.connections.findLast(({ isOpen }) => isOpen)?.drop()
  await vi.waitFor(() => expect(crashes()).toEqual(['trunkline_server_crashes_total{server="a"} 2']))
})

test('F-04 processes that ended by themselves are counted together, those of all callers', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['echo'] }) },
    options: { a: { credential: PER_USER } },
  })
  const a = gateway.fake('a')
  a.on('tools/call', () => (a.connections.findLast(({ isOpen }) => isOpen)?.drop(), fake.never()))
  for (const name of ['ann', 'bob']) {
    await using host = await modernPipe.connect(asPrincipal(gateway, name))
    await host.call('tools/call', { name: 'a__echo', arguments: {} }).catch(() => undefined)
  }
  await vi.waitFor(() =>
    expect(linesOf(gateway, 'trunkline_server_crashes_total')).toEqual(['trunkline_server_crashes_total{server="a"} 2']),
  )
})

test('the start of the process is one moment, whatever the clock of the machine does', async () => {
  await using gateway = await start()
  const before = linesOf(gateway, 'process_start_time_seconds')
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 5_000)
  expect(linesOf(gateway, 'process_start_time_seconds')).toEqual(before)
})
