/**
 * The official conformance suite through Trunkline: one server behind its merged endpoint, original names (BRIDGING 9, Conformance runs). What
 * the server passes when it is reached directly it passes here, check by check.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { conformanceGateway, stdioOptions } from '../support/conformance-gateways.ts'
import { compare, runConformance } from '../support/conformance.ts'
import type { Revision, ScenarioResult } from '../support/conformance.ts'
import { gatewayHome } from '../support/gateway-process.ts'
import type { GatewayHome, GatewayProcess } from '../support/gateway-process.ts'
import { startServer } from '../support/processes.ts'
import type { ServerProcess } from '../support/processes.ts'

const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28']

let shared: string
let server: ServerProcess
let home: GatewayHome
const direct = new Map<Revision, ScenarioResult[]>()

beforeAll(async () => {
  shared = await mkdtemp(join(tmpdir(), 'shared-'))
  home = await gatewayHome()
  server = await startServer('reference-server', 'http')
  await Promise.all(REVISIONS.map(async (revision) => direct.set(revision, await runConformance(server.url, revision))))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
  await rm(shared, { recursive: true, force: true })
})

const PROGRESS = 'tools-call-with-progress'

describe.concurrent.each([
  ['stdio', () => stdioOptions('--shared', shared)],
  ['Streamable HTTP', () => ({ url: server.url })],
])('the conformance suite with a dual-era server behind on %s', (name, options) => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await conformanceGateway(home, name.replaceAll(' ', '-'), options())
  })
  afterAll(() => gateway[Symbol.asyncDispose]())

  test.each(REVISIONS)('loses nothing of %s', async (revision) => {
    const through = await runConformance(gateway.url, revision)
    expect(through).toHaveLength(direct.get(revision)?.length ?? 0)
    // Progress is looked at below, where streams stay open.
    const lost = compare(direct.get(revision) ?? [], through).filter(({ scenario }) => scenario !== PROGRESS)
    expect(lost).toEqual([])
  })

  test.each(REVISIONS)('lets progress arrive before the answer, six times over (%s)', async (revision) => {
    // A session's first call may have to wait for its process: longer than the streams of the suite's gateway stay open.
    await using unpolled = await conformanceGateway(home, `${name.replaceAll(' ', '-')}-unpolled`, options(), {
      stream_after: { legacy: '0s' },
    })
    for (let run = 0; run < 6; run++) {
      const [result] = await runConformance(unpolled.url, revision, PROGRESS)
      expect(result).toMatchObject({ scenario: PROGRESS, passed: true })
    }
  })
})

test.concurrent('the conformance suite loses nothing of 2025-11-25 with a server behind on HTTP+SSE', async () => {
  await using legacy = await startServer('reference-server', 'sse')
  await using gateway = await conformanceGateway(home, 'sse', { url: legacy.url, transport: 'sse' })
  expect(compare(direct.get('2025-11-25') ?? [], await runConformance(gateway.url, '2025-11-25'))).toEqual([])
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
      expect(compare(direct.get('2026-07-28') ?? [], through, impossible)).toEqual([])
      expect(through.filter(({ passed }) => passed)).toHaveLength(49)
    },
  )

  test('2025-11-25 hosts lose nothing with a modern-only server behind', async () => {
    await using modern = await startServer('reference-server', 'http', '--era', 'modern')
    await using gateway = await conformanceGateway(home, 'modern', { url: modern.url })
    const through = await runConformance(gateway.url, '2025-11-25')
    expect(compare(direct.get('2025-11-25') ?? [], through)).toEqual([])
  })

  test('2025-11-25 hosts lose nothing with a legacy server behind', async () => {
    const options = stdioOptions('--era', 'legacy', '--shared', shared)
    await using gateway = await conformanceGateway(home, 'legacy-legacy', options)
    const through = await runConformance(gateway.url, '2025-11-25')
    // Each session has a process of its own to start, so this stream is closed before the progress comes, and of progress that
    // nobody is there for only the latest is kept (BRIDGING 5.1): it is looked at on a stream that is held open.
    const progress = 'tools-call-with-progress'
    expect(compare(direct.get('2025-11-25') ?? [], through, [progress])).toEqual([])
    await using held = await conformanceGateway(home, 'legacy-legacy-held', options, { stream_after: { legacy: '0s' } })
    expect(await runConformance(held.url, '2025-11-25', progress)).toMatchObject([{ scenario: progress, passed: true }])
  })
})
