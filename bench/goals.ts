/** The goals of speed: what was promised, what this run measured, and whether it holds. */
import type { Figure } from './figures.ts'
import type { Row } from './rounds.ts'
import { spread, type Spread } from './stats.ts'

export interface Goal {
  readonly id: string
  readonly what: string
  /** In words, with the unit. */
  readonly target: string
  readonly measured: Spread | undefined
  readonly unit: '×' | 'ms' | 'MiB'
  readonly verdict: 'met' | 'missed' | 'stated' | 'not measured'
  /** What stands beside it, such as raw's own figure. */
  readonly beside: string | undefined
}

type Size = 't100' | 't10k' | 't1m'
const SIZE: Record<Size, string> = { t100: '100 B', t10k: '10 KB', t1m: '1 MB' }

interface Line {
  readonly id: string
  readonly what: string
  readonly measured: Spread | undefined
  readonly unit: Goal['unit']
  readonly atMost?: number
  readonly atLeast?: number
  readonly beside?: string | undefined
}

const judged = ({ id, what, measured, unit, atMost, atLeast, beside }: Line): Goal => {
  const word = unit === '×' ? '×' : ` ${unit}`
  const target = atMost !== undefined ? `≤ ${atMost}${word}` : atLeast !== undefined ? `≥ ${atLeast}${word}` : 'stated'
  const isMet = measured && measured.median <= (atMost ?? Infinity) && measured.median >= (atLeast ?? -Infinity)
  const hasTarget = atMost !== undefined || atLeast !== undefined
  const verdict = measured === undefined ? 'not measured' : !hasTarget ? 'stated' : isMet === true ? 'met' : 'missed'
  return { id, what, target, measured, unit, verdict, beside }
}

