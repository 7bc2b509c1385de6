/**
 * Which test covers which threat and fault: `npm run reliability` runs all tests and writes `docs/reliability.md`;
 * `npm run reliability -- FILE` reads the JSON of an earlier run (`vitest run --reporter=json --outputFile=FILE`). Exits
 * with 1, and prints the reason, for a row without a test in the run or with a failed test. A row without a test keeps
 * its line. Rows of later versions are marked and do not count.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { tableLines } from './reliability-page.ts'
import { ROWS } from './reliability-rows.ts'
import { reportOf } from './test-report.ts'

const PAGE = new URL('../docs/reliability.md', import.meta.url)
const INTRO = new URL('reliability-intro.md', import.meta.url)

const lines = tableLines(ROWS, reportOf(process.argv[2]), readFileSync(PAGE, 'utf8'))
const table = [
  '| id | what | result | one of the tests, and all test files |',
  '| --- | --- | --- | --- |',
  ...lines.map(({ text }) => text),
]
writeFileSync(PAGE, `${readFileSync(INTRO, 'utf8').trimEnd()}\n\n${table.join('\n')}\n`)
const open = lines.filter((line) => line.open !== undefined)
for (const line of open) console.log(`${line.id}  ${line.open}`)
console.log(`docs/reliability.md: ${lines.length} rows, ${open.length} without a passing test`)
process.exitCode = open.length === 0 ? 0 : 1
