/**
 * Runs the official conformance suite against a URL, or with Trunkline as the client it tests, and compares two runs check by check: a scenario of the suite can
 * pass with every check skipped, so its verdict alone proves little.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import PQueue from 'p-queue'
import { openConformanceClient } from './conformance-client.ts'
import { peerProgram } from './peer-program.ts'

/**
 * The suite waits a fixed time for a notification of a server, and counts one that came later as missing: as many runs at once as there are
 * cores leave each its processor.
 */
const runs = new PQueue({ concurrency: availableParallelism() })

const COMMAND = fileURLToPath(new URL('./children/conformance-command.mjs', import.meta.url))

/** The requirement sets of the suite. */
export type Revision = '2025-11-25' | '2026-07-28'

/** How a check of the suite ended. */
export type Status = 'SUCCESS' | 'WARNING' | 'INFO' | 'SKIPPED' | 'FAILURE'

/** One check of one scenario. */
export interface Check {
  /** Not unique: a scenario may repeat a check with other input. */
  id: string
  status: Status
}

/** One scenario of one run. */
export interface ScenarioResult {
  scenario: string
  /** The suite's own verdict: no check failed. */
  passed: boolean
  /** In the order in which the suite ran them. */
  checks: Check[]
}

/** One thing that is worse through the gateway: a whole scenario, or the nth check with this id. */
export interface Loss {
  scenario: string
  check?: string
  direct: Status | 'passed'
  through: Status | 'failed' | 'missing'
}

/**
 * Runs every server scenario that `revision` requires, or only `scenario` at that revision. Rejects when the suite
 * left no result at all, with what it said.
 */
export const runConformance = async (url: string, revision: Revision, scenario?: string): Promise<ScenarioResult[]> => {
  const choice = scenario === undefined ? ['--requirements', revision] : ['--scenario', scenario, '--spec-version', revision]
  return (await runs.add(() => resultsOf(['server', '--url', url, ...choice, '--timeout', '30000']))).results
}

/**
 * Runs one client scenario with Trunkline, and a host of each era in front of it, as the client. `verdict`: the suite's own, which
 * also fails for a warning, a time-out and a host that met an error. Extensions have no `revision`. Rejects when the suite left no result at all.
 */
export const runClientConformance = async (
  scenario: string,
  revision?: Revision,
): Promise<{ verdict: 'passed' | { said: string }; checks: Check[] }> => {
  await using clients = await openConformanceClient()
  const command = `${process.execPath} ${COMMAND} ${clients.port}`
  const choice = ['--command', command, '--scenario', scenario, ...(revision === undefined ? [] : ['--spec-version', revision])]
  const { results, said, hasPassed } = await resultsOf(['client', ...choice, '--timeout', '30000'])
  return { verdict: hasPassed ? 'passed' : { said }, checks: results[0]?.checks ?? [] }
}

const resultsOf = async (args: string[]): Promise<{ results: ScenarioResult[]; said: string; hasPassed: boolean }> => {
  const output = await mkdtemp(join(tmpdir(), 'conformance-'))
  try {
    const { said, hasPassed } = await runSuite([...args, '--output-dir', output])
    const written = (await readdir(output, { recursive: true })).filter((file) => basename(file) === 'checks.json')
    const results = await Promise.all(written.map((file) => readScenario(output, dirname(file))))
    if (results.length === 0) throw new Error(`the conformance suite left no result: ${said}`)
    return { results: results.toSorted((a, b) => a.scenario.localeCompare(b.scenario)), said, hasPassed }
  } finally {
    await rm(output, { recursive: true })
  }
}

/**
 * What passes directly and is lost `through` the gateway. Of a scenario that passes directly each check must be there
 * again, as often, and at least as good. `allowed` names scenarios that may be lost.
 */
export const compare = (direct: ScenarioResult[], through: ScenarioResult[], allowed: readonly string[] = []): Loss[] =>
  direct
    .filter(({ scenario, passed }) => passed && !allowed.includes(scenario))
    .flatMap((before) => {
      const { scenario } = before
      const after = through.find((result) => result.scenario === scenario)
      if (after === undefined) return [{ scenario, direct: 'passed', through: 'missing' } satisfies Loss]
      const weaker = weakerChecks(before, after)
      return after.passed || weaker.length > 0 ? weaker : [{ scenario, direct: 'passed', through: 'failed' } satisfies Loss]
    })

const rank: Record<Status, number> = { SUCCESS: 3, WARNING: 2, INFO: 1, SKIPPED: 0, FAILURE: -1 }

/** Only what the suite asserts is compared; how many INFO entries a run logs depends on timing. */
const weakerChecks = (before: ScenarioResult, after: ScenarioResult): Loss[] => {
  const left = Map.groupBy(after.checks, ({ id }) => id)
  return before.checks
    .filter(({ status }) => status === 'SUCCESS' || status === 'WARNING')
    .flatMap(({ id, status }) => {
      const again = left.get(id)?.shift()?.status
      if (again !== undefined && rank[again] >= rank[status]) return []
      return [{ scenario: before.scenario, check: id, direct: status, through: again ?? ('missing' as const) }]
    })
}

const readScenario = async (output: string, folder: string): Promise<ScenarioResult> => {
  const written = await readFile(join(output, folder, 'checks.json'), 'utf8')
  const checks = (JSON.parse(written) as Check[]).map(({ id, status }) => ({ id, status }))
  const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '')
  return { scenario, passed: checks.every(({ status }) => status !== 'FAILURE'), checks }
}

/** The suite exits with 1 when something failed; that is a result here, not an error. */
const runSuite = (args: string[]): Promise<{ said: string; hasPassed: boolean }> => {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [peerProgram('conformance/dist/index'), ...args],
      { maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) => resolve({ said: stdout + stderr, hasPassed: error === null }),
    )
  })
}
