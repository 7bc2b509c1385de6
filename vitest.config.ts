import { defineConfig } from 'vitest/config'

/**
 * The kinds of tests, quickest first; each begins when the one before has ended. `retry`: tests that drive other people's programs
 * in processes of their own share two cores with them; the unit tests must pass at once. Files share nothing and mostly wait, so two
 * run at a time whatever the machine.
 */
const project = (name: string, groupOrder: number, testTimeout: number, retry: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout,
    retry,
    hookTimeout: testTimeout,
    pool: 'forks' as const,
    maxWorkers: 2,
    sequence: { groupOrder },
  },
})

export default defineConfig({
  test: {
    globalSetup: './test/support/build.ts',
    // The second one names what was left out for want of a program.
    reporters: ['default', './test/support/programs-reporter.ts'],
    projects: [project('unit', 0, 20_000, 0), project('integration', 1, 30_000, 1), project('e2e', 2, 120_000, 2)],
  },
})
