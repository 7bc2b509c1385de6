import { defineConfig } from 'vitest/config'

/**
 * The kinds of tests, quickest first; each begins when the one before has ended. `retry`: tests that drive other people's programs
 * in processes of their own share two cores with them; the unit tests must pass at once.
 */
const project = (name: string, groupOrder: number, testTimeout: number, retry: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout,
    retry,
    hookTimeout: testTimeout,
    pool: 'forks' as const,
    sequence: { groupOrder },
  },
})

export default defineConfig({
  test: { projects: [project('unit', 0, 20_000, 0), project('integration', 1, 30_000, 1), project('e2e', 2, 120_000, 2)] },
})
