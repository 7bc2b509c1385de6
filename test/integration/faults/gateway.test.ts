/** Faults of the gateway itself: its end, its reloads, its disk, its own mistakes. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startTimeOf } from '../../../src/transport/pid-journal.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { configure, startGateway } from '../../support/gateway.ts'
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
      'processes cannot be written down (state.dir): none is swept after a crash',
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
      const { core } = gateway.running.hub
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
          gateway.log.until(({ text }) => /nobody foresaw/.test(text)),
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
