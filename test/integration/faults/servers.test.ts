/** Servers that crash, hang, are slow, or all die at once: what their calls hear, and that nobody else notices. */
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { limitHosts, startGateway } from '../../support/gateway.ts'
import { crashRounds, exitRounds } from '../../support/faults/rounds.ts'
import { isAlive } from '../../support/pids.ts'
import { play, refereed } from '../../support/refereed.ts'
import { Referee } from '../../support/referee.ts'

describe.each(['legacy stdio', 'modern stdio'] as const)('a %s server', (kind) => {
  test('F-01 that is killed with 100 calls pending: each ends as exited, none is sent again, the next is answered', async () => {
    expect(await crashRounds(kind, 5)).toEqual({ rounds: 5, calls: 5 * 101 + 1, odd: [] })
  })

  test('F-09 that exits after each third answer loses none of them, and calls wait for the next process', async () => {
    const { rounds, odd } = await exitRounds(kind, 36)
    expect(odd).toEqual([])
    expect(rounds).toBeGreaterThan(6)
  })
})

test('F-03 a slow server gets what it can take; the queue is bounded, and who does not fit is told when to come again', async () => {
  const referee = new Referee()
  const release = Promise.withResolvers<undefined>()
  const slow = fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': refereed(referee, () => release.promise) } })
  await using gateway = await startGateway({
    servers: { a: slow },
    options: { a: { limits: { maxConcurrent: 2, maxQueued: 3 } } },
  })
  await using host = await modernHttp.connect(gateway)
  const fitting = Array.from({ length: 5 }, () => play(host, referee, 'a__t'))
  await gateway.fake('a').journal.when(() => (gateway.fake('a').all('tools/call').length === 2 ? true : undefined))
  const refused = await host.begin('tools/call', { name: 'a__t', arguments: { nonce: -1 } }).response
  expect(refused.result).toMatchObject({
    isError: true,
    content: [{ text: 'gateway is busy: limits.concurrency (2) and limits.queue (3) reached' }],
    _meta: { 'dev.trunkline/gateway': { kind: 'overloaded', executed: 'no', retryAfterMs: 1_000 } },
  })
  expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  release.resolve(undefined)
  for (const end of await Promise.all(fitting)) expect(end.type).toBe('answered')
  expect(referee.findings).toEqual([])
})

test('F-07 one server that never answers its handshake delays neither a handshake, nor a call, nor the list of the nine others', async () => {
  const good = { kind: 'modern http', tools: ['t'] } as const
  const hole = await FakeDownstream.start({ kind: 'legacy http' })
  hole.intercept = () => true
  const servers = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`good${at}`, good]))
  try {
    await using gateway = await startGateway({
      servers,
      fakes: new Map([['hole', hole]]),
      early: true,
      gateway: { listBudgetMs: 500 },
    })
    await using host = await legacyHttp.connect(gateway)
    for (const key of Object.keys(servers))
      await gateway.log.until(({ text, facts }) => text === 'server is ready' && facts['server'] === key)
    const { tools } = (await host.call('tools/list')) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(Object.keys(servers).map((key) => `${key}__t`))
    expect(await host.call('tools/call', { name: 'good3__t', arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
    expect(gateway.running.fleet.get('hole')?.health$.value.state).toBe('starting')
  } finally {
    await hole[Symbol.asyncDispose]()
  }
})

test('F-24 after all children have been killed at once no more than four start at a time, and all come back', async () => {
  const keys = Array.from({ length: 8 }, (_, at) => `s${at}`)
  let starting = 0
  let most = 0
  const counted = fake.of({
    kind: 'legacy stdio',
    tools: ['t'],
    on: {
      initialize: async ({ params }) => {
        most = Math.max(most, ++starting)
        await new Promise(setImmediate)
        starting--
        return {
          protocolVersion: params['protocolVersion'],
          capabilities: { tools: {} },
          serverInfo: { name: 'fake', version: '1' },
        }
      },
    },
  })
  await using gateway = await startGateway({ servers: Object.fromEntries(keys.map((key) => [key, counted])) })
  const pids = keys.flatMap((key) => gateway.fake(key).connections.map(({ pid }) => pid ?? 0))
  most = 0
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await Promise.all(keys.map((key) => gateway.fake(key).until('notifications/initialized')))
  expect(most).toBeLessThanOrEqual(4)
  await using host = await modernHttp.connect(gateway)
  for (const key of keys)
    expect(await host.call('tools/call', { name: `${key}__t`, arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
  expect(pids.filter(isAlive)).toEqual([])
})

test('sessions that come and vanish leave no process', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) } })
  const a = gateway.fake('a')
  const before = a.connections.filter(({ isOpen }) => isOpen).length
  for (let at = 0; at < 8; at++) {
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__t', arguments: {} })
  }
  const churned = a.connections.slice(before)
  expect(churned).toHaveLength(8)
  await limitHosts(gateway, { sessionIdleMs: 1 })
  await Promise.all(churned.map(({ closed }) => closed))
  expect(gateway.running.fleet.get('a')?.linkCount).toBe(1)
})

test('F-04 a process that dies of every call of one session is soon not started for it any more, and serves the others', async () => {
  const referee = new Referee()
  const dying = refereed(referee, (turn) => {
    if (turn.params['name'] === 't') return undefined
    turn.connection.drop()
    return fake.never()
  })
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t', 'die'], on: { 'tools/call': dying } }) },
    backoff: { firstMs: 1, maxMs: 2, maxCrashes: 3, windowMs: 60_000, crashLoopMs: 300_000 },
  })
  const a = gateway.fake('a')
  const before = a.connections.length
  await using host = await legacyHttp.connect(gateway)
  const ends = []
  for (let at = 0; at < 20; at++) ends.push(await play(host, referee, 'a__die'))
  expect(ends.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => ({ type: 'failed', kind: 'exited', executed: 'unknown' })))
  expect(ends.slice(3)).toEqual(Array.from({ length: 17 }, () => ({ type: 'failed', kind: 'exited', executed: 'no' })))
  expect(a.connections.length - before).toBe(3)
  await using other = await legacyHttp.connect(gateway)
  expect(await play(other, referee, 'a__t')).toMatchObject({ type: 'answered' })
  expect(referee.findings).toEqual([])
})
