/**
 * Suites that need a program which npm does not bring (`.ci/programs`). Where it is missing the suite is skipped and named in the
 * last lines of the run (`last-lines-reporter.ts`); with `CI=true` it fails instead, so that no run is green by leaving something out.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, test } from 'vitest'

interface Program {
  readonly name: string
  /** The Debian package that has it. */
  readonly debian: string
  /** A shell command that succeeds where the program can be used. */
  readonly check: string
}

const LIST = new URL('../../.ci/programs', import.meta.url)

const readPrograms = (): ReadonlyMap<string, Program> => {
  const programs = new Map<string, Program>()
  for (const line of readFileSync(LIST, 'utf8').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [name, debian, ...check] = line.split(/\s+/)
    if (name === undefined || debian === undefined) throw new Error(`.ci/programs: expected "name package [check]", got ${line}`)
    programs.set(name, { name, debian, check: check.length > 0 ? check.join(' ') : `command -v ${name}` })
  }
  return programs
}

/** Tells of each named program whether it can be used here. Throws where `.ci/programs` does not list it. */
export const missingPrograms = (names: readonly string[]): readonly Program[] => {
  const programs = readPrograms()
  return names
    .map((name) => {
      const program = programs.get(name)
      if (program === undefined) throw new Error(`.ci/programs does not list ${name}`)
      return program
    })
    .filter(({ check }) => spawnSync('sh', ['-c', check], { stdio: 'ignore' }).status !== 0)
}

/** How a suite that was left out is named; the reporter finds it by this. */
const leftOut = (name: string, reason: string): string => `${name} [not run: ${reason}]`

/** `describe` for a suite that needs these programs. */
export const describeWith = (needs: readonly string[], name: string, suite: () => void): void => {
  const missing = missingPrograms(needs)
  const reason = missing.map((program) => `needs ${program.name}, Debian package ${program.debian}`).join('; ')
  describeUnless(reason === '' ? undefined : reason, name, suite)
}

/** `describe` for a suite that runs unless there is a reason against it, such as a download that failed. */
export const describeUnless = (reason: string | undefined, name: string, suite: () => void): void => {
  if (reason === undefined) return void describe(name, suite)
  if (process.env['CI'] !== 'true') return void describe.skip(leftOut(name, reason), suite)
  describe(name, () => {
    test('finds what it needs', () => {
      throw new Error(leftOut(name, reason))
    })
  })
}
