/**
 * `npm run conformance:replicas [-- --replicas N --requirements REVISION]`: the official conformance suite through several replicas behind a
 * balancer that sends each request to the next one, with a real redis-server. Exits with 1 if any result is worse than at the server itself.
 */
import { parseArgs } from 'node:util'
import { compare, runConformance } from '../test/support/conformance.ts'
import type { Revision } from '../test/support/conformance.ts'
import { startServer } from '../test/support/processes.ts'
import { startRedis } from '../test/support/redis.ts'
import { cachedProgram } from './cached-build.ts'

process.env['TEST_PROGRAM'] = await cachedProgram()
const { conformanceReplicas } = await import('../test/support/conformance-gateways.ts')
const { gatewayHome } = await import('../test/support/gateway-process.ts')

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '3' },
    requirements: { type: 'string', multiple: true, default: ['2025-11-25', '2026-07-28'] },
  },
})
/** Streams that are closed early lose progress, as without replicas: it is looked at where they stay open. */
const PROGRESS = 'tools-call-with-progress'

await using redis = await startRedis()
await using home = await gatewayHome()
await using server = await startServer('reference-server', 'http')
const count = Number(values.replicas)
await using replicas = await conformanceReplicas(home, count, { url: server.url }, redis.url)
await using unpolledHome = await gatewayHome()
await using unpolled = await conformanceReplicas(unpolledHome, count, { url: server.url }, redis.url, {
  stream_after: { legacy: '0s' },
})
for (const revision of values.requirements as Revision[]) {
  const direct = await runConformance(server.url, revision)
  const through = await runConformance(replicas.url, revision)
  const lost = compare(direct, through).filter(({ scenario }) => scenario !== PROGRESS)
  const progress = await runConformance(unpolled.url, revision, PROGRESS)
  const isWhole = through.length === direct.length && progress.every(({ passed }) => passed)
  const passed = through.filter((result) => result.passed).length
  console.log(`${revision}: ${passed} of ${through.length} scenarios pass through ${count} replicas, ${lost.length} lost`)
  for (const { scenario, check, direct: before, through: after } of lost)
    console.log(`  LOST ${scenario}${check === undefined ? '' : `: ${check}`} (${before} directly, ${after} here)`)
  if (lost.length > 0 || !isWhole) process.exitCode = 1
}
