/**
 * `npm run crowd -- [--minutes N] [--hosts N] [--servers N] [--seed S]`: hosts of both eras elicit, sample and
 * subscribe at the same time. Prints the figures. Exits with 1 if a message reached the wrong host, a turn failed, or anything is left.
 */
import { parseArgs } from 'node:util'
import { seeded } from '../test/support/arena/crowd.ts'
import { runCrowd } from '../test/support/crowd/crowd.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    hosts: { type: 'string', default: '200' },
    servers: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
  },
})
console.log(`${values.hosts} hosts, ${values.servers} servers, ${values.minutes} minutes, seed ${values.seed}`)
const { turns, rate, p50Ms, p99Ms, questions, joined, left, findings, heapMiB } = await runCrowd({
  hosts: Number(values.hosts),
  servers: Number(values.servers),
  forMs: Number(values.minutes) * 60_000,
  parkTtlMs: 20_000,
  random: seeded(Number(values.seed)),
})
const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
console.log(`turns: ${list(turns)}; ${rate.toFixed(0)}/s, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`)
console.log(`questions answered ${questions}, hosts that came and went ${joined}, heap ${heapMiB.toFixed(0)} MiB`)
console.log(`left: ${list(left)}`)
for (const finding of findings) console.log(finding)
const isClean = findings.length === 0 && Object.values(left).every((count) => count === 0)
process.exitCode = isClean ? 0 : 1
