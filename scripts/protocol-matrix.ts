/**
 * Probes every cell of the fidelity matrix through Trunkline, in this process, and writes docs/protocol.md from what was observed.
 * Exits with 1 when a cell is not what it should be; the page then says which.
 */
import { writeFile } from 'node:fs/promises'
import { differences } from '../test/support/fidelity/differences.ts'
import { probeAll } from '../test/support/fidelity/run.ts'
import { renderProtocolPage } from './protocol-page.ts'

const seen = await probeAll()
const results = new Map(seen.map(({ feature, host, server, observed }) => [`${feature} ${host} ${server}`, observed]))
const page = renderProtocolPage((feature, host, server) => results.get(`${feature.name} ${host.key} ${server.key}`))
await writeFile(new URL('../docs/protocol.md', import.meta.url), page)
const wrong = differences(seen)
console.log(`${seen.length - wrong.length} of ${seen.length} cells are as they should be`)
for (const line of wrong) console.log(`  ${line}`)
process.exitCode = wrong.length > 0 ? 1 : 0
