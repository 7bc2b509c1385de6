/** The tests as `npm run mutate` runs them, in a copy. */
import { mergeConfig } from 'vitest/config'
import config from '../vitest.config.ts'

const { projects = [], ...test } = config.test ?? {}
const setup = { test: { setupFiles: ['./scripts/mutation-setup.ts'], retry: 0 } }

export default {
  root: `${import.meta.dirname}/..`,
  test: {
    ...test,
    reporters: ['./scripts/mutation-reporter.ts'],
    projects: projects.map((project) => mergeConfig(project as object, setup)),
  },
}
