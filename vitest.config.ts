import { defineConfig } from 'vitest/config'

/** The kinds of tests, quickest first; each begins when the one before has ended. */
const project = (name: string, groupOrder: number, testTimeout: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout,
    hookTimeout: testTimeout,
    pool: 'forks' as const,
    sequence: { groupOrder },
  },
})

export default defineConfig({
  test: { projects: [project('unit', 0, 20_000), project('integration', 1, 30_000), project('e2e', 2, 120_000)] },
})
