/** Faults of the gateway itself: its end, its reloads, its disk, its own mistakes. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startTimeOf } from '../../../src/transport/process/process-table.ts'
import { everyFakeKind, fake, FakeDownstream } from '../../support/fake-downstream.ts'
import type { FakeKind } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { configure, startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { play, refereed } from '../../support/refereed.ts'
import { Referee } from '../../support/referee.ts'

test.each(everyFakeKind)(
  'F-22 at the end of the drain time a call at a %s server is told that the gateway is shutting down',
  async (kind) => {
    const referee = new Referee()
    const never = fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee, fake.never) } })
    await using gateway = await startGateway({ servers: { a: never } })
    const hosts = await Promise.all([legacyHttp.connect(gateway), modernHttp.connect(gateway)])
    const ends = hosts.map((host) => play(host, referee, 'a__t'))
    await gateway.fake('a').journal.when(() => (gateway.fake('a').all('tools/call').length === 2 ? true : undefined))
    await gateway.running.stop()
    const told = { type: 'failed', kind: 'shutting_down', executed: 'unknown' }
    expect(await Promise.all(ends)).toEqual([told, told])
  },
)

/** What a modern host declares decides whether its calls could be parked. */
const ABLE = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } }
const textOf = ({ content }: JsonMap): unknown => (content as JsonMap[])[0]?.['text']

const HOSTS = [
  { name: 'a legacy host', open: (gateway: TestGateway) => legacyHttp.connect(gateway) },
  { name: 'a legacy host that can be asked', open: (gateway: TestGateway) => legacyHttp.connect(gateway, ABLE) },
  { name: 'a modern host', open: (gateway: TestGateway) => modernHttp.connect(gateway) },
  { name: 'a modern host that can be asked', open: (gateway: TestGateway) => modernHttp.connect(gateway, ABLE) },
]

test.each(HOSTS)('F-22 of $name every call under way is answered when the gateway stops', async ({ open }) => {
  const referee = new Referee()
  const release = Promise.withResolvers<undefined>()
  const slow = (kind: FakeKind) => fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee, () => release.promise) } })
  const servers = Object.fromEntries(everyFakeKind.map((kind) => [kind.replace(' ', '-'), slow(kind)]))
  await using gateway = await startGateway({ servers, host: { drainMs: 25_000 } })
  const ends = await Promise.all(
    Object.keys(servers).map(async (key) => {
      const end = play(await open(gateway), referee, `${key}__t`)
      await gateway.fake(key).until('tools/call')
      return { end }
    }),
  )
  const stopped = gateway.running.stop()
  release.resolve(undefined)
  for (const { end } of ends) expect(await end).toMatchObject({ type: 'answered' })
  await stopped
  expect(referee.findings).toEqual([])
})

test('F-22 a question that comes while the gateway stops gets its non-answer, and the call is answered', async () => {
  const release = Promise.withResolvers<undefined>()
  const asking = fake.of({
    kind: 'legacy http',
    tools: ['t'],
    on: {
      'tools/call': async (turn) => {
        await release.promise
        const { result, error } = await turn.ask('elicitation/create', { message: 'Which?', requestedSchema: { type: 'object' } })
        return { content: [{ type: 'text', text: JSON.stringify(result ?? error) }] }
      },
    },
  })
  await using gateway = await startGateway({ servers: { a: asking }, host: { drainMs: 25_000 } })
  await using host = await modernHttp.connect(gateway, ABLE)
  const { response } = host.begin('tools/call', { name: 'a__t', arguments: {} })
  await gateway.fake('a').until('tools/call')
  const stopped = gateway.running.stop()
  release.resolve(undefined)
  expect(await response).toMatchObject({ result: { content: [{ text: expect.stringContaining('cancel') }] } })
  await stopped
})

