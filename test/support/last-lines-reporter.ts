/**
 * What a reader must not overlook, after the summary of a run: suites that did not run for want of a program (`programs.ts`), and
 * tests that passed only when they were run again, which is a defect of the test or of what it tests.
 */
import type { Reporter, TestModule, TestSuite } from 'vitest/node'

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
    .map((test) => `${module.relativeModuleId}: ${test.fullName}`)

export default class LastLinesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    say('Suites that did not run:', modules.flatMap(leftOut))
    say('Tests that passed only when they were run again:', modules.flatMap(passedLater))
  }
}

const say = (title: string, names: readonly string[]): void => {
  if (names.length > 0) process.stdout.write(`\n${title}\n${[...new Set(names)].map((name) => `  ${name}\n`).join('')}`)
}
