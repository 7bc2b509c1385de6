/** The benchmark in its shortest form: that it works with the yardsticks, another's proxy and the gateway, and counts no bad reply. Nothing here is about speed. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { fullCells } from '../../bench/cells.ts'
import type { Between } from '../../bench/subjects.ts'

interface Row {
  readonly subject: string
  readonly between: readonly [host: string, server: string]
  readonly tool: string
  readonly kind: string
  readonly inFlight: number
  readonly way?: string
  readonly calls: number
  readonly bad: number
}

interface Report {
  readonly rows: readonly Row[]
  readonly failed: object
  readonly figures: readonly { readonly section: string; readonly subject: string; readonly value: { readonly median: number } }[]
  readonly goals: readonly { readonly id: string }[]
  readonly profiles: readonly { readonly groups: readonly { readonly name: string }[] }[]
}

const SAME = ['legacy → legacy', 'modern → modern', 'legacy → sse-reply', 'http-sse → http-sse']
const BETWEEN: Record<string, readonly string[]> = {
  raw: SAME,
  pipe: ['stdio → stdio'],
  'sdk-proxy': ['legacy → legacy', 'stdio → stdio'],
  trunkline: [...SAME, 'stdio → stdio', 'legacy → stdio'],
}
const KINDS = ['prose', 'dense'] as const

test('the benchmark measures its subjects in their cells and every section and counts no bad reply', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-bench-test-'))
  try {
    const file = join(folder, 'bench.json')
    const args = ['bench/bench.ts', '--quick', '--full', '--subjects', Object.keys(BETWEEN).join(), '--json', file]
    await promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 })
    const { rows, failed, figures, goals, profiles } = JSON.parse(await readFile(file, 'utf8')) as Report
    const named = ({ tool, kind, inFlight, way = 'result' }: Pick<Row, 'tool' | 'kind' | 'inFlight' | 'way'>) =>
      `${tool} ${kind} in the ${way} × ${inFlight}`
    const expected = Object.entries(BETWEEN).flatMap(([subject, pairs]) =>
      pairs.flatMap((pair) =>
        fullCells(subject, pair.split(' → ') as unknown as Between, KINDS).map((cell) => `${subject}, ${pair}, ${named(cell)}`),
      ),
    )
    expect(failed).toEqual({})
    expect(rows.map((row) => `${row.subject}, ${row.between.join(' → ')}, ${named(row)}`).sort()).toEqual(expected.sort())
    expect(rows.filter(({ bad, calls, inFlight }) => bad > 0 || calls < inFlight)).toEqual([])
    const ours = figures.filter(({ subject }) => subject === 'trunkline')
    expect([...new Set(ours.map(({ section }) => section))]).toEqual([
      'cold start',
      'sessions',
      'lists',
      'lists that change',
      'big and slow results',
      'the worst neighbour',
      'growth in one process',
      'longest turn of the event loop',
    ])
    expect(figures.filter(({ value }) => !Number.isFinite(value.median))).toEqual([])
    expect([...new Set(goals.map(({ id }) => id))]).toEqual([
      'G1',
      'G2',
      'G3',
      'G4',
      'G5',
      'G6',
      'G7',
      'G8',
      'G9',
      'G10',
      'G11',
      'G12',
    ])
    expect(profiles.flatMap(({ groups }) => groups.map(({ name }) => name))).toContain('`transport/`')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 900_000)
