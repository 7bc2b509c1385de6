/**
 * `npm run chaos -- --faults N [--seed S] [--hosts N]`: one random fault after the other, in real time, between hosts that all
 * use the id 1 and servers of every transport and era. Prints the faults and the findings of the referee. Exits with 1 if a call was
 * lost, crossed, doubled or reported wrongly, a server stayed unhealthy, or a process was left.
 */
import { parseArgs } from 'node:util'
import { runChaos } from '../test/support/arena/chaos.ts'
import { sampleLine, takeSample, verdictLines } from '../test/support/arena/tally.ts'
import { isAlive } from '../test/support/pids.ts'

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    hosts: { type: 'string', default: '12' },
    verbose: { type: 'boolean', default: false },
  },
})
const faults = Number(values.faults)
console.log(`${faults} faults, seed ${values.seed}, ${values.hosts} hosts`)
const startedMs = performance.now()
await using end = await runChaos({
  faults,
  seed: Number(values.seed),
  hosts: Number(values.hosts),
  perKind: 2,
  onFault: (name, number) => {
    if (values.verbose || number % 500 === 0) console.log(`${number}: ${name}`)
  },
})
const { arena, done, unwell } = end
const sample = await takeSample(arena)
const children = arena.children()
const exit = await arena.stop()
const left = children.filter(isAlive)

for (const [name, count] of [...done].sort()) console.log(`${count} × ${name}`)
for (const line of verdictLines(arena.referee.verdict)) console.log(line)
console.log(`${sampleLine(sample)}, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
console.log(`exit ${exit}, processes left ${left.length}, servers unwell ${unwell.length}`)
for (const finding of [...arena.referee.findings, ...unwell]) console.log(finding)
process.exitCode = arena.referee.isClean && unwell.length === 0 && exit === 0 && left.length === 0 ? 0 : 1
