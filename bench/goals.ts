/**
 * The performance goals: target, measured value and verdict. A goal over the set of payloads is judged by the worst of
 * them. A value that the run did not measure is marked as such. Times have no verdict if other processes used the machine.
 */
import type { Figure } from './figures.ts'
import { type ToolName } from './payload.ts'
import type { Row } from './rounds.ts'
import { spread, type Spread } from './stats.ts'

export interface Goal {
  readonly id: string
  readonly what: string
  /** In words, with the unit. */
  readonly target: string
  readonly measured: Spread | undefined
  readonly unit: Unit
  readonly verdict: 'met' | 'missed' | 'stated' | 'not measured' | 'no verdict'
  /** What stands beside it, such as raw's own figure. */
  readonly beside: string | undefined
}

type Unit = '×' | 'ms' | 'MiB'
const SIZE: Readonly<Record<ToolName, string>> = { t100: '100 B', t10k: '10 KB', t1m: '1 MB' }
const SIZES = Object.keys(SIZE) as ToolName[]

interface Line {
  readonly id: string
  readonly what: string
  readonly measured: Spread | undefined
  readonly unit: Unit
  readonly atMost?: number
  readonly atLeast?: number
  readonly beside?: string | undefined
}

/** What is a ratio of CPU holds on a busy machine, what is measured in time does not. */
const isTimed = ({ unit, id }: Line): boolean => unit === 'ms' || id === 'G10' || id === 'G11'

const judged = (line: Line, isBusy: boolean): Goal => {
  const { id, what, measured, unit, atMost, atLeast, beside } = line
  const word = unit === '×' ? '×' : ` ${unit}`
  const target = atMost !== undefined ? `≤ ${atMost}${word}` : atLeast !== undefined ? `≥ ${atLeast}${word}` : 'stated'
  const isMet = measured && measured.median <= (atMost ?? Infinity) && measured.median >= (atLeast ?? -Infinity)
  const hasTarget = atMost !== undefined || atLeast !== undefined
  const isJudged = !isBusy || !isTimed(line)
  const verdict = !hasTarget ? 'stated' : !isJudged ? 'no verdict' : isMet === true ? 'met' : 'missed'
  return { id, what, target, measured, unit, verdict: measured === undefined ? 'not measured' : verdict, beside }
}

const ENDS = /^CPU of a call, .*$/

