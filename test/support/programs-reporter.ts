/** Names, after the summary of a run, the suites that did not run for want of a program (`programs.ts`). */
import type { Reporter, TestModule, TestSuite } from 'vitest/node'

const suitesOf = (parent: TestModule | TestSuite): readonly TestSuite[] => [
  ...parent.children.suites(),
  ...[...parent.children.suites()].flatMap(suitesOf),
]

export default class ProgramsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = modules.flatMap((module) =>
      suitesOf(module)
        .filter(({ name }) => name.includes('[not run: '))
        .map(({ name }) => `  ${module.relativeModuleId}: ${name}`),
    )
    if (names.length > 0) process.stdout.write(`\nSuites that did not run:\n${[...new Set(names)].join('\n')}\n`)
  }
}
