/**
 * Probes every cell of the fidelity matrix through Trunkline, in this process, and writes docs/protocol.md from the results. Then it
 * plays every bridge scenario directly and through Trunkline, and writes docs/direct-and-through.md.
 * Exits with 1 if a cell or scenario differs from the expectation; the page shows which.
 */
import { isDeepStrictEqual } from 'node:util'
import { writeFile } from 'node:fs/promises'
import PQueue from 'p-queue'
import { differences } from '../test/support/fidelity/differences.ts'
import { probeAll } from '../test/support/fidelity/run.ts'
import { isPlayed, play } from '../test/support/bridged/play.ts'
import { ROWS } from '../test/support/bridged/rows.ts'
import { SCENARIOS } from '../test/support/bridged/scenarios.ts'
import { renderBridgePage } from './bridge-page.ts'
import { renderProtocolPage } from './protocol-page.ts'

const seen = await probeAll()
const results = new Map(seen.map(({ feature, host, server, observed }) => [`${feature} ${host} ${server}`, observed]))
const page = renderProtocolPage((feature, host, server) => results.get(`${feature.name} ${host.key} ${server.key}`))
await writeFile(new URL('../docs/protocol.md', import.meta.url), page)
const wrong = differences(seen)
console.log(`${seen.length - wrong.length} of ${seen.length} cells are as they should be`)
for (const line of wrong) console.log(`  ${line}`)

const different = new Set<string>()
// Most of a scenario is waiting.
const plays = new PQueue({ concurrency: 8 })
const played = ROWS.flatMap((row) => SCENARIOS.filter((one) => isPlayed(one, row)).map((scenario) => ({ row, scenario })))
await plays.addAll(
  played.map(({ row, scenario }) => async () => {
    const { direct, bridged } = await play(scenario, row)
    if (!isDeepStrictEqual(plain(direct), plain(bridged))) different.add(`${row.key}: ${scenario.name}`)
  }),
)
const bridges = renderBridgePage(({ name }, { key }) => (different.has(`${key}: ${name}`) ? 'different' : 'equal'))
await writeFile(new URL('../docs/direct-and-through.md', import.meta.url), bridges)
console.log(`${played.length - different.size} of ${played.length} scenarios are as they should be through a bridge`)
for (const line of different) console.log(`  ${line}`)
process.exitCode = wrong.length + different.size > 0 ? 1 : 0

/** Without members that are undefined. */
function plain(seen: unknown): unknown {
  return seen === undefined ? undefined : (JSON.parse(JSON.stringify(seen)) as unknown)
}
