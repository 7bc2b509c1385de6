/** The official conformance suite through a bridge: what a server passes when it is reached directly, it passes at `/servers/<key>/mcp`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { conformanceGateway, stdioOptions } from '../support/conformance-gateways.ts'
import type { ConformanceGateway } from '../support/conformance-gateways.ts'
import { compare, runConformance } from '../support/conformance.ts'
import type { Revision } from '../support/conformance.ts'
import { gatewayHome } from '../support/gateway-process.ts'
import type { GatewayHome } from '../support/gateway-process.ts'
import { startServer } from '../support/processes.ts'
import type { ServerProcess } from '../support/processes.ts'

const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28']

/** Looked at elsewhere: it depends on when a stream is closed to be polled. */
const PROGRESS = 'tools-call-with-progress'

let shared: string
let home: GatewayHome
let dual: ServerProcess
let legacy: ServerProcess
beforeAll(async () => {
  shared = await mkdtemp(join(tmpdir(), 'shared-'))
  home = await gatewayHome()
  dual = await startServer('reference-server', 'http')
  legacy = await startServer('reference-server', 'http', '--era', 'legacy')
})
afterAll(async () => {
  await dual[Symbol.asyncDispose]()
  await legacy[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
  await rm(shared, { recursive: true, force: true })
})

describe.concurrent.each([
  {
    name: 'dual-era server over Streamable HTTP',
    key: 'dual-http',
    revisions: REVISIONS,
    options: () => ({ url: dual.url }),
    url: () => dual.url,
  },
  {
    name: 'dual-era server over stdio',
    key: 'dual-stdio',
    revisions: REVISIONS,
    options: () => stdioOptions('--shared', shared),
    url: () => dual.url,
  },
  {
    name: 'legacy server',
    key: 'legacy',
    revisions: REVISIONS.slice(0, 1),
    options: () => ({ url: legacy.url }),
    url: () => legacy.url,
  },
])('B277 a bridge in front of the SDK’s $name', ({ key, revisions, options, url }) => {
  let gateway: ConformanceGateway
  beforeAll(async () => {
    gateway = await conformanceGateway(home, key, options())
  })
  afterAll(() => gateway[Symbol.asyncDispose]())

  test.each(revisions)('passes of %s what the server passes', async (revision) => {
    const [direct, through] = await Promise.all([runConformance(url(), revision), runConformance(gateway.bridge, revision)])
    expect(through).toHaveLength(direct.length)
    expect(direct.filter(({ passed }) => passed).length).toBeGreaterThan(25)
    expect(compare(direct, through).filter(({ scenario }) => scenario !== PROGRESS)).toEqual([])
  })
})
