/** Starts, outages and crashes of servers, as hosts and `ps` see them (RELIABILITY F-04, F-08, F-24; B289). */
import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const CALL = { name: 'a__t', arguments: {} }
const HOUR_MS = 3_600_000

const hanging = fake.of({ kind: 'legacy stdio', on: { 'server/discover': fake.never, initialize: fake.never } })
const healthy = fake.of({ kind: 'legacy stdio', tools: ['t'] })

const repeat = (count: number, name: string, spec: FakeSpec): [string, FakeSpec][] =>
  Array.from({ length: count }, (_, at) => [`${name}${at}`, spec])

const alternate = <T>(a: readonly T[], b: readonly T[]): T[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, at) => [a[at], b[at]].filter((one) => one !== undefined)).flat()

const healthOf = (gateway: TestGateway, key: string) => gateway.running.fleet.get(key)!.health$.value
const refuse = (_: unknown, response: ServerResponse): boolean => {
  response.writeHead(503).end()
  return true
}
const stateIs = (gateway: TestGateway, key: string, wanted: string): Promise<void> =>
  new Promise((resolve) => {
    gateway.running.fleet.get(key)!.health$.subscribe(({ state }) => state === wanted && resolve())
  })

describe('F-24 starting is no queue: servers that hang keep no healthy one away', () => {
  const sick = repeat(4, 'sick', hanging)
  const good = repeat(3, 'good', healthy)
  test.each([
    ['first', [...sick, ...good]],
    ['last', [...good, ...sick]],
    ['mixed', alternate(sick, good)],
  ])('sick ones %s', async (_, servers) => {
    await using gateway = await startGateway({
      servers: Object.fromEntries(servers),
      gateway: { maxStarts: 2 },
      options: Object.fromEntries(sick.map(([key]) => [key, { timeouts: { startMs: HOUR_MS } }])),
      early: true,
    })
    await Promise.all(good.map(([key]) => stateIs(gateway, key, 'healthy')))
    for (const [key] of sick) expect(healthOf(gateway, key).state).toBe('starting')
    await using host = await modernHttp.connect(gateway)
    for (const [key] of good)
      expect(await host.call('tools/call', { name: `${key}__t`, arguments: {} })).toHaveProperty('content')
  })

  test('HTTP servers wait for no slot', async () => {
    await using gateway = await startGateway({
      servers: Object.fromEntries([
        ...repeat(4, 'sick', fake.of({ kind: 'modern http' })),
        ...repeat(1, 'good', { tools: ['t'] }),
      ]),
      gateway: { maxStarts: 1 },
      early: true,
    })
    for (const [key] of sick) gateway.fake(key).intercept = () => true
    await stateIs(gateway, 'good0', 'healthy')
    expect(gateway.running.limits.all).toEqual([])
  })
})

describe('F-04 an outage is one failure', () => {
  const slow = { firstMs: HOUR_MS, maxMs: HOUR_MS, maxCrashes: 1 }

  test('however many attempts fail, and whatever stood in a crash loop before, it is tried again and again', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['t'] }) },
      backoff: { maxCrashes: 1, crashLoopMs: HOUR_MS },
      early: true,
    })
    let attempts = 0
    gateway.fake('a').intercept = (request, response) => ++attempts <= 20 && refuse(request, response)
    await stateIs(gateway, 'a', 'healthy')
    expect(attempts).toBeGreaterThan(20)
    expect(healthOf(gateway, 'a').failures).toBe(1)
  })

  test.each(['tools/call', 'tools/list'] as const)('a %s tries a server that is down at once', async (method) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['t'] }), b: fake.offering('t') },
      backoff: slow,
      options: { a: { timeouts: { graceMs: 0 } } },
    })
    const a = gateway.fake('a')
    await using host = await modernHttp.connect(gateway)
    a.intercept = refuse
    await gateway.running.fleet.get('a')?.link?.close()
    await stateIs(gateway, 'a', 'down')
    const { nextTryAtMs = 0 } = healthOf(gateway, 'a')
    expect(nextTryAtMs - performance.now()).toBeGreaterThan(HOUR_MS / 4)
    a.intercept = () => false
    while (healthOf(gateway, 'a').state !== 'healthy') {
      await host.call(method, CALL)
      await new Promise(setImmediate)
    }
    expect(await host.call('tools/call', CALL)).toMatchObject({ content: [{ text: '{}' }] })
  })

  test('calls that come together cause one attempt, and are told when the next one is', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['t'] }) },
      backoff: { ...slow, minRetryMs: 100 },
      options: { a: { timeouts: { graceMs: 0 } } },
    })
    await using host = await modernHttp.connect(gateway)
    const attempts: unknown[] = []
    gateway.fake('a').intercept = (request, response) => attempts.push(request) > 0 && refuse(request, response)
    await gateway.running.fleet.get('a')?.link?.close()
    await stateIs(gateway, 'a', 'down')
    while (attempts.length < 3) await host.call('tools/call', CALL)
    const before = attempts.length
    const startMs = performance.now()
    const ends = await Promise.all(Array.from({ length: 50 }, () => host.call('tools/call', CALL)))
    // One, and on a busy machine one more for each `minRetryMs` that the calls took.
    expect(attempts.length - before).toBeLessThanOrEqual(1 + Math.floor((performance.now() - startMs) / 100))
    for (const end of ends)
      expect(end).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^A failed \(HTTP 503\); the next attempt is in \d+ s/) as string }],
        _meta: {
          'dev.trunkline/gateway': { kind: 'downstream_error', executed: 'no', retryAfterMs: expect.any(Number) as number },
        },
      })
  })

  test('a call waits for a server that was good a moment ago, through attempts that fail', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['t'] }) } })
    await using host = await modernHttp.connect(gateway)
    let refusals = 5
    gateway.fake('a').intercept = (request, response) => refusals-- > 0 && refuse(request, response)
    await gateway.running.fleet.get('a')?.link?.close()
    expect(await host.call('tools/call', CALL)).toMatchObject({ content: [{ text: '{}' }] })
    expect(refusals).toBeLessThan(0)
  })
})

