/** Runs before each test file of `npm run mutate`, in a copy: names the file to `mutation-switch.ts`, and ends it at the first red test. */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'

const COPY = join(import.meta.dirname, '..')
const test = relative(COPY, expect.getState().testPath ?? '')
let isRed = false

globalThis.runningTest = test
writeFileSync(join(COPY, '..', 'running', String(process.pid)), test)
beforeEach(({ skip }) => skip(isRed, 'an earlier one is red'))
afterEach(({ task }) => {
  isRed ||= task.result?.state === 'fail'
})
