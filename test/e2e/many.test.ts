/** The short form of `scripts/many.ts`: sessions with their streams, then calls that are all in flight at one time. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../scripts/many.ts', import.meta.url))

test('two hundred sessions and two hundred calls at one time: every stream stays, every call brings its own answer', async () => {
  const args = [script, '--sessions', '200', '--calls', '200', '--servers', '4', '--hold', '8']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  expect(stdout).toContain('200 calls in flight over 4 servers')
  expect(stdout).toContain('200 answered, each with its own')
  expect(stdout).toContain('exit 0, faults 0')
})
