/**
 * The official conformance suite against the reference server, and through Trunkline in front of it (BRIDGING 9, Conformance runs): at the
 * merged endpoint with original names, and at `/servers/<key>/mcp`. What the server passes when it is reached directly it passes there,
 * check by check. The server is run directly once for all of them.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { conformanceGateway } from '../support/conformance-gateways.ts'
import type { ConformanceGateway } from '../support/conformance-gateways.ts'
import { compare, runConformance } from '../support/conformance.ts'
import type { Revision, ScenarioResult } from '../support/conformance.ts'
import { gatewayHome } from '../support/gateway-process.ts'
import type { GatewayHome } from '../support/gateway-process.ts'
import { pipedCommand, startServer } from '../support/processes.ts'
import type { ServerProcess } from '../support/processes.ts'

const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28']

/** Depends on when a stream is closed to be polled: looked at where streams stay open. */
const PROGRESS = 'tools-call-with-progress'

/** Runs wait for each other (test/support/conformance.ts): a bound for all of them, on a machine that does much else. */
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

let server: ServerProcess
/** On stdio: a gateway starts a command for each legacy session. */
let piped: ServerProcess
let home: GatewayHome
const direct = new Map<Revision, ScenarioResult[]>()
const directly = (revision: Revision): ScenarioResult[] => direct.get(revision) ?? []

beforeAll(async () => {
  home = await gatewayHome()
  server = await startServer('reference-server', 'http')
  piped = await startServer('reference-server', 'pipes')
  await Promise.all(REVISIONS.map(async (revision) => direct.set(revision, await runConformance(server.url, revision))))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await piped[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

describe('the conformance suite directly against the reference server', () => {
  test.each([
    [33, '2025-11-25'],
    [50, '2026-07-28'],
  ] as const)('passes %i of all scenarios of %s', (count, revision) => {
    expect(directly(revision)).toHaveLength(count)
    expect(directly(revision).filter(({ passed }) => !passed)).toEqual([])
  })

  test('runs one scenario alone', async () => {
    const results = await runConformance(server.url, '2026-07-28', PROGRESS)
    expect(results).toMatchObject([{ scenario: PROGRESS, passed: true }])
  })

  test('a legacy server loses every modern scenario', async () => {
    await using legacy = await startServer('reference-server', 'http', '--era', 'legacy')
    const through = await runConformance(legacy.url, '2026-07-28', 'server-stateless')
    const before = directly('2026-07-28').filter(({ scenario }) => scenario === 'server-stateless')
    expect(before).toHaveLength(1)
    expect(compare(before, through).length).toBeGreaterThan(0)
  })
})

describe.concurrent.each([
  { over: 'stdio', key: 'stdio', options: () => ({ ...pipedCommand(piped) }) },
  { over: 'Streamable HTTP', key: 'http', options: () => ({ url: server.url }) },
])('with a dual-era server behind on $over', ({ key, options }) => {
  let gateway: ConformanceGateway
  /** A session's first call may have to wait for its process: longer than the streams of the suite's gateway stay open. */
  let unpolled: ConformanceGateway
  beforeAll(async () => {
    gateway = await conformanceGateway(home, key, options())
    unpolled = await conformanceGateway(home, `${key}-unpolled`, options(), { stream_after: { legacy: '0s' } })
  })
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]()
    await unpolled[Symbol.asyncDispose]()
  })

  test.each(REVISIONS)('the conformance suite loses nothing of %s', async (revision) => {
    const through = await runConformance(gateway.url, revision)
    expect(through).toHaveLength(directly(revision).length)
    expect(compare(directly(revision), through).filter(({ scenario }) => scenario !== PROGRESS)).toEqual([])
  })

  test.each(REVISIONS)('B277 a bridge passes of %s what the server passes', async (revision) => {
    const through = await runConformance(gateway.bridge, revision)
    expect(through).toHaveLength(directly(revision).length)
    expect(compare(directly(revision), through).filter(({ scenario }) => scenario !== PROGRESS)).toEqual([])
  })

  test.each(REVISIONS)('progress arrives before the answer, twice in a row (%s)', async (revision) => {
    for (let run = 0; run < 2; run++) {
      const [result] = await runConformance(unpolled.url, revision, PROGRESS)
      expect(result).toMatchObject({ scenario: PROGRESS, passed: true })
    }
  })
})

