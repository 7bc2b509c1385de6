/** The benchmark in its shortest form: that it works, covers every subject, and counts no bad reply. Nothing here is about speed. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

interface Row {
  readonly subject: string
  readonly between: readonly [host: string, server: string]
  readonly tool: string
  readonly inFlight: number
  readonly calls: number
  readonly bad: number
}

const BETWEEN: Record<string, readonly string[]> = {
  direct: ['legacy → legacy', 'modern → modern'],
  raw: ['legacy → legacy', 'modern → modern'],
  'raw-json': ['legacy → legacy', 'modern → modern'],
  'sdk-proxy': ['legacy → legacy'],
  trunkline: ['legacy → legacy', 'modern → modern', 'modern → legacy', 'legacy → modern'],
}
const CELLS = ['t100', 't10k', 't1m'].flatMap((tool) => [`${tool} × 1`, `${tool} × 32`])

test('the benchmark measures every subject in every cell and counts no bad reply', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-bench-test-'))
  try {
    const file = join(folder, 'bench.json')
    await promisify(execFile)(process.execPath, ['bench/bench.ts', '--quick', '--json', file], { maxBuffer: 16 * 1024 * 1024 })
    const { rows, failed } = JSON.parse(await readFile(file, 'utf8')) as { rows: readonly Row[]; failed: object }
    const named = (row: Row) => `${row.subject}, ${row.between.join(' → ')}, ${row.tool} × ${row.inFlight}`
    const expected = Object.entries(BETWEEN).flatMap(([subject, pairs]) =>
      pairs.flatMap((pair) => CELLS.map((cell) => `${subject}, ${pair}, ${cell}`)),
    )
    expect(failed).toEqual({})
    expect(rows.map(named).sort()).toEqual(expected.sort())
    expect(rows.filter(({ bad, calls, inFlight }) => bad > 0 || calls < inFlight)).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
