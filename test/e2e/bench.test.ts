/**
 * The benchmark in its shortest form: that it works with the baseline, another's proxy and the gateway, and counts no bad reply. Nothing
 * here is about speed. What only `--full` measures takes minutes, also with `--quick`, and is tried by hand before a page is written.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { plainCells } from '../../bench/cells.ts'

interface Row {
  readonly subject: string
  readonly between: readonly [host: string, server: string]
  readonly tool: string
  readonly kind: string
  readonly inFlight: number
  readonly calls: number
  readonly bad: number
}

const SAME = ['legacy → legacy', 'modern → modern']
const BETWEEN: Record<string, readonly string[]> = {
  raw: SAME,
  'sdk-proxy': ['legacy → legacy'],
  trunkline: [...SAME, 'modern → legacy', 'legacy → modern'],
}

test('the benchmark measures its subjects in their cells and counts no bad reply', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-bench-test-'))
  try {
    const file = join(folder, 'bench.json')
    const args = ['bench/bench.ts', '--quick', '--subjects', Object.keys(BETWEEN).join(), '--json', file]
    await promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 })
    const { rows, failed } = JSON.parse(await readFile(file, 'utf8')) as { rows: readonly Row[]; failed: object }
    const named = ({ tool, kind, inFlight }: Pick<Row, 'tool' | 'kind' | 'inFlight'>) => `${tool} ${kind} × ${inFlight}`
    const expected = Object.entries(BETWEEN).flatMap(([subject, pairs]) =>
      pairs.flatMap((pair) => plainCells(['prose', 'dense']).map((cell) => `${subject}, ${pair}, ${named(cell)}`)),
    )
    expect(failed).toEqual({})
    expect(rows.map((row) => `${row.subject}, ${row.between.join(' → ')}, ${named(row)}`).sort()).toEqual(expected.sort())
    expect(rows.filter(({ bad, calls, inFlight }) => bad > 0 || calls < inFlight)).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 300_000)
