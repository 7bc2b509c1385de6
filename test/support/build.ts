/** Before the first test, and before each run of a watched one: builds the programs that tests start as processes. */
import { spawnSync } from 'node:child_process'
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

export const setup = async (project: TestProject): Promise<void> => {
  await build()
  project.onTestsRerun(build)
}
