/** Writes down how each test file of `npm run mutate` ended, as soon as it has. */
import { appendFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

const COPY = join(import.meta.dirname, '..')

const write = (path: string, isRed: boolean): void =>
  appendFileSync(join(COPY, '..', 'ended'), `${isRed ? 'red' : 'green'} ${relative(COPY, path)}\n`)

export default class MutationReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    write(module.moduleId, module.state() === 'failed')
  }

  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[]): void {
    for (const { VITEST_TEST_PATH: path } of errors) if (typeof path === 'string') write(path, true)
  }
}
