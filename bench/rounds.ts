/**
 * Interleaved bursts. In every round each contestant has one burst per cell, next to the others' and in an order that rotates, and its
 * CPU per call is set against that of raw in the same round and cell: what else the machine does then weighs on both.
 */
import { cpuMicros, processTree } from './cpu.ts'
import type { Contestant } from './field.ts'
import { PAYLOAD_KINDS, type PayloadKind } from './payload-kinds.ts'
import { textSize, toolOf, TOOLS, type ToolName } from './payload.ts'
import type { Between } from './subjects.ts'
import { quantile, spread, type Spread } from './stats.ts'

export interface Cell {
  readonly tool: ToolName
  readonly kind: PayloadKind
  readonly inFlight: number
}

export interface RoundsOptions {
  readonly cells: readonly Cell[]
  readonly rounds: number
  /** Rounds before those that count. */
  readonly warmUp: number
  /** Length of a burst, ms; of one to warm up: long enough that no code is compiled in those that count. */
  readonly forMs: number
  readonly warmUpMs: number
}

/** One contestant in one cell over all rounds. */
export interface Row extends Cell {
  readonly subject: string
  readonly between: Between
  /** Over all rounds, warm-up included. */
  readonly calls: number
  readonly bad: number
  readonly firstBad: string | undefined
  /** User and system time of the process tree, µs. */
  readonly cpuPerCall: Spread
  /** The same by round. */
  readonly cpuByRound: readonly number[]
  /** CPU per call ÷ that of the yardstick, by round; undefined where the run has none. */
  readonly ratio: Spread | undefined
  readonly callsPerSecond: Spread
  /** Median over rounds of each round's quantile, ms. */
  readonly p50: number
  readonly p99: number
}

interface Sample {
  readonly calls: number
  readonly bad: number
  readonly firstBad: string | undefined
  readonly cpuPerCall: number
  readonly callsPerSecond: number
  readonly p50: number
  readonly p99: number
}

const PROSE: readonly Cell[] = (Object.keys(TOOLS) as ToolName[]).flatMap((tool) =>
  [1, 32].map((inFlight) => ({ tool, kind: 'prose' as const, inFlight })),
)

/** Prose in every cell; of each other kind of payload 32 calls in flight, where there is room for it to show. */
export const cellsOf = (kinds: readonly PayloadKind[]): readonly Cell[] => [
  ...(kinds.includes('prose') ? PROSE : []),
  ...PAYLOAD_KINDS.filter((kind) => kind !== 'prose' && kinds.includes(kind)).flatMap((kind) =>
    (['t10k', 't1m'] as const).map((tool) => ({ tool, kind, inFlight: 32 })),
  ),
]

const measure = async ({ host, prefix, pid }: Contestant, { tool, kind, inFlight }: Cell, forMs: number): Promise<Sample> => {
  const meter = () => cpuMicros(processTree(pid))
  const { latencies, used, seconds, ...rest } = await host.burst({
    ask: { tool: prefix + toolOf(tool, kind), size: textSize(tool, kind) },
    inFlight,
    forMs,
    meter,
  })
  const calls = latencies.length
  const timing = { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
  return { ...rest, ...timing, calls, cpuPerCall: used / calls, callsPerSecond: calls / seconds }
}

/**
 * What passes bytes before the same server: raw; between two pipes, the relay of lines. Before a server on a pipe hosts of HTTP are set beside raw
 * before the server of JSON replies, because nothing passes bytes from one to the other.
 */
const isYardstick = ({ subject, between: [, behind] }: Contestant, [host, server]: Between): boolean => {
  if (server !== 'stdio') return subject === 'raw' && behind === server
  return host === 'stdio' ? subject === 'lines' : subject === 'raw' && behind === 'legacy'
}

/** Runs all rounds. `onRound` hears the number of the round that begins. A contestant that loses a connection is out: `lose` hears why. */
export const runRounds = async (
  contestants: readonly Contestant[],
  { cells, rounds, warmUp, forMs, warmUpMs }: RoundsOptions,
  onRound: (round: number) => void,
  lose: (name: string, error: unknown) => void,
): Promise<readonly Row[]> => {
  const samples = new Map<Contestant, Map<Cell, Sample[]>>(
    contestants.map((one) => [one, new Map(cells.map((cell) => [cell, []]))]),
  )
  for (let round = -warmUp; round < rounds; round++) {
    onRound(round)
    for (const [at, cell] of cells.entries()) {
      for (let turn = 0; turn < contestants.length; turn++) {
        const contestant = contestants[(turn + at + round + warmUp) % contestants.length]
        if (!samples.has(contestant)) continue
        try {
          const sample = await measure(contestant, cell, round < 0 ? warmUpMs : forMs)
          samples.get(contestant)!.get(cell)!.push(sample)
        } catch (error) {
          samples.delete(contestant)
          lose(
            `${contestant.subject}, ${contestant.between.join(' → ')}, ${toolOf(cell.tool, cell.kind)} × ${cell.inFlight}`,
            error,
          )
        }
      }
    }
  }

  const left = [...samples.keys()]
  const row = (contestant: Contestant, cell: Cell): Row => {
    const own = samples.get(contestant)!.get(cell)!
    const counted = own.slice(warmUp)
    const yardstick = left.find((one) => isYardstick(one, contestant.between))
    const base = yardstick && samples.get(yardstick)!.get(cell)!.slice(warmUp)
    const pick = (field: 'cpuPerCall' | 'callsPerSecond' | 'p50' | 'p99') => counted.map((sample) => sample[field])
    const sum = (field: 'calls' | 'bad') => own.reduce((sum, sample) => sum + sample[field], 0)
    return {
      ...cell,
      subject: contestant.subject,
      between: contestant.between,
      calls: sum('calls'),
      bad: sum('bad'),
      firstBad: own.find(({ firstBad }) => firstBad !== undefined)?.firstBad,
      cpuPerCall: spread(pick('cpuPerCall')),
      cpuByRound: pick('cpuPerCall'),
      ratio: base && spread(counted.map(({ cpuPerCall }, round) => cpuPerCall / base[round].cpuPerCall)),
      callsPerSecond: spread(pick('callsPerSecond')),
      p50: quantile(pick('p50'), 0.5),
      p99: quantile(pick('p99'), 0.5),
    }
  }
  return cells.flatMap((cell) => left.map((contestant) => row(contestant, cell)))
}
