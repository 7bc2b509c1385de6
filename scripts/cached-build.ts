/**
 * The program of this checkout as one bundle, which starts with a quarter of the CPU of `src/main.ts`. It is built from the current `src`,
 * kept in `node_modules/.cache/trunkline/<digest of src>` and used until a source changes. `npm start` and the tests run it.
 */
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CACHE = join(ROOT, 'node_modules', '.cache', 'trunkline')
/** A build that long unused goes: a branch and the one it left need not be built again at each switch, and no test loses its program. */
const KEPT_MS = 24 * 3_600_000

/** A digest of names, sizes and times: reading 400 files at each start would cost a third of what the bundle saves. */
const digestOf = (files: readonly string[]): string => {
  const digest = createHash('sha256')
  for (const file of files) {
    const { size, mtimeMs } = statSync(join(ROOT, file))
    digest.update(`${file} ${size} ${mtimeMs}\n`)
  }
  return digest.digest('hex').slice(0, 16)
}

/** The files with an extension below a folder, as paths from the root of the checkout, in a fixed order. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.\w+$/.test(file))
    .sort()
    .map((file) => join(folder, file))

/** The folder of the cache that belongs to these files as they stand. `make` fills it where it does not exist; it is never seen half full. */
export const cachedFolder = async (
  prefix: string,
  files: readonly string[],
  make: (folder: string) => Promise<void>,
): Promise<string> => {
  const folder = join(CACHE, `${prefix}${digestOf(files)}`)
  if (existsSync(folder)) return folder
  // Built aside and renamed, so that two that start at once never see half a build.
  const aside = join(CACHE, `making-${prefix}${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    await make(aside)
    renameSync(aside, folder)
  } catch (error) {
    rmSync(aside, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  removeOld()
  return folder
}

/** The path of the bundled program, built first where it does not exist yet (2 s). Rejects with the reason where it cannot be built. */
export const cachedProgram = async (): Promise<string> => {
  const files = [
    'package.json',
    'package-lock.json',
    'scripts/bundle-chunks.ts',
    'scripts/bundle.ts',
    'scripts/cached-build.ts',
    'scripts/dashboard.ts',
    ...filesBelow('src'),
  ]
  const folder = await cachedFolder('', files, async (aside) => {
    const { writeBundle } = await import('./bundle.ts')
    await writeBundle({ main: join(ROOT, 'src', 'main.ts'), index: join(ROOT, 'src', 'index.ts') }, join(aside, 'dist'), 'silent')
    const { buildDashboard } = await import('./dashboard.ts')
    await buildDashboard(join(aside, 'dist', 'dashboard'))
    cpSync(join(ROOT, 'package.json'), join(aside, 'package.json'))
  })
  return join(folder, 'dist', 'main.js')
}

const removeOld = (): void => {
  for (const name of readdirSync(CACHE)) {
    const folder = join(CACHE, name)
    const madeMs = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - madeMs > KEPT_MS) rmSync(folder, { recursive: true, force: true })
  }
}
