/**
 * What a reader must not overlook, after the summary of a run: suites that did not run for want of a program (`programs.ts`), and
 * tests that passed only when they were run again, which is a defect of the test or of what it tests, with what was wrong at first.
 */
import { stripVTControlCharacters } from 'node:util'
import type { TestError } from 'vitest'
import type { Reporter, TestModule, TestSuite } from 'vitest/node'

const REASON_LINES = 12
const REASON_COLUMNS = 160

const suitesOf = (parent: TestModule | TestSuite): readonly TestSuite[] => [
  ...parent.children.suites(),
  ...[...parent.children.suites()].flatMap(suitesOf),
]

const leftOut = (module: TestModule): readonly string[] =>
  suitesOf(module)
    .filter(({ name }) => name.includes('[not run: '))
    .map(({ name }) => `${module.relativeModuleId}: ${name}`)

const passedLater = (module: TestModule): readonly string[] =>
  [...module.children.allTests('passed')]
    .filter((test) => test.diagnostic()?.flaky === true)
    .map((test) => `${module.relativeModuleId}: ${test.fullName}${(test.result().errors ?? []).map(reasonOf).join('')}`)

/** A few lines: enough to see what has to be looked at, before it can be seen again. */
const reasonOf = ({ message, diff = '' }: TestError): string =>
  stripVTControlCharacters(`${message}\n${diff}`)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, REASON_LINES)
    .map((line) => `\n      ${line.slice(0, REASON_COLUMNS)}`)
    .join('')

export default class LastLinesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    say('Suites that did not run:', modules.flatMap(leftOut))
    say('Tests that passed only when they were run again:', modules.flatMap(passedLater))
  }
}

const say = (title: string, names: readonly string[]): void => {
  if (names.length > 0) process.stdout.write(`\n${title}\n${[...new Set(names)].map((name) => `  ${name}\n`).join('')}`)
}