/** In the order of their ids. What the run did not measure is said to be so. */
export const goalsOf = (rows: readonly Row[], figures: readonly Figure[]): readonly Goal[] => {
  const row = (subject: string, between: string, tool: Size) =>
    rows.find(
      (row) =>
        row.subject === subject &&
        row.between.join(' → ') === between &&
        row.tool === tool &&
        row.kind === 'prose' &&
        row.inFlight === 32,
    )
  const ratio = (between: string, tool: Size) => row('trunkline', between, tool)?.ratio
  /** CPU per call of one subject ÷ that of another in the same cell, by round. */
  const paired = (above: string, below: string, between: string, tool: Size): Spread | undefined => {
    const [one, other] = [row(above, between, tool), row(below, between, tool)]
    return one && other && spread(one.cpuByRound.map((cpu, round) => cpu / other.cpuByRound[round]))
  }
  const withJwt = (between: string, tool: Size) => {
    const verified = row('trunkline-jwt', between, tool)?.ratio
    return verified && `with a JWT ${verified.median.toFixed(2)}×`
  }
  const of = (subject: string, what: string) => figures.find((one) => one.subject === subject && one.what === what)
  const ours = (what: string) => of('trunkline', what)
  const rawTook = (what: string) => {
    const raw = of('raw', what)
    return raw && `raw ${raw.value.median.toFixed(2)} ${raw.unit}`
  }
  const grown = ours('memory grown by 100 MB')
  const beside = figures.find(({ what }) => /^CPU of a call beside \d+ idle$/.test(what))
  const among = figures.filter(({ what }) => /^CPU of a call beside \d+ that made calls$/.test(what)).at(-1)
  const most = figures.findLast(({ what }) => /^CPU of a call, \d+ servers$/.test(what))
  const list = '100 × 50, p50'
  const listCpu = ours('100 × 50, CPU')
  const peer = of('mcp-hub', '100 × 50, CPU')
  const heapOfOne = ours('heap, 1 servers')?.value.median
  const heapOfMany = ours('heap, 100 servers')?.value.median
  const perServer = heapOfOne === undefined || heapOfMany === undefined ? undefined : (heapOfMany - heapOfOne) / 99
  const sizes = Object.keys(SIZE) as Size[]
  const http = ['legacy → legacy', 'modern → modern']

  const lines: readonly Line[] = [
    ...http.flatMap((between) =>
      sizes.map((tool): Line => {
        const atMost = tool === 't1m' ? 0.65 : 0.75
        return {
          id: 'G1',
          what: `CPU per call ÷ raw, ${between}, ${SIZE[tool]}`,
          measured: ratio(between, tool),
          unit: '×',
          atMost,
          beside: withJwt(between, tool),
        }
      }),
    ),
    ...(['t100', 't1m'] as const).map((tool): Line => {
      const measured = paired('mcp-hub', 'trunkline', 'http-sse → legacy', tool)
      return { id: 'G2', what: `CPU per call of mcp-hub ÷ ours, ${SIZE[tool]}`, measured, unit: '×', atLeast: 10 }
    }),
    ...(['t100', 't1m'] as const).map((tool): Line => {
      const measured = paired('trunkline', 'nginx', 'legacy → legacy', tool)
      return { id: 'G3', what: `CPU per call ÷ nginx, ${SIZE[tool]}`, measured, unit: '×', atMost: tool === 't100' ? 3 : 1.3 }
    }),
    ...sizes.map((tool): Line => {
      const what = `CPU per call ÷ a relay of lines, stdio → stdio, ${SIZE[tool]}`
      return { id: 'G4', what, measured: ratio('stdio → stdio', tool), unit: '×', atMost: tool === 't100' ? 2 : 0.5 }
    }),
    ...sizes.map((tool): Line => {
      const atMost = { t100: 0.75, t10k: 0.8, t1m: 1 }[tool]
      return {
        id: 'G4',
        what: `CPU per call ÷ raw, legacy → stdio, ${SIZE[tool]}`,
        measured: ratio('legacy → stdio', tool),
        unit: '×',
        atMost,
      }
    }),
    {
      id: 'G5',
      what: 'tools/list, 100 servers × 50 tools, p50',
      measured: ours(list)?.value,
      unit: 'ms',
      atMost: 2,
      beside: rawTook(list),
    },
    {
      id: 'G5',
      what: 'its CPU, of mcp-hub ÷ ours',
      measured: peer && listCpu && by(peer.value, listCpu.value),
      unit: '×',
      atLeast: 5,
    },
    {
      id: 'G5',
      what: 'a call with 100 servers ÷ with one',
      measured: ours('CPU of a call, 100 servers')?.ratio,
      unit: '×',
      atMost: 1.05,
    },
    {
      id: 'G5',
      what: 'a change of one list among 100 servers ÷ alone',
      measured: ours('CPU of a change, 100 × 50')?.ratio,
      unit: '×',
    },
    ...['trunkline', 'trunkline, its server hangs'].map((subject): Line => {
      const measured = of(subject, 'to the first answer')?.more
      const beside = rawTook('to the first answer')
      return { id: 'G6', what: `cold start beyond raw: ${subject}`, measured, unit: 'ms', atMost: 30, beside }
    }),
    { id: 'G7', what: '1,000 idle sessions', measured: ours('1,000 idle, resident')?.value, unit: 'MiB', atMost: 2 },
    { id: 'G7', what: beside?.what ?? 'CPU of a call beside 1000 idle', measured: beside?.ratio, unit: '×', atMost: 1.05 },
    ...['first byte of 1 MB', 'first word of progress'].map((what): Line => {
      return { id: 'G8', what: `${what}, beyond raw`, measured: ours(what)?.more, unit: 'ms', atMost: 1, beside: rawTook(what) }
    }),
    { id: 'G8', what: 'peak memory ÷ raw, 32 × 1 MB', measured: ours('peak memory, 32 × 1 MB')?.ratio, unit: '×', atMost: 1 },
    {
      id: 'G8',
      what: 'p99 of 100 B beside 100 MB, ÷ raw',
      measured: ours('100 B beside 100 MB, p99')?.ratio,
      unit: '×',
    },
    { id: 'G8', what: 'memory grown by 100 MB', measured: grown?.value, unit: 'MiB', beside: rawTook('memory grown by 100 MB') },
    {
      id: 'G9',
      what: among?.what ?? 'CPU of a call beside 1000 that made calls',
      measured: among?.ratio,
      unit: '×',
      atMost: FLAT,
    },
    { id: 'G9', what: most?.what ?? 'CPU of a call, 100 servers', measured: most?.ratio, unit: '×', atMost: FLAT },
    {
      id: 'G9',
      what: 'memory per 1,000 sessions that made a call',
      measured: ours('1,000 that made a call, resident')?.value,
      unit: 'MiB',
    },
    {
      id: 'G9',
      what: 'heap per server of 50 tools',
      measured: perServer === undefined ? undefined : spread([perServer]),
      unit: 'MiB',
    },
  ]
  return lines.map(judged)
}

/** What counts as flat. */
const FLAT = 1.05

const by = (above: Spread, below: Spread): Spread => ({
  median: above.median / below.median,
  q1: above.q1 / below.q3,
  q3: above.q3 / below.q1,
  min: above.min / below.max,
  max: above.max / below.min,
})
