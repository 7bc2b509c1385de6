/** The tests as `npm run mutate` runs them, in a copy, where nothing is translated twice. */
import { mergeConfig } from 'vitest/config'
import config from '../vitest.config.ts'

const { projects = [], ...test } = config.test ?? {}
const setup = { test: { setupFiles: ['./scripts/mutation-setup.ts'], retry: 0 } }

export default {
  root: `${import.meta.dirname}/..`,
  test: {
    ...test,
    reporters: ['./scripts/mutation-reporter.ts'],
    experimental: { fsModuleCache: true, fsModuleCachePath: `${import.meta.dirname}/../../translated` },
    projects: projects.map((project) => mergeConfig(project as object, setup)),
  },
}