test.concurrent('B277 a bridge in front of a legacy server passes of 2025-11-25 what the server passes', async () => {
  await using legacy = await startServer('reference-server', 'http', '--era', 'legacy')
  await using gateway = await conformanceGateway(home, 'legacy', { url: legacy.url })
  const before = await runConformance(legacy.url, '2025-11-25')
  const through = await runConformance(gateway.bridge, '2025-11-25')
  expect(through).toHaveLength(before.length)
  expect(before.filter(({ passed }) => passed).length).toBeGreaterThan(25)
  expect(compare(before, through).filter(({ scenario }) => scenario !== PROGRESS)).toEqual([])
})

test.concurrent('the conformance suite loses nothing of 2025-11-25 with a server behind on HTTP+SSE', async () => {
  await using legacy = await startServer('reference-server', 'sse')
  await using gateway = await conformanceGateway(home, 'sse', { url: legacy.url, transport: 'sse' })
  expect(compare(directly('2025-11-25'), await runConformance(gateway.url, '2025-11-25'))).toEqual([])
})

describe.concurrent('the conformance suite across the eras', () => {
  /** What a legacy server behind a modern host cannot show, and why. */
  const impossible = [
    // Answers without a state begin a new call, and a legacy server can only be answered while it waits (BRIDGING 3.2): a SHOULD.
    'input-required-result-ignore-extra-params',
    // A host that knows no tasks is not refused: Trunkline follows the task for it (BRIDGING 3.17).
    'tasks-required-task-error',
  ]

  const legacyServer = 'a legacy server behind that asks by requests and has tasks'
  test.each(['url', 'bridge'] as const)(
    `2026-07-28 hosts lose nothing that is possible with ${legacyServer} (%s)`,
    async (endpoint) => {
      await using legacy = await startServer('reference-server', 'http', '--era', 'legacy', '--by-request')
      await using gateway = await conformanceGateway(home, `legacy-${endpoint}`, { url: legacy.url })
      const through = await runConformance(gateway[endpoint], '2026-07-28')
      expect(compare(directly('2026-07-28'), through, impossible)).toEqual([])
      expect(through.filter(({ passed }) => passed)).toHaveLength(49)
    },
  )

  test('2025-11-25 hosts lose nothing with a modern-only server behind', async () => {
    await using modern = await startServer('reference-server', 'http', '--era', 'modern')
    await using gateway = await conformanceGateway(home, 'modern', { url: modern.url })
    const through = await runConformance(gateway.url, '2025-11-25')
    expect(compare(directly('2025-11-25'), through)).toEqual([])
  })

  test('2025-11-25 hosts lose nothing with a legacy server behind', async () => {
    await using legacy = await startServer('reference-server', 'pipes', '--era', 'legacy')
    const options = { ...pipedCommand(legacy) }
    await using gateway = await conformanceGateway(home, 'legacy-legacy', options)
    const through = await runConformance(gateway.url, '2025-11-25')
    // Each session has a process of its own to start, so this stream is closed before the progress comes, and of progress without
    // a listener only the latest is kept (BRIDGING 5.1): it is looked at on a stream that is held open.
    expect(compare(directly('2025-11-25'), through, [PROGRESS])).toEqual([])
    await using held = await conformanceGateway(home, 'legacy-legacy-held', options, { stream_after: { legacy: '0s' } })
    expect(await runConformance(held.url, '2025-11-25', PROGRESS)).toMatchObject([{ scenario: PROGRESS, passed: true }])
  })
})