/** In the order of their ids. `isBusy`: others used the machine during the run. */
export const goalsOf = (rows: readonly Row[], figures: readonly Figure[], isBusy: boolean): readonly Goal[] => {
  const rowsOf = (subject: string, between: string, tool: ToolName, way?: 'arguments') =>
    rows.filter(
      (row) =>
        row.subject === subject &&
        row.between.join(' → ') === between &&
        row.tool === tool &&
        row.way === way &&
        row.inFlight === 32,
    )
  const row = (subject: string, between: string, tool: ToolName, kind = 'prose') =>
    rowsOf(subject, between, tool).find((one) => one.kind === kind)
  /** The kind of payload with the highest ratio; beside it those below. */
  const worst = (between: string, tool: ToolName, way?: 'arguments'): Pick<Line, 'measured' | 'beside'> => {
    const found = rowsOf('trunkline', between, tool, way).filter(({ ratio }) => ratio !== undefined)
    const [first, ...others] = found.sort((one, other) => other.ratio!.median - one.ratio!.median)
    if (first === undefined) return { measured: undefined }
    const below = others.map(({ kind, ratio }) => `${kind} ${ratio!.median.toFixed(2)}`).join(', ')
    return { measured: first.ratio, beside: others.length === 0 ? undefined : `${first.kind}; ${below}` }
  }
  /** CPU per call of one subject ÷ that of another in the same cell: each is set beside raw, since they need not be up at the same time. */
  const paired = (
    [above, aboveBetween]: readonly [string, string],
    [below, belowBetween]: readonly [string, string],
    tool: ToolName,
  ): Spread | undefined => {
    const kind = tool === 't100' ? 'prose' : 'dense'
    const [one, other] = [row(above, aboveBetween, tool, kind), row(below, belowBetween, tool, kind)]
    return one?.ratio && other?.ratio && by(one.ratio, other.ratio)
  }
  const withJwt = (between: string, tool: ToolName): string => {
    const verified = row('trunkline-jwt', between, tool)?.ratio
    return verified === undefined ? '' : `with a JWT ${verified.median.toFixed(2)}×`
  }
  const of = (subject: string, what: string | RegExp) =>
    figures.find((one) => one.subject === subject && (typeof what === 'string' ? one.what === what : what.test(one.what)))
  const ours = (what: string | RegExp) => of('trunkline', what)
  const rawTook = (what: string) => {
    const raw = of('raw', what)
    return raw && `raw ${raw.value.median.toFixed(2)} ${raw.unit}`
  }
  const section = (name: string, subject = 'trunkline') =>
    figures.filter((one) => one.section === name && one.subject === subject)
  const list = '100 × 50, p50'
  const [listCpu, peerList] = [ours('100 × 50, CPU'), of('mcp-hub', '100 × 50, CPU')]
  const heapOfOne = ours('heap, 1 servers')?.value.median
  const heapOfMany = ours('heap, 100 servers')?.value.median
  const perServer = heapOfOne === undefined || heapOfMany === undefined ? undefined : (heapOfMany - heapOfOne) / 99
  const growth = section('growth in one process')
  const grown = (id: string, pattern: RegExp, what: string): Line => {
    const found = growth.find((one) => ENDS.test(one.what) && pattern.test(one.what))
    return { id, what: found?.what ?? what, measured: found?.ratio, unit: '×', atMost: FLAT }
  }
  const slowest = section('longest turn of the event loop').toSorted((one, other) => other.value.median - one.value.median)
  const native = 'agentgateway'

  const lines: readonly Line[] = [
    ...['legacy → legacy', 'modern → modern'].flatMap((between): readonly Line[] => [
      ...SIZES.map((tool): Line => {
        const { measured, beside } = worst(between, tool)
        const besides = [beside, tool === 't100' ? withJwt(between, tool) : undefined].filter(Boolean).join('; ')
        const what = `CPU per call ÷ raw, ${between}, ${SIZE[tool]}${tool === 't100' ? '' : ', worst of the set'}`
        return { id: 'G1', what, measured, unit: '×', atMost: tool === 't10k' ? 0.8 : 0.75, beside: besides || undefined }
      }),
      {
        id: 'G1',
        what: `CPU per call ÷ raw, ${between}, 1 MB of prose`,
        measured: row('trunkline', between, 't1m')?.ratio,
        unit: '×',
        atMost: 0.65,
      },
      {
        id: 'G1',
        what: `CPU per call ÷ raw, ${between}, arguments of 1 MB, worst of the set`,
        ...worst(between, 't1m', 'arguments'),
        unit: '×',
        atMost: 0.75,
      },
    ]),
    ...SIZES.map((tool): Line => {
      const measured = paired(['mcp-hub', 'http-sse → legacy'], ['trunkline', 'legacy → legacy'], tool)
      const what = `CPU per call of mcp-hub ÷ ours, each in its best transport, ${SIZE[tool]}${tool === 't100' ? '' : ' dense'}`
      return { id: 'G2', what, measured, unit: '×', atLeast: tool === 't1m' ? 8 : 10 }
    }),
    ...(['t100', 't1m'] as const).map((tool): Line => {
      const measured = paired(['trunkline', 'legacy → legacy'], ['nginx', 'legacy → legacy'], tool)
      const what = `CPU per call ÷ nginx, ${SIZE[tool]}${tool === 't100' ? '' : ' dense'}`
      return { id: 'G3', what, measured, unit: '×', atMost: tool === 't100' ? 2 : 1.3 }
    }),
    ...SIZES.map((tool): Line => {
      const what = `CPU per call ÷ raw, legacy → stdio, ${SIZE[tool]}${tool === 't100' ? '' : ', worst of the set'}`
      return { id: 'G4', what, ...worst('legacy → stdio', tool), unit: '×', atMost: { t100: 0.75, t10k: 0.8, t1m: 1 }[tool] }
    }),
    ...SIZES.map((tool): Line => {
      const what = `CPU per call ÷ a relay of lines, stdio → stdio, ${SIZE[tool]}${tool === 't100' ? '' : ', worst of the set'}`
      return { id: 'G4', what, ...worst('stdio → stdio', tool), unit: '×', atMost: tool === 't100' ? 2 : 0.5 }
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
      measured: peerList && listCpu && by(peerList.value, listCpu.value),
      unit: '×',
      atLeast: 5,
    },
    {
      id: 'G5',
      what: 'a change of one list among 100 servers ÷ alone',
      measured: ours('CPU of a change, 100 × 50')?.ratio,
      unit: '×',
      beside: changeOfLong(ours('CPU of a change, 1 × 5000')),
    },
    ...['trunkline', 'trunkline, its server hangs'].map((subject): Line => {
      const measured = of(subject, 'to the first answer')?.more
      const beside = rawTook('to the first answer')
      return { id: 'G6', what: `start of the package beyond raw: ${subject}`, measured, unit: 'ms', atMost: 10, beside }
    }),
    { id: 'G7', what: '1,000 idle sessions', measured: ours('1,000 idle, resident')?.value, unit: 'MiB', atMost: 2 },
    ...(
      [
        ['first byte of a steady answer', 25],
        ['last byte of a steady answer', 5],
        ['first word of progress', 1],
      ] as const
    ).map(([what, atMost]): Line => {
      return { id: 'G8', what: `${what}, beyond raw`, measured: ours(what)?.more, unit: 'ms', atMost, beside: rawTook(what) }
    }),
    { id: 'G8', ...highest(figures, /^peak memory/, 'peak memory ÷ raw, 32 × 1 MB, worst of three kinds'), unit: '×', atMost: 1 },
    {
      id: 'G8',
      what: 'memory grown by 100 MB that pass',
      measured: ours('memory grown by 100 MB')?.value,
      unit: 'MiB',
      beside: rawTook('memory grown by 100 MB'),
    },
    grown('G9', /sessions that made a call/, 'CPU of a call, 1 to 10000 sessions'),
    grown('G9', /servers of/, 'CPU of a call, 1 to 500 servers'),
    grown('G9', /tools of one server/, 'CPU of a call, 10000 tools'),
    ...growth
      .filter(({ what }) => what.includes('in flight of') && !what.includes(' 1 in flight'))
      .map(({ what, ratio }): Line => {
        const raw = of('raw', what)?.ratio
        const beside = raw && `raw ${raw.median.toFixed(2)}×`
        return { id: 'G9', what: `${what} ÷ one`, measured: ratio, unit: '×', atMost: FLAT, beside }
      }),
    ...growth
      .filter(({ what }) => what.startsWith('heap of 1,000 more'))
      .map(({ what, value }): Line => ({ id: 'G9', what, measured: value, unit: 'MiB' })),
    {
      id: 'G9',
      what: 'heap per server of 50 tools',
      measured: perServer === undefined ? undefined : spread([perServer]),
      unit: 'MiB',
    },
    ...section('the worst neighbour')
      .filter(({ what }) => /^100 B beside .*, p99$/.test(what))
      .map((one): Line => {
        const beside = rawTook(one.what)
        return { id: 'G10', what: `${one.what}, ÷ raw's`, measured: one.ratio, unit: '×', atMost: 1.5, beside }
      }),
    {
      id: 'G10',
      what: `the longest turn of the event loop${slowest[0] === undefined ? '' : `: ${slowest[0].what}`}`,
      measured: slowest[0]?.value,
      unit: 'ms',
      atMost: 10,
      beside:
        slowest
          .slice(1)
          .map(({ what, value }) => `${what} ${value.median.toFixed(1)}`)
          .join(', ') || undefined,
    },
    {
      id: 'G11',
      what: 'throughput of two workers ÷ one, calls whose CPU is in the gateway',
      ...throughput(figures),
      unit: '×',
      atLeast: 1.8,
    },
    ...SIZES.map((tool): Line => {
      const measured = paired([native, 'legacy → legacy'], ['trunkline', 'legacy → legacy'], tool)
      return { id: 'G12', what: `CPU per call of ${native} ÷ ours, ${SIZE[tool]}`, measured, unit: '×', atLeast: 3 }
    }),
  ]
  // CPU of a thread holds on a busy machine, though it is measured in ms.
  return lines.map((line) => judged(line, isBusy))
}

/** What counts as flat. */
const FLAT = 1.05

const changeOfLong = (long: Figure | undefined): string | undefined =>
  long?.ratio && `of one in a list of 5,000, which is read whole: ${long.ratio.median.toFixed(1)}×`

/** The figure of ours with the highest ratio among those whose names match. */
const highest = (figures: readonly Figure[], pattern: RegExp, what: string): Pick<Line, 'what' | 'measured' | 'beside'> => {
  const found = figures.filter((one) => one.subject === 'trunkline' && pattern.test(one.what) && one.ratio !== undefined)
  const [first, ...others] = found.toSorted((one, other) => other.ratio!.median - one.ratio!.median)
  if (first === undefined) return { what, measured: undefined }
  const below = others.map((one) => `${one.what.split(' ').at(-1)} ${one.ratio!.median.toFixed(2)}`).join(', ')
  return { what, measured: first.ratio, beside: `${first.what}; ${below}` }
}

/** Of two workers ÷ one: the inverse of the time for each call. */
const throughput = (figures: readonly Figure[]): Pick<Line, 'measured' | 'beside'> => {
  const of = (subject: string, what: string) =>
    figures.find((one) => one.section === 'workers' && one.subject === subject && one.what === what)
  const [one, two] = [of('trunkline, 1 worker', TIME), of('trunkline, 2 workers', TIME)]
  const around = of('trunkline, 1 worker', 'CPU of a call, host and server')?.ratio
  if (one === undefined || two?.ratio === undefined) return { measured: undefined }
  const { median, q1, q3, min, max } = two.ratio
  const apart = of('trunkline, two processes', TIME)?.ratio
  const bound = apart && `; two gateways that share nothing, half of the calls to each: ${(1 / apart.median).toFixed(2)}×`
  const perSecond = (figure: Figure) => (1e6 / figure.value.median).toFixed(0)
  const share = around && `; host and server take ${(100 * around.median).toFixed(1)} % of the gateway's CPU`
  return {
    measured: { median: 1 / median, q1: 1 / q3, q3: 1 / q1, min: 1 / max, max: 1 / min },
    beside: `${perSecond(one)} and ${perSecond(two)} calls/s${share ?? ''}${bound ?? ''}`,
  }
}
const TIME = 'time for each call'

const by = (above: Spread, below: Spread): Spread => ({
  median: above.median / below.median,
  q1: above.q1 / below.q3,
  q3: above.q3 / below.q1,
  min: above.min / below.max,
  max: above.max / below.min,
})
