/**
 * `node scripts/faults.ts [--crashes N] [--exits N] [--kills N] [--dribbles N] [--seed S]`: the rows of the fault table that need
 * many repetitions: a server killed with a hundred pending calls (F-01), one that exits after each third answer (F-09, in calls), the gateway
 * killed at random moments (F-23), slow sockets (T-23). Defaults: 1000, 10000, 200 and 2000. Exits with 1 for any finding.
 */
import { parseArgs } from 'node:util'
import { dribble } from '../test/support/faults/dribble.ts'
import { crashRounds, exitRounds, killRounds } from '../test/support/faults/rounds.ts'
import type { Rounds } from '../test/support/faults/rounds.ts'

const { values } = parseArgs({
  options: {
    crashes: { type: 'string' },
    exits: { type: 'string' },
    kills: { type: 'string' },
    dribbles: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
})
const { seed, ...chosen } = values
const isAll = Object.keys(chosen).length === 0
const count = (name: keyof typeof chosen, usual: number): number => Number(chosen[name] ?? (isAll ? usual : 0))

let odd = 0
const report = (name: string, { rounds, calls, odd: found }: Rounds): void => {
  console.log(`${name}: ${rounds} rounds, ${calls} calls, ${found.length} odd`)
  for (const line of found.slice(0, 20)) console.log(`  ${line}`)
  odd += found.length
}

for (const kind of ['legacy stdio', 'modern stdio'] as const) {
  const crashes = count('crashes', 1_000)
  if (crashes > 0) report(`F-01 ${kind}`, await crashRounds(kind, crashes))
  const exits = count('exits', 10_000)
  if (exits > 0) report(`F-09 ${kind}`, await exitRounds(kind, exits))
}
const kills = count('kills', 200)
if (kills > 0) report('F-23', await killRounds(kills, Number(seed)))
const dribbles = count('dribbles', 2_000)
if (dribbles > 0) {
  const { quietP99Ms, busyP99Ms, left, failed } = await dribble(dribbles)
  const p99 = `p99 of others ${quietP99Ms.toFixed(1)} ms before, ${busyP99Ms.toFixed(1)} ms meanwhile`
  console.log(`T-23: ${dribbles} sockets, ${p99}, ${failed} calls failed, ${left} sockets left`)
  odd += left + failed
}
process.exitCode = odd === 0 ? 0 : 1
