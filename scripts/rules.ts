/**
 * Which rule is proven by which test: `npm run rules` runs all tests and prints id → tests → result; `npm run rules -- FILE` reads
 * the JSON that an earlier run wrote (`vitest run --reporter=json --outputFile=FILE`). Exits with 1 for a rule that no test
 * names or whose tests do not all pass.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The rules of the bridging specification: B001 to B296. */
const LAST = 296

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

const runTests = (): Report => {
  const folder = mkdtempSync(join(tmpdir(), 'rules-'))
  const file = join(folder, 'report.json')
  try {
    const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
    spawnSync(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${file}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return JSON.parse(readFileSync(file, 'utf8')) as Report
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const [file] = process.argv.slice(2)
const report = file === undefined ? runTests() : (JSON.parse(readFileSync(file, 'utf8')) as Report)
const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults)
let gaps = 0
for (let number = 1; number <= LAST; number++) {
  const id = `B${String(number).padStart(3, '0')}`
  const named = tests.filter(({ fullName }) => new RegExp(`\\b${id}\\b`).test(fullName))
  const failed = named.filter(({ status }) => status !== 'passed')
  const verdict = named.length === 0 ? 'NO TEST' : failed.length === 0 ? 'passed' : 'FAILED'
  if (verdict !== 'passed') gaps++
  const example = (failed[0] ?? named[0])?.fullName.trim() ?? ''
  console.log(`${id}  ${verdict.padEnd(7)}  ${String(named.length).padStart(3)}  ${example.slice(0, 110)}`)
}
console.log(`${gaps} rules without a passing test`)
process.exitCode = gaps === 0 ? 0 : 1
