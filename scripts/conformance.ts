/**
 * Runs the official conformance suite against a URL and prints failed scenarios; with `--against` also results that are
 * worse than at the other URL:
 * `conformance.ts --url URL [--requirements REVISION]... [--against DIRECT_URL] [--allow SCENARIO]...`.
 * Exits with 1 if a scenario outside of `--allow` fails, or with `--against` if any result is worse.
 */
import { parseArgs } from 'node:util'
import { compare, runConformance } from '../test/support/conformance.ts'
import type { Revision, ScenarioResult } from '../test/support/conformance.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    requirements: { type: 'string', multiple: true, default: ['2025-11-25', '2026-07-28'] },
    against: { type: 'string' },
    allow: { type: 'string', multiple: true, default: [] },
  },
})

const summarize = (revision: string, results: ScenarioResult[]) => {
  console.log(`${revision}: ${results.filter(({ passed }) => passed).length} of ${results.length} scenarios pass`)
  for (const { scenario, checks } of results) {
    for (const { id, status } of checks) {
      if (status !== 'SUCCESS' && status !== 'INFO') console.log(`  ${status.padEnd(8)} ${scenario}: ${id}`)
    }
  }
}

if (values.url === undefined) throw new Error('--url is missing: the MCP endpoint to test, such as http://127.0.0.1:7420/mcp')
let isWorse = false
for (const revision of values.requirements as Revision[]) {
  const results = await runConformance(values.url, revision)
  summarize(revision, results)
  if (values.against === undefined) {
    isWorse ||= results.some(({ scenario, passed }) => !passed && !values.allow.includes(scenario))
    continue
  }
  const losses = compare(await runConformance(values.against, revision), results, values.allow)
  for (const { scenario, check, direct, through } of losses) {
    console.log(`  LOST     ${scenario}${check === undefined ? '' : `: ${check}`} (${direct} directly, ${through} here)`)
  }
  isWorse ||= losses.length > 0
}
process.exitCode = isWorse ? 1 : 0
