/**
 * `npm run soak -- --minutes N [--seed S] [--hosts N] [--calls N]`: a gateway between fifteen servers of every transport and era and
 * hosts that connect, call with the id 1 (`--calls`: at most that often) and disconnect. Prints the state of the gateway and the findings of the
 * referee. Exits with 1 if a call was lost, crossed, doubled or reported wrongly, or a process was left.
 */
import { parseArgs } from 'node:util'
import { openArena } from '../test/support/arena/arena.ts'
import { runCrowd, seeded } from '../test/support/arena/crowd.ts'
import { heapSlope, sampleLine, takeSample, verdictLines } from '../test/support/arena/tally.ts'
import type { Sample } from '../test/support/arena/tally.ts'
import { isAlive } from '../test/support/pids.ts'

const SAMPLES = 40
const TOLD = 10
const SETTLE_MS = 60_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    hosts: { type: 'string', default: '24' },
    calls: { type: 'string', default: '2000' },
  },
})
const forMs = Number(values.minutes) * 60_000
const seed = Number(values.seed)

await using arena = await openArena({
  perKind: 3,
  isFaulty: false,
  // Sessions that vanished must be gone again within the run.
  config: { listen: { limits: { session_idle: '10s' } }, telemetry: { log: { level: 'error' } } },
})
console.log(`seed ${seed}, ${values.hosts} hosts, ${arena.seats.length} servers, ${values.minutes} minutes`)
const startedMs = performance.now()
const isOver = (): boolean => performance.now() - startedMs >= forMs
const crowd = runCrowd(arena, {
  hosts: Number(values.hosts),
  lanes: 3,
  random: seeded(seed),
  callsPerSession: Number(values.calls),
  isOver,
})

const samples: Sample[] = []
const everyMs = forMs / SAMPLES
while (!isOver()) {
  await new Promise((resolve) => setTimeout(resolve, everyMs))
  // In the last one the hosts are leaving.
  if (isOver()) break
  const sample = await takeSample(arena)
  samples.push(sample)
  arena.tidy()
  if (samples.length % (SAMPLES / TOLD) === 0)
    console.log(`${Math.round((performance.now() - startedMs) / 1000)} s: ${arena.referee.calls} calls, ${sampleLine(sample)}`)
}
const sessions = await crowd
const seconds = (performance.now() - startedMs) / 1000
await arena.referee.settled(SETTLE_MS)
const children = arena.children()
const exit = await arena.stop()
const left = children.filter(isAlive)

const { referee } = arena
for (const line of verdictLines(referee.verdict)) console.log(line)
console.log(`${(referee.calls / seconds).toFixed(0)} calls/s, ${sessions} sessions`)
console.log(`heap slope over the second half ${heapSlope(samples).toFixed(2)} MiB/h`)
console.log(`exit ${exit}, processes left ${left.length}`)
for (const finding of referee.findings) console.log(finding)
process.exitCode = referee.isClean && exit === 0 && left.length === 0 ? 0 : 1
