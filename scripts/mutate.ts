/**
 * `npm run mutate [-- --count 60 --seed 1 --from 1 --folder wire]`: breaks the program on purpose, one place at a time, and runs the tests that
 * reach the broken file, the nearest first and not more than some dozens. A mutation that no test notices is printed with its place: either a test is missing, or the
 * code is needless. Works in a copy of the checkout, so that nothing here changes. Ends with 1 where less than 95 % are caught.
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { placesIn } from './mutations.ts'
import type { Mutation } from './mutations.ts'
import { nearestTests } from './nearest-tests.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** What must be caught, as a part of all. */
const GOAL = 0.95
/** The kinds of tests, cheapest first, each in groups of so many files: the next is run only where the one before notices nothing. */
const GROUPS = { unit: [6, 40, Infinity], integration: [6, 24] } as const
/** Code whose tests are the end-to-end ones, that is data (types, tables of words), or that is in another language (AssemblyScript). */
const LEFT_OUT = /^src\/wire\/kernel\/assembly\/|\.d\.ts$|-schema\.ts$|^src\/(main|program|version)\.ts$/

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '60' },
    /** Leaves out those before this one, from 1: goes on where a run of the same seed and count was cut off. */
    from: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    /** Only files under this folder of `src`. */
    folder: { type: 'string', default: '' },
    /** Minutes that the tests of one mutation may take; one that hangs them is caught. */
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

/** Places spread over the folders of `src` in turn, so that a large folder does not take all. */
const choose = (count: number, next: () => number): readonly Mutation[] => {
  const files = execFileSync('git', ['ls-files', 'src'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => file.endsWith('.ts') && !LEFT_OUT.test(file) && file.startsWith(join('src', values.folder)))
  const folders = Map.groupBy(
    files.flatMap((file) => placesIn(file, readFileSync(join(ROOT, file), 'utf8'))),
    ({ file }) => file.split('/', 2).join('/'),
  )
  const chosen: Mutation[] = []
  while (chosen.length < count && folders.size > 0)
    for (const [folder, places] of folders) {
      const [taken] = places.splice(Math.floor(next() * places.length), 1)
      if (taken !== undefined && chosen.length < count) chosen.push(taken)
      if (places.length === 0) folders.delete(folder)
    }
  return chosen
}

/** A copy of the checkout that shares its `node_modules`. */
const copyOfCheckout = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'mutate-'))
  for (const file of execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n'))
    cpSync(join(ROOT, file), join(folder, file), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Whether one of `tests` fails, or hangs. */
const areTestsRed = (folder: string, kind: string, tests: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const words = ['run', '--project', kind, '--bail=1', '--retry=0', '--reporter=dot', ...tests]
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...words], {
      cwd: folder,
      stdio: 'ignore',
      detached: true,
    })
    const stop = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), Number(values.minutes) * 60_000)
    child.on('exit', (code) => {
      clearTimeout(stop)
      resolve(code !== 0)
    })
  })

/** What fails once may fail by chance, on a busy machine, too. */
const areRedTwice = async (folder: string, kind: string, tests: readonly string[]): Promise<boolean> =>
  (await areTestsRed(folder, kind, tests)) && (await areTestsRed(folder, kind, tests))

const testsOf = nearestTests(ROOT)

const isCaught = async (folder: string, { file, start, end, text }: Mutation): Promise<boolean> => {
  const source = readFileSync(join(ROOT, file), 'utf8')
  writeFileSync(join(folder, file), source.slice(0, start) + text + source.slice(end))
  const tests = testsOf(file)
  try {
    for (const [kind, sizes] of Object.entries(GROUPS)) {
      let left = tests.filter((test) => test.startsWith(join('test', kind, '/')))
      for (const size of sizes) {
        if (left.length > 0 && (await areRedTwice(folder, kind, left.slice(0, size)))) return true
        left = left.slice(size)
      }
    }
    return false
  } finally {
    writeFileSync(join(folder, file), source)
  }
}

const folder = copyOfCheckout()
try {
  const mutations = choose(Number(values.count), random(Number(values.seed))).slice(Number(values.from) - 1)
  console.log(`${mutations.length} mutations, seed ${values.seed}`)
  const [first = ''] = testsOf(mutations[0]?.file ?? '')
  if (await areTestsRed(folder, first.split('/')[1] ?? '', [first]))
    throw new Error(`${first} fails before anything was broken: mend it first`)
  let caught = 0
  for (const mutation of mutations) {
    const { file, line, before, text } = mutation
    const started = performance.now()
    const found = await isCaught(folder, mutation)
    if (found) caught++
    const seconds = `${((performance.now() - started) / 1e3).toFixed(0)} s`
    console.log(`${found ? 'caught  ' : 'SURVIVED'} ${file}:${line}  ${before}  →  ${text}  (${seconds})`)
  }
  console.log(`${caught} of ${mutations.length} caught`)
  if (caught < GOAL * mutations.length) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
