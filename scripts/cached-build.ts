/**
 * The program of this checkout as one bundle, which starts in a quarter of the CPU that `src/main.ts` needs. Made from `src` as it stands,
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

/** A digest of what the bundle is made from (names, sizes, times): reading 400 files at each start would cost a third of what it saves. */
const digestOfSources = (): string => {
  const digest = createHash('sha256')
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => /\.\w+$/.test(file))
  const files = [
    'package.json',
    'package-lock.json',
    'scripts/bundle-chunks.ts',
    'scripts/bundle.ts',
    'scripts/cached-build.ts',
    'scripts/dashboard.ts',
    ...sources.sort().map((file) => join('src', file)),
  ]
  for (const file of files) {
    const { size, mtimeMs } = statSync(join(ROOT, file))
    digest.update(`${file} ${size} ${mtimeMs}\n`)
  }
  return digest.digest('hex').slice(0, 16)
}

/** The path of the bundled program, built first where it does not exist yet (2 s). Rejects with the reason where it cannot be built. */
export const cachedProgram = async (): Promise<string> => {
  const folder = join(CACHE, digestOfSources())
  const program = join(folder, 'dist', 'main.js')
  if (existsSync(program)) return program
  const { writeBundle } = await import('./bundle.ts')
  // Built aside and renamed, so that two that start at once never see half a build.
  const aside = join(CACHE, `making-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    await writeBundle({ main: join(ROOT, 'src', 'main.ts'), index: join(ROOT, 'src', 'index.ts') }, join(aside, 'dist'), 'silent')
    const { buildDashboard } = await import('./dashboard.ts')
    await buildDashboard(join(aside, 'dist', 'dashboard'))
    cpSync(join(ROOT, 'package.json'), join(aside, 'package.json'))
    renameSync(aside, folder)
  } catch (error) {
    rmSync(aside, { recursive: true, force: true })
    if (!existsSync(program)) throw error
  }
  removeOld()
  return program
}

const removeOld = (): void => {
  for (const name of readdirSync(CACHE)) {
    const folder = join(CACHE, name)
    const madeMs = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (Date.now() - madeMs > KEPT_MS) rmSync(folder, { recursive: true, force: true })
  }
}
