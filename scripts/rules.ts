/**
 * Which test proves which rule: `npm run rules` runs all tests and prints id → tests → result; `npm run rules -- FILE` reads
 * the JSON of an earlier run (`vitest run --reporter=json --outputFile=FILE`). Exits with 1 for a rule without a test in the run
 * or with a failed test.
 */
import { naming, reportOf } from './test-report.ts'

/** The rules of the bridging specification: B001 to B296. */
const LAST = 296

const tests = reportOf(process.argv[2])
let gaps = 0
for (let number = 1; number <= LAST; number++) {
  const id = `B${String(number).padStart(3, '0')}`
  const named = naming(tests, id)
  const ran = named.filter(({ result }) => result !== 'not run')
  const failed = ran.filter(({ result }) => result === 'failed')
  const verdict = named.length === 0 ? 'NO TEST' : failed.length > 0 ? 'FAILED' : ran.length === 0 ? 'NOT RUN' : 'passed'
  if (verdict !== 'passed') gaps++
  const example = (failed[0] ?? ran[0] ?? named[0])?.fullName.trim() ?? ''
  console.log(`${id}  ${verdict.padEnd(7)}  ${String(ran.length).padStart(3)}  ${example.slice(0, 110)}`)
}
console.log(`${gaps} rules without a passing test`)
process.exitCode = gaps === 0 ? 0 : 1
