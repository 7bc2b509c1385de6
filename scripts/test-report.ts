/** The results of a run of the tests: the JSON of `vitest run --reporter=json --outputFile=FILE`, of this run or an earlier one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Tested {
  /** `test/unit/…`, wherever the tree lay in which it ran. */
  readonly file: string
  readonly fullName: string
  /** What did not run (a missing program, another system, a filter) neither passed nor failed. */
  readonly result: 'passed' | 'failed' | 'not run'
}

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

const RESULTS: Readonly<Record<string, Tested['result']>> = { passed: 'passed', failed: 'failed' }

/** The tests of a report. Throws with a sentence where the text is none. */
export const readReport = (text: string): readonly Tested[] => {
  const { testResults } = JSON.parse(text) as Partial<Report>
  if (!Array.isArray(testResults)) throw new Error('this is no report of vitest run --reporter=json: it has no testResults')
  return (testResults as Report['testResults']).flatMap(({ name, assertionResults }) => {
    const file = name.replaceAll('\\', '/').replace(/^.*?\/(?=test\/(?:unit|integration|e2e)\/)/, '')
    return assertionResults.map(({ fullName, status }) => ({ file, fullName, result: RESULTS[status] ?? 'not run' }))
  })
}

/** Those of `file`; without one all tests are run. */
export const reportOf = (file: string | undefined): readonly Tested[] =>
  readReport(file === undefined ? runTests() : readFileSync(file, 'utf8'))

/** Tests whose names carry a rule's id. */
export const naming = (tests: readonly Tested[], id: string): readonly Tested[] => {
  const word = new RegExp(`\\b${id}\\b`)
  return tests.filter(({ fullName }) => word.test(fullName))
}

const runTests = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'report-'))
  const file = join(folder, 'report.json')
  try {
    const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
    spawnSync(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${file}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
