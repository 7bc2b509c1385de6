import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/sequence.ts'

/**
 * The kinds of tests. `retry`: on two cores a test may wait longer than it allows for what others do beside it; whatever needs a second run
 * is named in the last lines. Files share nothing and mostly wait, so four run at a time whatever the machine, of all kinds in one queue
 * (test/support/sequence.ts). Those that a worker runs one after the other share the modules it has loaded, which keep no state of their
 * own: loading them for each file took longer than the unit tests themselves.
 */
const project = (name: string, testTimeout: number, retry: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout,
    retry,
    hookTimeout: testTimeout,
    pool: 'forks' as const,
    isolate: false,
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    setupFiles: ['./test/support/patience.ts'],
    expect: { poll: { timeout: 15_000 } },
    maxWorkers: 4,
    // Node itself loads and translates modules: vitest's own loader, made for the web, takes 5 to 8 % more CPU.
    experimental: { viteModuleRunner: false },
  },
})

export default defineConfig({
  test: {
    globalSetup: './test/support/build.ts',
    // The second one names what was left out for want of a program, and what needed a second run.
    reporters: ['default', './test/support/last-lines-reporter.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [project('unit', 60_000, 1), project('integration', 60_000, 1), project('e2e', 120_000, 2)],
  },
})
