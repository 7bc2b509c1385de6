/** The Inspector's command line through Trunkline, in front of a legacy and a modern server at once. */
import { afterAll, beforeAll, describe } from 'vitest'
import { gatewayHome, startGatewayProcess, stdioGateway } from '../support/gateway-process.ts'
import type { GatewayProcess } from '../support/gateway-process.ts'
import type { InspectorEra } from '../support/inspector.ts'
import { startDownstream } from './gateway-cells.ts'
import { inspectorSuite } from './inspector-suite.ts'

const servers = ['stdio-legacy', 'http-modern'] as const
const transports = [
  { over: 'stdio', eras: ['legacy', 'auto', 'modern'] },
  { over: 'http', eras: ['legacy', 'auto', 'modern'] },
  { over: 'sse', eras: ['legacy', 'auto'] },
] as const
const cells = transports.flatMap(({ over, eras }) => eras.map((era: InspectorEra) => ({ over, era })))

const opened = new AsyncDisposableStack()
let file: string
let gateway: GatewayProcess
beforeAll(async () => {
  const home = opened.use(await gatewayHome())
  const started = servers.map(async (key) => [key, opened.use(await startDownstream(key)).config])
  file = await home.write('trunkline', {
    servers: Object.fromEntries(await Promise.all(started)),
    // Over stdio the Inspector passes on what we log: only complaints, then.
    telemetry: { log: { level: 'warn' } },
  })
  gateway = opened.use(await startGatewayProcess(file))
})
afterAll(() => opened.disposeAsync())

describe.each(cells)('the Inspector over $over in era $era', ({ over, era }) => {
  const targets = {
    stdio: () => stdioGateway(file),
    http: () => ({ url: gateway.url }),
    sse: () => ({ url: gateway.sseUrl }),
  }
  // The server of the other era is the one that takes bridging.
  inspectorSuite(targets[over], era, { prefix: era === 'legacy' ? 'http-modern' : 'stdio-legacy' })
})
