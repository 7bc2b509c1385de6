/** Before the first test, and before each run of a watched one: builds the programs that tests start as processes. */
import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { cachedProgram } from '../../scripts/cached-build.ts'
import { cachedPeers } from './peer-bundle.ts'
import { isAlive } from './pids.ts'

const MEMORY = '/dev/shm'
const MEMORY_BYTES = 2 * 2 ** 30

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

/** Whether there is a disk in memory with room: tests make thousands of small files, and a disk costs a tenth of their time. */
const hasMemory = (): boolean => {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MEMORY_BYTES
  } catch {
    return false // is not there
  }
}

/** A Perl that starts without a word, such as one about the locale, for test/support/relay.ts. */
const findPerl = (): string | undefined => {
  if (process.platform !== 'linux') return undefined
  const { status, stdout, stderr } = spawnSync('sh', ['-c', 'command -v perl && perl -e 0'], { encoding: 'utf8' })
  return status === 0 && stderr === '' ? stdout.trim() : undefined
}

/** Returns how to remove what the tests have left. */
export const setup = async (project: TestProject): Promise<() => void> => {
  await build()
  project.onTestsRerun(build)
  if (!hasMemory()) return () => undefined
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = /^t-(\d+)$/.exec(name) ?? []
    // Of a run that was killed.
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(MEMORY, name), { recursive: true, force: true })
  }
  // A short name: a path of a socket has at most 107 bytes.
  const folder = join(MEMORY, `t-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  // Everybody's, as the usual one is: a test may become another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
