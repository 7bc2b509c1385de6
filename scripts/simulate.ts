/**
 * `npm run simulate [-- --seeds 100000 --from 1 --keep]`: runs complete gateways over simulated time, network, processes and disk, each with the plan of a
 * seed, and judges them (docs/simulator.md). `--replicas 5`: up to that many behind a balancer, with a store. Plans that failed before run first. A seed
 * that fails is minimized and printed, and with `--keep` written to test/corpus/simulations. `--replay FILE` runs one file, `--no-plans` none, `--minutes` limits
 * the run, `--processes 4` divides the seeds among so many processes. SIGINT and SIGTERM end it after the seeds that are running, with the figures so far.
 * Exits with 1 if something was found.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { realNowMs } from '../test/support/simulation/clock.ts'
import { planOf, replicaPlanOf } from '../test/support/simulation/plan.ts'
import type { Plan } from '../test/support/simulation/plan.ts'
import { REFERRED_TO } from '../test/support/simulation/rest.ts'
import { shrink } from '../test/support/simulation/shrink.ts'
import { simulate } from '../test/support/simulation/world.ts'

interface Kept {
  readonly finding: string
  readonly plan: Plan
}

/** Figures of one process. */
interface Total {
  seeds: number
  simulatedMs: number
  findings: number
  /** Calls by how they ended. */
  readonly ends: Record<string, number>
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
    processes: { type: 'string', default: '1' },
    /** Set for the processes that `--processes` starts: which of them this is, from 0. */
    part: { type: 'string' },
  },
  allowNegative: true,
})

const startMs = realNowMs()
const endMs = startMs + Number(values.minutes) * 60_000
const total: Total = { seeds: 0, simulatedMs: 0, findings: 0, ends: {} }
const stop = { isAsked: false }
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const add = ({ seeds, simulatedMs, findings, ends }: Total): void => {
  total.seeds += seeds
  total.simulatedMs += simulatedMs
  total.findings += findings
  for (const [end, count] of Object.entries(ends)) total.ends[end] = (total.ends[end] ?? 0) + count
}

const run = async (name: string, plan: Plan, isDeep: boolean): Promise<readonly string[]> => {
  const { findings, simulatedMs, ends } = await simulate(plan, isDeep)
  add({ seeds: 1, simulatedMs, findings: findings.length > 0 ? 1 : 0, ends })
  if (findings.length > 0) say(`${name}:\n  ${findings.slice(0, 5).join('\n  ')}`)
  return findings
}

const runFiles = async (): Promise<void> => {
  const plans = values.plans ? readdirSync(CORPUS).map((name) => join(CORPUS, name)) : []
  const files = values.replay === undefined ? plans : [values.replay]
  for (const file of files.filter((name) => name.endsWith('.json'))) {
    const { finding, plan } = JSON.parse(readFileSync(file, 'utf8')) as Kept
    await run(file, plan, values.replay !== undefined || finding.endsWith(REFERRED_TO))
  }
}

/** Every `step`-th seed from `first`. */
const runSeeds = async (first: number, step: number): Promise<void> => {
  const [deep, replicas] = [Number(values.deep), Number(values.replicas)]
  const until = Number(values.from) + Number(values.seeds)
  const isOver = (): boolean => stop.isAsked || total.findings >= MAX_FINDINGS || realNowMs() >= endMs
  for (let seed = first; seed < until && !isOver(); seed += step) {
    const isDeep = deep > 0 && seed % deep === 0
    const plan = replicas === 0 ? planOf(seed) : replicaPlanOf(seed, replicas)
    const [finding] = await run(`seed ${seed}`, plan, isDeep)
    if (finding === undefined || values.whole) continue
    const small = await shrink(plan, finding, async (next) => (await simulate(next, isDeep)).findings)
    const kept = JSON.stringify({ finding, plan: small } satisfies Kept, undefined, 1)
    if (values.keep) writeFileSync(join(CORPUS, `${replicas === 0 ? 'seed' : 'replicas'}-${seed}.json`), `${kept}\n`)
    say(kept)
  }
}

/** Runs the seeds in other processes and adds their figures. */
const runProcesses = async (count: number): Promise<void> => {
  const parts = Array.from({ length: count }, (_, part) =>
    fork(import.meta.filename, [...process.argv.slice(2), '--part', String(part)]),
  )
  for (const part of parts) part.on('message', (figures: Total) => add(figures))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => parts.forEach((part) => part.kill(signal)))
  const codes = await Promise.all(parts.map(async (part): Promise<unknown> => (await once(part, 'exit'))[0]))
  for (const [part, code] of codes.entries())
    if (code !== 0 && code !== 1) throw new Error(`process ${part} ended with ${String(code)}: some of its seeds did not run`)
}

const report = (): void => {
  const seconds = (realNowMs() - startMs) / 1_000
  const minutes = total.simulatedMs / 60_000
  const ends = Object.entries(total.ends).toSorted(([, a], [, b]) => b - a)
  const calls = ends.reduce((sum, [, count]) => sum + count, 0)
  say(
    `${total.seeds} simulations, ${calls} calls, ${minutes.toFixed(3)} simulated minutes in ${seconds.toFixed(1)} s ` +
      `(${Math.round(total.simulatedMs / seconds / 1_000)} times as fast), ${total.findings} with findings`,
  )
  say(ends.map(([end, count]) => `${end} ${count}`).join(', '))
}

const [from, processes] = [Number(values.from), Number(values.processes)]
if (values.part !== undefined || processes === 1)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => (stop.isAsked = true))
if (values.part === undefined) await runFiles()
if (values.part !== undefined) await runSeeds(from + Number(values.part), processes)
else if (values.replay === undefined) await (processes === 1 ? runSeeds(from, 1) : runProcesses(processes))
process.exitCode = total.findings > 0 ? 1 : 0
if (process.send === undefined) report()
else process.send(total, () => process.disconnect())