test('F-22 in a rolling restart of two gateways under load no call fails that a server has got', async () => {
  const referee = new Referee()
  const fakes = new Map<string, FakeDownstream>()
  const load = { isOver: false, executed: 0, answered: 0 }
  const pause = (): Promise<undefined> => {
    load.executed++
    return new Promise((resolve) => setTimeout(resolve, 30, undefined))
  }
  for (const kind of everyFakeKind.filter((one) => !one.endsWith('stdio')))
    fakes.set(
      kind.replace(' ', '-'),
      await FakeDownstream.start({
        kind,
        tools: ['t'],
        on: { 'tools/call': refereed(referee, () => pause()) },
      }),
    )
  const start = () => startGateway({ servers: {}, fakes, host: { drainMs: 25_000 } })
  const replicas = [await start(), await start()]
  /** Goes to the other gateway when one takes no more, as a load balancer does. */
  const calling = HOSTS.flatMap(({ open }) =>
    [...fakes.keys()].map(async (key) => {
      for (let at = 0; !load.isOver; at++) {
        const host = await open(replicas[at % 2]!).catch(() => undefined)
        while (!load.isOver) {
          const end = host && (await play(host, referee, `${key}__t`))
          if (end?.type !== 'answered') break
          load.answered++
        }
        await host?.[Symbol.asyncDispose]()
      }
    }),
  )
  const more = async (calls: number): Promise<void> => {
    const enough = load.answered + calls
    while (load.answered < enough) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  for (const at of [0, 1, 0, 1]) {
    await more(100)
    const next = await start()
    const before = replicas[at]
    replicas[at] = next
    await before!.running.stop()
  }
  await more(100)
  load.isOver = true
  await Promise.all(calling)
  expect(load.answered).toBe(load.executed)
  expect(referee.verdict).toMatchObject({ answered: load.executed, lost: 0, crossed: 0, doubled: 0, untrue: 0 })
  for (const one of [...replicas, ...fakes.values()]) await one[Symbol.asyncDispose]()
})

test.each(HOSTS)('F-25 to $name a server that is stopped alone is not said to be the gateway', async ({ open }) => {
  const never = fake.of({ kind: 'legacy stdio', tools: ['t'], on: { 'tools/call': fake.never } })
  await using gateway = await startGateway({ servers: { a: never, b: never } })
  await using host = await open(gateway)
  const texts = Object.fromEntries(
    ['a', 'b'].map((key) => [key, host.call('tools/call', { name: `${key}__t`, arguments: {} }).then(textOf)]),
  )
  await Promise.all(['a', 'b'].map((key) => gateway.fake(key).until('tools/call')))
  gateway.running.fleet.restart('a', 0)
  expect(await texts['a']).toBe('A was stopped; the action may or may not have happened')
  await gateway.running.stop()
  expect(await texts['b']).toBe('the gateway is shutting down')
})

test('F-25 during a hundred reloads no call of a server that stays the same fails, and it keeps its connections', async () => {
  const referee = new Referee()
  const servers = Object.fromEntries(
    everyFakeKind.map((kind) => [
      kind.replace(' ', '-'),
      fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee) } }),
    ]),
  )
  const setup = { servers: { ...servers, passing: fake.of({ kind: 'modern http', tools: ['t'] }) } }
  await using gateway = await startGateway(setup)
  const { running } = gateway
  const fakes = new Map(Object.keys(setup.servers).map((key) => [key, gateway.fake(key)]))
  const all = running.configuration
  const without = { ...all, servers: configure(setup, fakes, all.stateDir ?? '').servers.filter(({ key }) => key !== 'passing') }
  await using legacy = await legacyHttp.connect(gateway)
  await using modern = await modernHttp.connect(gateway)
  for (const host of [legacy, modern]) for (const key of Object.keys(servers)) await play(host, referee, `${key}__t`)
  const connections = Object.keys(servers).map((key) => gateway.fake(key).connections.length)
  const load = { isOver: false }
  const calling = [legacy, modern].flatMap((host) =>
    Object.keys(servers).map(async (key) => {
      while (!load.isOver) expect(await play(host, referee, `${key}__t`)).toMatchObject({ type: 'answered' })
    }),
  )
  for (let at = 0; at < 100; at++) await running.apply(at % 2 === 0 ? without : all, new Set())
  load.isOver = true
  await Promise.all(calling)
  expect(referee.findings).toEqual([])
  expect(Object.keys(servers).map((key) => gateway.fake(key).connections.length)).toEqual(connections)
})

