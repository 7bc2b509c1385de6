/**
 * `npm test`: format, lint and types, then all tests. `npm test -- test/unit/redactor.test.ts` runs the named tests alone, in seconds: what is
 * being changed need not be tidy yet. Arguments go to vitest.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const VITEST = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')

const args = process.argv.slice(2)
const namesTests = args.some((arg) => !arg.startsWith('-'))
// A shell, because npm is a script on Windows.
const isTidy = namesTests || spawnSync('npm run check', { shell: true, stdio: 'inherit' }).status === 0
const passes = isTidy && spawnSync(process.execPath, [VITEST, 'run', ...args], { stdio: 'inherit' }).status === 0
process.exitCode = passes ? 0 : 1
