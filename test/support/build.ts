/** Before the first test, and before each run of a watched one: builds the program that tests start as a process. */
import type { TestProject } from 'vitest/node'
import { cachedProgram } from '../../scripts/cached-build.ts'

const build = async (): Promise<void> => {
  // Workers are forked after this, with our environment.
  process.env['TEST_PROGRAM'] = await cachedProgram()
}

export const setup = async (project: TestProject): Promise<void> => {
  await build()
  project.onTestsRerun(build)
}
