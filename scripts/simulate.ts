/**
 * `npm run simulate [-- --seeds 100000 --from 1 --keep]`: runs complete gateways over simulated time, network, processes and disk, each with the plan of a
 * seed, and judges them (docs/simulator.md). `--replicas 5`: up to that many behind a balancer, with a store. Plans that failed before run first. A seed
 * that fails is minimized and printed, and with `--keep` written to test/corpus/simulations. `--replay FILE` runs one file, `--no-plans` none, `--minutes` limits the run.
 * Exits with 1 if something was found.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { realNowMs } from '../test/support/simulation/clock.ts'
import { planOf, replicaPlanOf } from '../test/support/simulation/plan.ts'
import type { Plan } from '../test/support/simulation/plan.ts'
import { shrink } from '../test/support/simulation/shrink.ts'
import { simulate } from '../test/support/simulation/world.ts'

interface Kept {
  readonly finding: string
  readonly plan: Plan
}

const CORPUS = fileURLToPath(new URL('../test/corpus/simulations/', import.meta.url))
const MAX_FINDINGS = 30

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    /** Of so many, one is looked through for objects that something still refers to, which takes seconds; 0: none. */
    deep: { type: 'string', default: '250' },
    keep: { type: 'boolean', default: false },
    /** Findings are not made smaller. */
    whole: { type: 'boolean', default: false },
    replay: { type: 'string' },
    /** `--no-plans`: seeds only. */
    plans: { type: 'boolean', default: true },
    /** At most so many, instead of one gateway; 0: one. */
    replicas: { type: 'string', default: '0' },
    /** No seed begins later. */
    minutes: { type: 'string', default: 'Infinity' },
  },
  allowNegative: true,
})

const startMs = realNowMs()
const endMs = startMs + Number(values.minutes) * 60_000
const total = { seeds: 0, simulatedMs: 0, findings: 0 }
const ends = new Map<string, number>()
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const run = async (name: string, plan: Plan, isDeep: boolean): Promise<readonly string[]> => {
  const report = await simulate(plan, isDeep)
  total.seeds++
  total.simulatedMs += report.simulatedMs
  for (const [end, count] of Object.entries(report.ends)) ends.set(end, (ends.get(end) ?? 0) + count)
  if (report.findings.length > 0) {
    total.findings++
    say(`${name}:\n  ${report.findings.slice(0, 5).join('\n  ')}`)
  }
  return report.findings
}

const plans = values.plans ? readdirSync(CORPUS).map((name) => join(CORPUS, name)) : []
const files = values.replay === undefined ? plans : [values.replay]
for (const file of files.filter((name) => name.endsWith('.json')))
  await run(file, (JSON.parse(readFileSync(file, 'utf8')) as Kept).plan, values.replay !== undefined)

const [from, deep] = [Number(values.from), Number(values.deep)]
const until = values.replay === undefined ? from + Number(values.seeds) : from
for (let seed = from; seed < until && total.findings < MAX_FINDINGS && realNowMs() < endMs; seed++) {
  const isDeep = deep > 0 && seed % deep === 0
  const replicas = Number(values.replicas)
  const plan = replicas === 0 ? planOf(seed) : replicaPlanOf(seed, replicas)
  const [finding] = await run(`seed ${seed}`, plan, isDeep)
  if (finding === undefined || values.whole) continue
  const small = await shrink(plan, finding, async (next) => (await simulate(next, isDeep)).findings)
  const kept = JSON.stringify({ finding, plan: small } satisfies Kept, undefined, 1)
  if (values.keep) writeFileSync(join(CORPUS, `${replicas === 0 ? 'seed' : 'replicas'}-${seed}.json`), `${kept}\n`)
  say(kept)
}

const seconds = (realNowMs() - startMs) / 1_000
const minutes = total.simulatedMs / 60_000
const calls = [...ends.values()].reduce((sum, count) => sum + count, 0)
say(
  `${total.seeds} simulations, ${calls} calls, ${minutes.toFixed(3)} simulated minutes in ${seconds.toFixed(1)} s ` +
    `(${Math.round(total.simulatedMs / seconds / 1_000)} times as fast), ${total.findings} with findings`,
)
say(
  [...ends]
    .toSorted(([, a], [, b]) => b - a)
    .map(([end, count]) => `${end} ${count}`)
    .join(', '),
)
process.exitCode = total.findings > 0 ? 1 : 0
