/**
 * Random input for every parser of untrusted input: `npm run fuzz -- --minutes N` divides the time among the 18 parsers;
 * `--runs N` gives each that many inputs instead, `--parser WORD` selects those whose name contains the word, `--seed S` repeats a run. The
 * corpus is run first. An input that breaks a promise, or takes longer than 50 ms per 64 KiB, is minimized, printed and added to
 * `test/corpus/bytes.json`, which the tests run from then on. Exits with 1 if there was any.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { leastMs } from '../test/support/cpu.ts'
import { fuzz } from '../test/support/fuzz/run.ts'
import type { Target } from '../test/support/fuzz/target.ts'
import { badInputs, targets } from '../test/support/fuzz/targets.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    runs: { type: 'string' },
    parser: { type: 'string', default: '' },
    seed: { type: 'string' },
  },
})
const chosen = targets.filter(({ name }) => name.toLowerCase().includes(values.parser.toLowerCase()))
const totalMs = values.runs === undefined ? Number(values.minutes ?? 1) * 60_000 : Infinity
const numRuns = values.runs === undefined ? Number.MAX_SAFE_INTEGER : Number(values.runs)
const seed = Number(values.seed ?? Date.now() % 2 ** 31)

const CORPUS = new URL('../test/corpus/bytes.json', import.meta.url)
const BIG_BYTES = 64 * 1024
/** A check reads its input a few times in full and in pieces, besides what it is compared with: the budget of one reading, so often. */
const READINGS = 32
const BUDGET_MS = 50 * READINGS

const corpus = badInputs()
let found = 0

const enlarge = (input: Buffer): Buffer =>
  input.length === 0
    ? input
    : Buffer.concat(Array.from({ length: Math.ceil(BIG_BYTES / input.length) }, () => input)).subarray(0, BIG_BYTES)

const keep = (target: Target, input: Buffer, why: unknown): void => {
  found++
  console.log(`${target.name}: ${JSON.stringify(input.toString('latin1').slice(0, 300))}\n${String(why)}`)
  const kept = JSON.parse(readFileSync(CORPUS, 'utf8')) as { seeds: string[]; found: string[] }
  const text = input.toString('latin1')
  if (kept.found.includes(text)) return
  kept.found.push(text)
  const list = (texts: string[]): string =>
    texts.length === 0 ? '[]' : `[\n${texts.map((one) => `    ${JSON.stringify(one)}`).join(',\n')}\n  ]`
  writeFileSync(CORPUS, `{\n  "seeds": ${list(kept.seeds)},\n  "found": ${list(kept.found)}\n}\n`)
}

/** The corpus, then each word of the language repeated to 64 KiB; returns the milliseconds of the slowest. */
const replay = (target: Target): number => {
  let slowestMs = 0
  const attempt = (input: Buffer, run: () => void): void => {
    try {
      run()
    } catch (error) {
      keep(target, input, error)
    }
  }
  for (const input of corpus) attempt(input, () => target.check(input))
  for (const word of target.words.map((text) => Buffer.from(text))) {
    attempt(word, () => {
      const ms = leastMs(() => target.check(enlarge(word)), BUDGET_MS)
      slowestMs = Math.max(slowestMs, ms)
      if (ms > BUDGET_MS) throw new Error(`repeated to 64 KiB it took ${Math.round(ms)} ms of CPU`)
    })
  }
  return slowestMs
}

console.log(`seed ${seed}, ${corpus.length} inputs in the corpus`)
for (const target of chosen) {
  const startedMs = performance.now()
  const slowestMs = replay(target)
  const leftMs = totalMs / chosen.length - (performance.now() - startedMs)
  const { details, runs } = await fuzz(target, {
    numRuns,
    seed,
    ...(totalMs !== Infinity && { interruptAfterTimeLimit: Math.max(1_000, leftMs) }),
  })
  if (details.failed && details.counterexample !== null) keep(target, details.counterexample[0], details.errorInstance)
  const seconds = (performance.now() - startedMs) / 1_000
  const verdict = details.failed && details.counterexample !== null ? 'FAILED' : 'ok'
  console.log(
    `${target.name.padEnd(24)} ${verdict.padEnd(6)} ${String(runs).padStart(9)} runs in ${seconds.toFixed(0)} s, slowest 64 KiB ${slowestMs.toFixed(0)} ms`,
  )
}
console.log(`${found} found`)
process.exitCode = found === 0 ? 0 : 1
