/**
 * Which threat and which fault is met by which test: `npm run reliability` runs all tests and writes `docs/reliability.md`;
 * `npm run reliability -- FILE` reads the JSON that an earlier run wrote (`vitest run --reporter=json --outputFile=FILE`). Exits
 * with 1 for a row that no test names or whose tests do not all pass; rows of later versions say so and do not count.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROWS } from './reliability-rows.ts'
import type { Row } from './reliability-rows.ts'

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = new URL('../docs/reliability.md', import.meta.url)
const INTRO = new URL('reliability-intro.md', import.meta.url)

const runTests = (): Report => {
  const folder = mkdtempSync(join(tmpdir(), 'reliability-'))
  const file = join(folder, 'report.json')
  try {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
    spawnSync(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${file}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return JSON.parse(readFileSync(file, 'utf8')) as Report
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A test name as one cell: what it says of other rules stays, what would end the cell does not. */
const cell = (text: string): string =>
  text
    .trim()
    .replaceAll('|', '\\|')
    .replaceAll(/[\u0000-\u001f<>]/g, ' ')

const [file] = process.argv.slice(2)
const report = file === undefined ? runTests() : (JSON.parse(readFileSync(file, 'utf8')) as Report)
const tests = report.testResults.flatMap(({ name, assertionResults }) =>
  assertionResults.map(({ fullName, status }) => ({ file: relative(ROOT, name).replaceAll('\\', '/'), fullName, status })),
)

const lineOf = ({ id, about, later }: Row): { readonly line: string; readonly isOpen: boolean } => {
  const named = tests.filter(({ fullName }) => new RegExp(`\\b${id}\\b`).test(fullName))
  const failed = named.filter(({ status }) => status !== 'passed')
  const result =
    failed.length > 0
      ? `**${failed.length} of ${named.length} failed**`
      : named.length > 0
        ? `${named.length} passed`
        : (later ?? '**no test**')
  const files = [...new Set(named.map((test) => test.file))].map((path) => `[${path.replace(/^test\//, '')}](../${path})`)
  const example = failed[0] ?? named[0]
  const words = example === undefined ? '' : cell(example.fullName)
  return {
    line: `| ${id} | ${about} | ${result} | ${[words, ...files].filter(Boolean).join('<br>')} |`,
    isOpen: failed.length > 0 || (named.length === 0 && later === undefined),
  }
}

const rows = ROWS.map(lineOf)
const page = [
  '| id | what | result | one of the tests, and where they all are |',
  '| --- | --- | --- | --- |',
  ...rows.map(({ line }) => line),
]
writeFileSync(PAGE, `${readFileSync(INTRO, 'utf8').trimEnd()}\n\n${page.join('\n')}\n`)
const open = rows.filter(({ isOpen }) => isOpen).length
console.log(`docs/reliability.md: ${rows.length} rows, ${open} without a passing test`)
process.exitCode = open === 0 ? 0 : 1
