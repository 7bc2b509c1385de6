/**
 * `npm run mutate [-- --count 60 --seed 1 --folder wire --only 3,17]`: breaks the program on purpose, one place at a time, and runs the tests that
 * come to this place, in their own process or in one that they start, the nearest first and at most some dozens. A mutation that no test
 * detects is printed with its place: either a test is missing, or the code is not needed. Works in a copy of the checkout. Exits with 1
 * if less than 95 % are detected.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { MutatedCopy } from './mutated-copy.ts'
import type { Ended } from './mutated-copy.ts'
import { draw } from './mutations.ts'
import type { Mutation, Source } from './mutations.ts'
import { nearestTests } from './nearest-tests.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** What must be caught, as a part of all. */
const GOAL = 0.95
/** Test files for one mutation in each round. */
const AT_ONCE = [2, 4, 12] as const
/** Code whose tests are the end-to-end ones, that is data (types, tables of words), or that is in another language (AssemblyScript). */
const LEFT_OUT = /^src\/wire\/kernel\/assembly\/|\.d\.ts$|-schema\.ts$|^src\/(main|program|version)\.ts$/
/**
 * The kinds of tests, each tried where those before it detect nothing. `nearest`: so many are tried even where they were not seen at the
 * place, because what is computed once is seen in one test of a process alone.
 */
const KINDS = [
  { kind: 'unit', nearest: 6 },
  { kind: 'integration', nearest: 3 },
  { kind: 'e2e', nearest: 0 },
] as const
/** Take a minute on a busy machine, and see what shorter tests see, or come to nearly every place and look at generated pages alone. */
const LEFT_OUT_TESTS =
  /\/(?:differential|failure-free-calls|fidelity-matrix|floods|pooled-memory|simulation)\.|^test\/e2e\/(?:bridge|client-conf|conf|executable|faults|gateway-inspector|gateway-matrix-stdio|package|peers|proxies)|^test\/unit\/(?:config\/generated|site|[a-z-]+-page)\.test\.ts$/

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    /** Only files of `src` whose paths begin with one of these, with commas between them. */
    folder: { type: 'string', default: '' },
    /** Of those that are drawn, only these, by their numbers from 1 with commas between them: a draw can be tried in parts. */
    only: { type: 'string', default: '' },
    /** Not more test files than these are tried for one mutation, the nearest of each kind that come to it; 0: none of this kind. */
    unit: { type: 'string', default: '40' },
    integration: { type: 'string', default: '32' },
    e2e: { type: 'string', default: '6' },
    /** A run in which so many minutes long no test file ends is cut off; a mutation that hangs its test is caught. */
    minutes: { type: 'string', default: '4' },
  },
})

/** Mulberry32: numbers from 0 to 1, the same for the same seed. */
const random = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

const sources = (): readonly Source[] =>
  execFileSync('git', ['ls-files', 'src'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter(
      (file) =>
        file.endsWith('.ts') &&
        !LEFT_OUT.test(file) &&
        values.folder.split(',').some((start) => file.startsWith(join('src', start))),
    )
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }))

interface Tried extends Mutation {
  /** Its place in the draw, from 1. */
  readonly number: number
  readonly key: number
  /** Those that are to be tried, in this order. */
  left: readonly string[]
  /** What failed once may have failed by chance, on a busy machine: it has to do so again. */
  readonly suspects: Set<string>
  files: number
  isCaught: boolean
}

const testsOf = nearestTests(ROOT)

const say = (verdict: string, { number, file, line, before, after, files }: Tried): void =>
  console.log(`${verdict} ${number}  ${file}:${line}  ${before}  →  ${after}  (${files} test files)`)

/** Takes note of how a round ended. */
const judge = (round: readonly (readonly [string, Tried])[], ended: readonly Ended[]): void => {
  for (const [at, [test, one]] of round.entries()) {
    if (ended[at] === undefined) continue
    one.files++
    if (ended[at] === 'red' && one.suspects.has(test)) one.isCaught = true
    else if (ended[at] === 'red') one.suspects.add(test)
    else {
      one.suspects.delete(test)
      one.left = one.left.filter((other) => other !== test)
    }
  }
}

/** Tells of those that are caught, and returns those that have tests left. */
const open = (some: readonly Tried[]): readonly Tried[] =>
  some.filter((one) => {
    if (one.isCaught) say('caught  ', one)
    return !one.isCaught && one.left.length > 0
  })

/** The next tests of a mutation: first those that were red once. */
const nextOf = (one: Tried, count: number): readonly (readonly [string, Tried])[] =>
  (one.suspects.size > 0 ? [...one.suspects].slice(0, 2) : one.left.slice(0, count)).map((test) => [test, one] as const)

const only = values.only.split(',').filter((number) => number !== '')
const drawn = draw(sources(), Number(values.count), random(Number(values.seed))).map((mutation, at) => ({
  ...mutation,
  number: at + 1,
}))
const mutations = drawn.filter(({ number }) => only.length === 0 || only.includes(String(number)))
using copy = new MutatedCopy(ROOT, mutations, Number(values.minutes) * 60_000)
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    copy[Symbol.dispose]()
    process.exit(1)
  })
console.log(`${mutations.length} mutations, seed ${values.seed}`)
const tried = mutations.map((mutation, key): Tried => {
  return { ...mutation, key, left: [], suspects: new Set(), files: 0, isCaught: false }
})

for (const { kind, nearest } of KINDS) {
  const some = tried.filter(({ isCaught }) => !isCaught)
  const most = Number(values[kind])
  // Where the nearest alone are tried, nobody has to see which others come to a place.
  const candidatesOf = ({ file }: Mutation): readonly string[] =>
    testsOf(file)
      .filter((test) => test.startsWith(join('test', kind, '/')) && !LEFT_OUT_TESTS.test(test))
      .slice(0, most <= nearest ? most : undefined)
  const all = [...new Set(some.flatMap(candidatesOf))]
  const { green, reached } = await copy.probe(all)
  const red = all.filter((test) => !green.has(test))
  if (red.length > 0) console.log(`red before anything was broken, left out: ${red.join(' ')}`)
  for (const one of some) {
    const mayDetect = (test: string, at: number): boolean =>
      green.has(test) && (one.isStatic || at < nearest || reached.get(one.key)?.has(test) === true)
    one.left = candidatesOf(one).filter(mayDetect).slice(0, most)
  }
  // What runs while its module is loaded is on in a whole run or not at all: modules are loaded once for several test files.
  for (const one of some.filter(({ isStatic }) => isStatic))
    while (open([one]).length > 0) {
      const round = nextOf(one, 12)
      judge(
        round,
        await copy.run(
          round.map(([test]) => ({ test })),
          one.key,
        ),
      )
    }
  let rest = open(some.filter(({ isStatic }) => !isStatic))
  for (let count = 0; rest.length > 0; count++) {
    const round = rest.flatMap((one) => nextOf(one, AT_ONCE[Math.min(count, AT_ONCE.length - 1)] ?? 1))
    judge(round, await copy.run(round.map(([test, { key }]) => ({ test, key }))))
    rest = open(rest)
  }
}
for (const one of tried) if (!one.isCaught) say('SURVIVED', one)
const caught = tried.filter(({ isCaught }) => isCaught).length
console.log(`${caught} of ${tried.length} caught`)
if (caught < GOAL * tried.length) process.exitCode = 1
