import { defineConfig } from 'vitest/config'

const project = (name: string, testTimeout: number) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout, hookTimeout: testTimeout, pool: 'forks' as const },
})

export default defineConfig({
  test: { projects: [project('unit', 20_000), project('integration', 30_000), project('e2e', 120_000)] },
})
