/**
 * The order in which workers take files: unit tests, whose results are known within a minute, then end-to-end tests, then integration tests,
 * the longest first of each kind. A worker that ends early finds short files to take until the end of the run.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

const KINDS = ['unit', 'e2e', 'integration']

/** What takes longest, in this order. Vitest knows how long a file took only where it has been run before, and else goes by its size. */
const LONGEST = [
  'e2e/peers.test.ts',
  'e2e/conformance.test.ts',
  'e2e/client-conformance.test.ts',
  'e2e/gateway-matrix-stdio.test.ts',
  'e2e/gateway-matrix-http.test.ts',
  'e2e/gateway-inspector.test.ts',
  'e2e/replica-chaos.test.ts',
  'integration/simulation.test.ts',
  'integration/dashboard.test.ts',
].map((file) => join(import.meta.dirname, '..', file))

const missing = LONGEST.find((file) => !existsSync(file))
if (missing !== undefined) throw new Error(`${missing} is a test no more: take it out of test/support/sequence.ts`)

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.indexOf(moduleId)
      return at < 0 ? LONGEST.length : at
    }
    const kind = ({ project }: TestSpecification): number => KINDS.indexOf(project.name)
    return (await super.sort(files)).toSorted((a, b) => kind(a) - kind(b) || place(a) - place(b))
  }
}