test('F-26 a state folder in which nothing can be written: told once for each thing, and everything works', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-full-'))
  // Where a file should be made there is something else: so it fails also for root, whom no full disk can be shown cheaply.
  for (const name of ['seal.key', `pids-${process.pid}-${await startTimeOf(process.pid)}`]) mkdirSync(join(stateDir, name))
  try {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) }, stateDir })
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/call', { name: 'a__t', arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
    const warnings = gateway.log.entries.filter(({ level, text }) => level === 'warn' && text.includes('state.dir'))
    expect(warnings.map(({ text }) => text)).toEqual([
      'the key of sealed tokens cannot be kept (state.dir): they end with this process',
      'processes cannot be recorded (state.dir): none is ended after a crash',
    ])
  } finally {
    rmSync(stateDir, { recursive: true })
  }
})

describe('F-31 what throws where nobody foresaw it', () => {
  const POINTS = [
    'handle',
    'paramHeaders',
    'changes',
    'instructions',
    'scopeFor',
    'isStarting',
    'unsubscribe',
    'rootsChanged',
  ] as const

  test.each(everyTransport)(
    'over $name ends its own request; the call under way and the next one are answered',
    async ({ connect }) => {
      const release = Promise.withResolvers<undefined>()
      const referee = new Referee()
      const held = fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': refereed(referee, () => release.promise) } })
      const quick = fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': refereed(referee) } })
      await using gateway = await startGateway({ servers: { held, quick } })
      await using beside = await legacyHttp.connect(gateway)
      const under = play(beside, referee, 'held__t')
      await gateway.fake('held').until('tools/call')
      const { core } = gateway.running.context
      for (const point of POINTS) {
        const before = Object.getOwnPropertyDescriptor(core, point)
        Object.defineProperty(core, point, {
          configurable: true,
          value: () => {
            throw new Error(`thrown in ${point}`)
          },
        })
        // A host of its own: one that cannot even come in is no reason for anything else to fail.
        const host = await Promise.race([
          connect(gateway).catch(() => undefined),
          gateway.log.until(({ text }) => /unexpected error/.test(text)),
        ])
        if (host !== undefined && 'begin' in host) {
          await host.begin('tools/call', { name: 'quick__t', arguments: { nonce: referee.begin() } }).over
          host.notify('notifications/roots/list_changed')
          await host[Symbol.asyncDispose]()
        }
        if (before === undefined) Reflect.deleteProperty(core, point)
        else Object.defineProperty(core, point, before)
        gateway.log.clear()
        expect(await play(beside, referee, 'quick__t')).toMatchObject({ type: 'answered' })
      }
      release.resolve(undefined)
      expect(await under).toMatchObject({ type: 'answered' })
    },
  )
})

test.each(everyFakeKind)('F-25 F-02 time-outs of a reload apply to calls on links of a %s server that are open', async (kind) => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__x' })
  const { configuration } = gateway.running
  const servers = configuration.servers.map((server) => ({ ...server, timeouts: { ...server.timeouts, idleMs: 100 } }))
  await gateway.running.apply({ ...configuration, servers }, new Set())
  const { connections } = gateway.fake('a')
  const before = connections.length
  gateway.fake('a').on('tools/call', fake.never)
  const late = await host.call('tools/call', { name: 'a__x' })
  expect(late).toMatchObject({ isError: true, _meta: { 'dev.trunkline/gateway': { kind: 'timeout' } } })
  expect(connections).toHaveLength(before)
})
