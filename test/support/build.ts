/** Before the first test, and before each run of a watched one: builds the programs that tests start as processes. Temporary files are kept in memory. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { cachedProgram } from '../../scripts/cached-build.ts'
import { cachedPeers } from './peer-bundle.ts'

const build = async (): Promise<void> => {
  const [program, peers] = await Promise.all([cachedProgram(), cachedPeers()])
  // Workers are forked after this, with our environment.
  process.env['TEST_PROGRAM'] = program
  process.env['TEST_PEERS'] = peers
  // Compiled code of every Node that a test starts with our environment: a start from it needs a third less CPU.
  process.env['NODE_COMPILE_CACHE'] = join(dirname(peers), 'compiled')
  const perl = findPerl()
  if (perl !== undefined) process.env['TEST_PERL'] = perl
}

/** A Perl that starts without a word, such as one about the locale, for test/support/relay.ts. */
const findPerl = (): string | undefined => {
  if (process.platform !== 'linux') return undefined
  const { status, stdout, stderr } = spawnSync('sh', ['-c', 'command -v perl && perl -e 0'], { encoding: 'utf8' })
  return status === 0 && stderr === '' ? stdout.trim() : undefined
}

const MEMORY = '/dev/shm'
const PREFIX = 'trunkline-tests-'
/** Of what a container gives by default (64 MiB), tests would use up all. */
const MIN_FREE_BYTES = 4 * 2 ** 30

/**
 * A folder in memory for temporary files; a disk may need 5 ms to remove one of the many folders. Undefined where there is too little memory,
 * or where programs may not be run from it.
 */
const memoryFolder = (): string | undefined => {
  if (process.platform !== 'linux' || !existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  if (bavail * bsize < MIN_FREE_BYTES) return undefined
  try {
    accessSync(MEMORY, constants.W_OK | constants.X_OK)
  } catch {
    return undefined
  }
  if (spawnSync('sh', ['-c', `findmnt -no OPTIONS -T ${MEMORY} | grep -qv noexec`]).status !== 0) return undefined
  // What runs left behind that were killed.
  for (const name of readdirSync(MEMORY))
    if (name.startsWith(PREFIX) && !existsSync(`/proc/${name.slice(PREFIX.length)}`))
      rmSync(join(MEMORY, name), { recursive: true, force: true })
  const folder = join(MEMORY, `${PREFIX}${process.pid}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

export const setup = async (project: TestProject): Promise<void> => {
  await build()
  project.onTestsRerun(build)
  const folder = memoryFolder()
  if (folder === undefined) return
  process.env['TMPDIR'] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}
