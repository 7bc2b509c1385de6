/**
 * `npm run mutate [-- --count 60 --seed 1 --folder wire --keep-going]`: breaks the program on purpose, one place at a time, and runs the tests that
 * reach the broken file, nearest first. A mutation that no test notices is printed with its place: either a test is missing, or the
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

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** What must be caught, as a part of all. */
const GOAL = 0.95
/** The kinds of tests, cheapest first: the next is run only where the one before notices nothing. */
const KINDS = ['unit', 'integration'] as const
/** Code whose tests are the end-to-end ones, that is data (types, tables of words), or that is in another language (AssemblyScript). */
const LEFT_OUT = /^src\/wire\/kernel\/assembly\/|\.d\.ts$|-schema\.ts$|^src\/(main|program|version)\.ts$/

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    /** Only files under this folder of `src`. */
    folder: { type: 'string', default: '' },
    /** Minutes that the tests of one mutation may take; one that hangs them is caught. */
    minutes: { type: 'string', default: '10' },
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

/** Whether the tests of one kind that reach `file` fail, or hang. */
const areTestsRed = (folder: string, kind: string, file: string): Promise<boolean> =>
  new Promise((resolve) => {
    const words = [
      'node_modules/vitest/vitest.mjs',
      'related',
      '--run',
      '--project',
      kind,
      '--bail=1',
      '--retry=0',
      '--reporter=dot',
      file,
    ]
    const child = spawn(process.execPath, words, { cwd: folder, stdio: 'ignore', detached: true })
    const stop = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), Number(values.minutes) * 60_000)
    child.on('exit', (code) => {
      clearTimeout(stop)
      resolve(code !== 0)
    })
  })

const isCaught = async (folder: string, { file, start, end, text }: Mutation): Promise<boolean> => {
  const source = readFileSync(join(ROOT, file), 'utf8')
  writeFileSync(join(folder, file), source.slice(0, start) + text + source.slice(end))
  try {
    for (const kind of KINDS) if (await areTestsRed(folder, kind, file)) return true
    return false
  } finally {
    writeFileSync(join(folder, file), source)
  }
}

const folder = copyOfCheckout()
try {
  const mutations = choose(Number(values.count), random(Number(values.seed)))
  console.log(`${mutations.length} mutations, seed ${values.seed}`)
  let caught = 0
  for (const mutation of mutations) {
    const { file, line, before, text } = mutation
    const found = await isCaught(folder, mutation)
    if (found) caught++
    console.log(`${found ? 'caught  ' : 'SURVIVED'} ${file}:${line}  ${before}  →  ${text}`)
  }
  console.log(`${caught} of ${mutations.length} caught`)
  if (caught < GOAL * mutations.length) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
