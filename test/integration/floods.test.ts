/**
 * One server says more than the gateway can take (B256, F-05, F-30): what is read of it in one turn of the event loop is bounded, on every
 * transport, so that calls of other servers are answered in between; nothing of it is lost, and no other caller is refused for it. What a
 * flood costs in time is measured by `scripts/floods.ts`; here it is counted.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Connection } from '../../src/rpc/connection.ts'
import { Sweeper } from '../../src/rpc/sweeper.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const MESSAGES = 8_000
const TEXT = 'x'.repeat(220)
/** One message as it stands on the wire, at least. */
const MESSAGE_BYTES = 300
/** What a connection takes of a turn, and what had been read already when it stopped: one read of 64 KiB. */
const MOST_OF_A_TURN = 64 + (64 * 1024) / MESSAGE_BYTES

/** Counts the messages of servers that the gateway takes, in all and in one turn of the event loop. */
const countReceived = (kind: FakeKind): { total: number; most: number; readonly begun: Promise<void> } => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const counts = { total: 0, most: 0, begun: promise }
  let [ofTurn, isRunning] = [0, true]
  // oxlint-disable-next-line typescript/unbound-method -- called on the connection that it is called for
  const { receive } = Connection.prototype
  const spy = vi.spyOn(Connection.prototype, 'receive').mockImplementation(function (this: Connection, message, during) {
    if (message.method === 'notifications/message') {
      counts.total++
      counts.most = Math.max(counts.most, ++ofTurn)
      resolve()
    }
    receive.call(this, message, during)
  })
  const turn = (): void => {
    ofTurn = 0
    // The process behind a pipe fills it meanwhile.
    if (counts.total > 0 && counts.total < MESSAGES && kind.endsWith('stdio')) standStill(20)
    if (isRunning) setImmediate(turn)
  }
  turn()
  onTestFinished(() => {
    isRunning = false
    spy.mockRestore()
  })
  return counts
}

const standStill = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const setup = (kind: FakeKind, more: Partial<GatewaySetup> = {}): GatewaySetup => ({
  servers: {
    loud: fake.of({ kind, tools: ['t'], capabilities: { logging: {}, tools: { listChanged: true } } }),
    calm: fake.of({ kind: 'modern http', tools: ['t'] }),
  },
  ...more,
})

/** Says all of it before its answer. */
const floodBy = (gateway: TestGateway): void =>
  void gateway.fake('loud').on('tools/call', (turn) => {
    for (let at = 0; at < MESSAGES; at++)
      turn.notify('notifications/message', { level: 'error', logger: 'loud', data: `${at} ${TEXT}` })
    return { content: [] }
  })

const callCalm = async (host: Host, times: number): Promise<void> => {
  for (let at = 0; at < times; at++) expect(await host.call('tools/call', { name: 'calm__t' })).not.toHaveProperty('isError')
}