test('B289 a legacy session that is renewed at once is no failure, however often', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http', tools: ['t'] }) },
    backoff: { maxCrashes: 1, firstMs: HOUR_MS, maxMs: HOUR_MS, crashLoopMs: HOUR_MS, minRetryMs: 0 },
  })
  const a = gateway.fake('a')
  const downstream = gateway.running.fleet.get('a')!
  const states = new Set<string>()
  downstream.health$.subscribe(({ state }) => states.add(state))
  await using host = await legacyHttp.connect(gateway)
  for (let at = 0; at < 10; at++) {
    const initialized = a.all('initialize').length
    await downstream.link?.close()
    await host
      .call('completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } })
      .catch(() => undefined)
    await a.journal.when(() => (a.all('initialize').length > initialized ? true : undefined))
    await stateIs(gateway, 'a', 'healthy')
  }
  expect(downstream.health$.value.failures).toBe(0)
  expect([...states].sort()).toEqual(['healthy', 'starting'])
  expect(gateway.log.entries.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
})

test('F-04 a process that crashes again and again is started no more for a while, and calls end at once with the reason', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) },
    backoff: { maxCrashes: 3, windowMs: HOUR_MS, crashLoopMs: HOUR_MS },
  })
  const a = gateway.fake('a')
  await using host = await modernHttp.connect(gateway)
  for (let crashes = 0; crashes < 3; crashes++) {
    if (crashes > 0) await stateIs(gateway, 'a', 'healthy')
    a.connections.findLast(({ isOpen }) => isOpen)?.drop()
    await gateway.log.when(() =>
      gateway.log.entries.filter(({ facts }) => facts['kind'] === 'exited').length > crashes ? true : undefined,
    )
  }
  expect(healthOf(gateway, 'a')).toMatchObject({ state: 'down', failures: 3 })
  const before = a.connections.length
  for (let at = 0; at < 5; at++)
    expect(await host.call('tools/call', CALL)).toMatchObject({
      isError: true,
      _meta: { 'dev.trunkline/gateway': { kind: 'exited', executed: 'no' } },
    })
  expect(a.connections.length).toBe(before)
})

test.each(['auto', 'modern', 'legacy'] as const)(
  'F-04 with era: %s, a process that ends at its first message has crashed, with the words of its stderr',
  async (era) => {
    const exits: Handle = ({ connection }) => {
      connection.stderr('no such database\n')
      connection.drop()
    }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern stdio', on: { 'server/discover': exits, initialize: exits } }) },
      options: { a: { era } },
      backoff: { firstMs: HOUR_MS, maxMs: HOUR_MS },
      early: true,
    })
    const { facts } = await gateway.log.until(({ level }) => level === 'warn')
    expect(facts).toMatchObject({ server: 'a', kind: 'exited' })
  },
)

describe('F-07 lists wait for no server that has failed once', () => {
  const names = async (gateway: TestGateway): Promise<string[]> => {
    await using host = await modernHttp.connect(gateway)
    const { tools } = (await host.call('tools/list')) as { tools: { name: string }[] }
    return tools.map(({ name }) => name)
  }

  test('in this run: once it has failed, the list goes out with what the others offer', async () => {
    await using bad = await FakeDownstream.start({ kind: 'modern http' })
    bad.intercept = refuse
    await using gateway = await startGateway({
      servers: { good: fake.of({ kind: 'modern http', tools: ['t'] }) },
      fakes: new Map([['bad', bad]]),
      gateway: { listBudgetMs: HOUR_MS },
      early: true,
    })
    expect(await names(gateway)).toEqual(['good__t'])
  })

  test('in the run before: neither one that failed nor one that was waited for in vain is waited for again', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    const fakes = new Map([
      ['bad', await FakeDownstream.start({ kind: 'modern http' })],
      ['hangs', await FakeDownstream.start({ kind: 'modern http' })],
      ['good', await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })],
    ])
    fakes.get('bad')!.intercept = refuse
    fakes.get('hangs')!.intercept = () => true
    try {
      for (const listBudgetMs of [500, HOUR_MS]) {
        await using gateway = await startGateway({ servers: {}, fakes, stateDir, gateway: { listBudgetMs }, early: true })
        expect(await names(gateway)).toEqual(['good__t'])
      }
    } finally {
      for (const downstream of fakes.values()) await downstream[Symbol.asyncDispose]()
      rmSync(stateDir, { recursive: true, force: true })
    }
  })

  test('a list of the only server, which is not there yet, is worth one more attempt', async () => {
    await using a = await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })
    a.intercept = refuse
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', a]]),
      backoff: { firstMs: HOUR_MS, maxMs: HOUR_MS, minRetryMs: 0 },
      early: true,
    })
    await stateIs(gateway, 'a', 'down')
    await using host = await modernHttp.connect(gateway)
    await expect(host.call('tools/list')).rejects.toMatchObject({ code: -32603 })
    a.intercept = () => false
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__t' }] })
  })
})
