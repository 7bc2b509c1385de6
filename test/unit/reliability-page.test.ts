/** The pages that are written from a report of the tests: of a whole run, of a few files, of another machine. */
import { expect, test } from 'vitest'
import { tableLines } from '../../scripts/reliability-page.ts'
import { ROWS } from '../../scripts/reliability-rows.ts'
import { readReport } from '../../scripts/test-report.ts'

const report = (tests: Readonly<Record<string, string>>, root = '/elsewhere/tree'): string =>
  JSON.stringify({
    testResults: [
      {
        name: `${root}/test/unit/a.test.ts`,
        assertionResults: Object.entries(tests).map(([fullName, status]) => ({ fullName, status })),
      },
    ],
  })
const ROW = { id: 'T-39', about: 'two people' }
const BEFORE = '| T-39 | two people | 30 passed | as it was |\n| T-3 | another | 1 passed | x |\n'
const lineOf = (tests: Readonly<Record<string, string>>, row: (typeof ROWS)[number] = ROW) =>
  tableLines([row], readReport(report(tests)), BEFORE)[0]

test('a row is made of the tests that name it, wherever they ran, and what was skipped is no failure', () => {
  expect(lineOf({ 'T-39 B001 two | three': 'passed', 'more T-39': 'skipped', 'T-390 other': 'failed' })).toEqual({
    id: 'T-39',
    text: String.raw`| T-39 | two people | 1 passed, 1 not run | T-39 B001 two \| three<br>[unit/a.test.ts](../test/unit/a.test.ts) |`,
    open: undefined,
  })
})

test('a failed test is the one that is shown, and keeps its row open', () => {
  const line = lineOf({ 'T-39 good': 'passed', 'T-39 bad': 'failed' })
  expect(line?.text).toContain('**1 of 2 failed** | T-39 bad<br>')
  expect(line?.open).toBe('failed: test/unit/a.test.ts: T-39 bad')
})

test('a row of which no test ran keeps the line it has, and is open; one of a later version is not', () => {
  const kept = '| T-39 | two people | 30 passed | as it was |'
  expect(lineOf({})).toEqual({ id: 'T-39', text: kept, open: 'no test of the run names it' })
  expect(lineOf({ 'T-39 x': 'pending' })).toEqual({ id: 'T-39', text: kept, open: 'none of its 1 tests ran' })
  expect(lineOf({}, { ...ROW, later: 'with 2.0' })).toMatchObject({
    text: '| T-39 | two people | with 2.0 |  |',
    open: undefined,
  })
  expect(tableLines([ROW], [], '')[0]?.text).toContain('**no test**')
})

test('what is no report is refused with a sentence', () => {
  expect(() => readReport('{}')).toThrow('no report of vitest')
})

test('the rows are in order, each once', () => {
  const ids = ROWS.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => id.startsWith('T'))).toEqual(
    Array.from({ length: 40 }, (_, at) => `T-${String(at + 1).padStart(2, '0')}`),
  )
})
