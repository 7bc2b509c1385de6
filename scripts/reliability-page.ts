/** The table of `docs/reliability.md`: a line for each threat and fault, from the tests that name it. */
import type { Row } from './reliability-rows.ts'
import { naming } from './test-report.ts'
import type { Tested } from './test-report.ts'

export interface Line {
  readonly id: string
  readonly text: string
  /** Why the row is not met by this run; `undefined`: it is, or a later version brings it. */
  readonly open: string | undefined
}

/** `before`: the page as it is. A row that no test of the run names keeps its line of it: the run may have been one of few files. */
export const tableLines = (rows: readonly Row[], tests: readonly Tested[], before: string): readonly Line[] =>
  rows.map((row) => lineOf(row, naming(tests, row.id), before))

const lineOf = ({ id, about, later }: Row, named: readonly Tested[], before: string): Line => {
  const [passed, failed, left] = (['passed', 'failed', 'not run'] as const).map((result) =>
    named.filter((test) => test.result === result),
  )
  const ran = passed!.length + failed!.length
  if (ran === 0) {
    const kept = before.split('\n').find((line) => line.startsWith(`| ${id} |`))
    const text = later === undefined && kept !== undefined ? kept : `| ${id} | ${about} | ${later ?? '**no test**'} |  |`
    const why = named.length === 0 ? 'no test of the run names it' : `none of its ${named.length} tests ran`
    return { id, text, open: later === undefined ? why : undefined }
  }
  const result = failed!.length > 0 ? `**${failed!.length} of ${ran} failed**` : `${passed!.length} passed`
  const notRun = left!.length > 0 ? `, ${left!.length} not run` : ''
  const files = [...new Set(named.map(({ file }) => file))].map((file) => `[${file.replace(/^test\//, '')}](../${file})`)
  const example = cell((failed![0] ?? passed![0])?.fullName ?? '')
  return {
    id,
    text: `| ${id} | ${about} | ${result}${notRun} | ${[example, ...files].join('<br>')} |`,
    open:
      failed!.length > 0 ? `failed: ${failed!.map(({ file, fullName }) => `${file}: ${fullName.trim()}`).join('; ')}` : undefined,
  }
}

/** A test name as one cell: what it says of other rules stays, what would end the cell does not. */
const cell = (text: string): string =>
  text
    .trim()
    .replaceAll('|', '\\|')
    .replaceAll(/[\u0000-\u001f<>]/g, ' ')
