/**
 * `node scripts/floods.ts [--main FILE]`: the cost of calls to other servers while one server floods (B256). `--main`: the program of another
 * tree, for a comparison.
 */
import { parseArgs } from 'node:util'
import { flood, FLOODS } from '../test/support/floods/floods.ts'

const { values } = parseArgs({ options: { main: { type: 'string' } } })
for (const one of FLOODS) {
  const { name, quietP99Ms, floodP99Ms, maxMs, failed, cpu, seconds } = await flood(one, values.main)
  console.log(
    `${name}: p99 of others ${quietP99Ms.toFixed(1)} → ${floodP99Ms.toFixed(1)} ms (longest ${maxMs.toFixed(0)}), ` +
      `${failed} failed, gateway ${(100 * cpu).toFixed(0)} % of a core, ${seconds.toFixed(1)} s`,
  )
}