describe.each(everyFakeKind)('a server on %s', (kind) => {
  test('B256 that floods a call is read a little in each turn; others are answered meanwhile, and nothing is lost', async () => {
    await using gateway = await startGateway(setup(kind))
    await using host = await modernHttp.connect(gateway)
    floodBy(gateway)
    const received = countReceived(kind)
    const flooded = host.call('tools/call', { name: 'loud__t' })
    await received.begun
    await callCalm(host, 5)
    const before = received.total
    expect(await flooded).not.toHaveProperty('isError')
    expect(before).toBeLessThan(MESSAGES)
    expect(received.total).toBe(MESSAGES)
    expect(received.most).toBeLessThanOrEqual(MOST_OF_A_TURN)
  })

  test('B256 that floods outside of any call is read a little in each turn as well', async () => {
    await using gateway = await startGateway(setup(kind))
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'loud__t' })
    const received = countReceived(kind)
    const loud = gateway.fake('loud')
    const speaker = loud.listens.at(-1) ?? loud.connections.findLast(({ isOpen }) => isOpen)
    for (let at = 0; at < MESSAGES; at++) speaker?.notify('notifications/message', { level: 'error', data: `${at} ${TEXT}` })
    await received.begun
    await callCalm(host, 5)
    expect(received.total).toBeLessThan(MESSAGES)
    await vi.waitUntil(() => received.total === MESSAGES, { timeout: 20_000 })
    expect(received.most).toBeLessThanOrEqual(MOST_OF_A_TURN)
  })

  test('F-30 while the event loop is late the flood is held back, and no caller is refused', async () => {
    await using gateway = await startGateway(setup(kind))
    await using host = await modernHttp.connect(gateway)
    floodBy(gateway)
    const late = vi.spyOn(Sweeper.prototype, 'isLate', 'get').mockReturnValue(true)
    onTestFinished(() => late.mockRestore())
    const received = countReceived(kind)
    const sweeps = countSweeps(gateway)
    const flooded = host.call('tools/call', { name: 'loud__t' })
    await received.begun
    await callCalm(host, 20)
    // A slice for each sweep, and one before the first.
    expect(received.total).toBeLessThanOrEqual((sweeps.count + 2) * MOST_OF_A_TURN)
    expect(received.total).toBeLessThan(MESSAGES)
    late.mockReturnValue(false)
    expect(await flooded).not.toHaveProperty('isError')
    expect(received.total).toBe(MESSAGES)
  })
})

test('B256 of a flood of log messages a host gets as many as limits.log_messages says, the first ones', async () => {
  const maxLogMessages = { amount: 7, periodMs: 3_600_000, text: '7/h' }
  await using gateway = await startGateway(setup('legacy http', { options: { loud: { limits: { maxLogMessages } } } }))
  await using host = await legacyHttp.connect(gateway)
  floodBy(gateway)
  const { response, messages } = host.begin('tools/call', { name: 'loud__t' })
  await response
  expect(messages.entries.map(({ params }) => Number.parseInt(String(params?.['data']), 10))).toEqual([0, 1, 2, 3, 4, 5, 6])
})

test('B256 a server that announces changes again and again is read again in proportion to what its lists cost', async () => {
  const tool = (name: string, length: number): JsonMap => ({
    name,
    description: 'x'.repeat(length),
    inputSchema: { type: 'object' },
  })
  const many = Array.from({ length: 200 }, (_, at) => tool(`t${at}`, 20_000))
  const listing = (tools: readonly JsonMap[]) =>
    fake.of({ kind: 'legacy stdio', tools, capabilities: { tools: { listChanged: true } } })
  await using gateway = await startGateway({ servers: { big: listing(many), small: listing(many.slice(0, 1)) } })
  const [big, small] = [gateway.fake('big'), gateway.fake('small')]
  const announce = (): void => {
    for (const connection of [...big.connections, ...small.connections])
      if (connection.isOpen) connection.notify('notifications/tools/list_changed')
  }
  const lists = (key: string, name: string): Promise<unknown> =>
    vi.waitUntil(() => gateway.running.fleet.get(key)?.inventory$.value?.lists.tools.some((entry) => entry.original === name), {
      timeout: 20_000,
    })
  for (const one of [big, small]) one.offers.tools.push(tool('first', 1))
  announce()
  // Both have been read.
  await Promise.all([lists('big', 'first'), lists('small', 'first')])
  const reads = big.all('tools/list').length
  for (const one of [big, small]) one.offers.tools.push(tool('second', 1))
  announce()
  // 4 MB rest for ten seconds, 20 KB for a twentieth of one.
  await lists('small', 'second')
  expect(big.all('tools/list')).toHaveLength(reads)
})

/** Sweeps of the gateway from now on. */
const countSweeps = ({ running }: TestGateway): { count: number } => {
  const counts = { count: 0 }
  const sweep = running.front.sweep.bind(running.front)
  const spy = vi.spyOn(running.front, 'sweep').mockImplementation(() => {
    counts.count++
    sweep()
  })
  onTestFinished(() => spy.mockRestore())
  return counts
}
