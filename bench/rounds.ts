/**
 * Interleaved bursts. The cells are measured one after the other. In every round of a cell each subject has one burst, in rotating order,
 * and its CPU per call is divided by that of raw in the same round, so that other load of the machine affects both. Before the
 * first round each process makes calls of the cell, because earlier calls change what is compiled.
 */
import { type Deadline, isOver } from './budget.ts'
import { cpuMicros, processTree } from './cpu.ts'
import type { Contestant, Instance } from './field.ts'
import { type Cell, cellName } from './cells.ts'
import { TOOLS, textSize, toolOf } from './payload.ts'
import type { Between } from './subjects.ts'
import { quantile, spread, type Spread } from './stats.ts'

export interface RoundsOptions {
  readonly rounds: number
  /** Length of a burst, ms. */
  readonly forMs: number
  /** Half of it go calls before each burst that do not count, ms. */
  readonly warmUpMs: number
  /** Calls of 100 B that each process has answered before its first cell. */
  readonly warmUpCalls: number
  /** Calls of a cell that each process makes before its first round, ms. */
  readonly settleMs: number
}

/** One contestant in one cell over all rounds. */
export interface Row extends Cell {
  readonly subject: string
  readonly between: Between
  /** Over all rounds. */
  readonly calls: number
  readonly bad: number
  readonly firstBad: string | undefined
  /** User and system time of the process tree, µs. */
  readonly cpuPerCall: Spread
  /** The same by round. */
  readonly cpuByRound: readonly number[]
  /** CPU per call ÷ that of the baseline, by round; undefined where the run has none. */
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

/** What a call of this cell asks for, and carries. */
const askOf = (prefix: string, { tool, kind, way }: Cell) =>
  way === 'arguments'
    ? { tool: `${prefix}t100`, size: TOOLS.t100, carried: { tool, kind } }
    : { tool: prefix + toolOf(tool, kind), size: textSize(tool, kind) }

type Lengths = Pick<RoundsOptions, 'forMs' | 'warmUpMs'>

const measure = async (prefix: string, { host, pid }: Instance, cell: Cell, lengths: Lengths): Promise<Sample> => {
  const meter = () => cpuMicros(processTree(pid))
  const { inFlight } = cell
  const { latencies, used, seconds, ...rest } = await host.burst({ ask: askOf(prefix, cell), inFlight, meter, ...lengths })
  const calls = latencies.length
  const timing = { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
  return { ...rest, ...timing, calls, cpuPerCall: used / calls, callsPerSecond: calls / seconds }
}

/**
 * What passes bytes before the same server: raw; between two pipes, the relay of lines. Before a server on a pipe hosts of HTTP are set beside raw
 * before the server of JSON replies, because nothing passes bytes from one to the other.
 */
const isBaseline = ({ subject, between: [, behind] }: Contestant, [host, server]: Between): boolean => {
  if (server !== 'stdio') return subject === 'raw' && behind === server
  return host === 'stdio' ? subject === 'lines' : subject === 'raw' && behind === 'legacy'
}

/** Longest time for the calls that warm up one process, ms: peers take some 500 µs for each. */
const WARM_UP_MS = 4_000

/** The calls that a process must have answered before it is measured: code is compiled by then. */
const warmUp = async ({ prefix, instances }: Contestant, calls: number): Promise<void> => {
  const ask = { tool: `${prefix}t100`, size: TOOLS.t100 }
  for (const { host } of instances) await host.burst({ ask, inFlight: 32, forMs: WARM_UP_MS, calls, meter: () => 0 })
}

/** Each process makes calls of this cell alone until it does nothing else. */
const settle = async ({ prefix, instances }: Contestant, cell: Cell, forMs: number): Promise<void> => {
  if (forMs > 0)
    for (const { host } of instances)
      await host.burst({ ask: askOf(prefix, cell), inFlight: cell.inFlight, forMs, meter: () => 0 })
}

/**
 * Runs all rounds, or as many as fit into the time. A contestant that loses a connection is out: `lose`
 * is told why.
 */
export const runRounds = async (
  contestants: readonly Contestant[],
  { rounds, forMs, warmUpMs, warmUpCalls, settleMs }: RoundsOptions,
  deadline: Deadline,
  lose: (name: string, error: unknown) => void,
): Promise<readonly Row[]> => {
  const samples = new Map<Contestant, Map<string, Sample[]>>(contestants.map((one) => [one, new Map()]))
  const attempt = async (contestant: Contestant, what: string, work: () => Promise<void>): Promise<void> => {
    if (!samples.has(contestant)) return
    try {
      await work()
    } catch (error) {
      samples.delete(contestant)
      lose(`${contestant.subject}, ${contestant.between.join(' → ')}, ${what}`, error)
    }
  }
  if (warmUpCalls > 0) for (const one of contestants) await attempt(one, 'warm-up', () => warmUp(one, warmUpCalls))

  const cells = new Map(contestants.flatMap(({ cells }) => cells.map((cell) => [cellName(cell), cell])))
  const ableOf = (name: string) => contestants.filter((one) => one.cells.some((own) => cellName(own) === name))
  let left = [...cells.keys()].reduce((count, name) => count + ableOf(name).length, 0)
  for (const [name, cell] of cells) {
    const able = ableOf(name)
    const until = deadline && performance.now() + ((deadline - performance.now()) * able.length) / left
    left -= able.length
    for (const contestant of able) await attempt(contestant, name, () => settle(contestant, cell, settleMs))
    const started = performance.now()
    for (let round = 0; round < rounds && !isOver(until, round, (performance.now() - started) / round); round++)
      for (let turn = 0; turn < able.length; turn++) {
        const contestant = able[(turn + round) % able.length]!
        const instance = contestant.instances[round % contestant.instances.length]!
        await attempt(contestant, name, async () => {
          push(samples, contestant, name, await measure(contestant.prefix, instance, cell, { forMs, warmUpMs: warmUpMs / 2 }))
        })
      }
  }

  const inTheRace = [...samples.keys()]
  const row = (contestant: Contestant, cell: Cell): Row => {
    const name = cellName(cell)
    const counted = samples.get(contestant)!.get(name)!
    const baseline = inTheRace.find((one) => isBaseline(one, contestant.between))
    const base = baseline && samples.get(baseline)!.get(name)
    const pick = (field: 'cpuPerCall' | 'callsPerSecond' | 'p50' | 'p99') => counted.map((sample) => sample[field])
    const sum = (field: 'calls' | 'bad') => counted.reduce((sum, sample) => sum + sample[field], 0)
    return {
      ...cell,
      subject: contestant.subject,
      between: contestant.between,
      calls: sum('calls'),
      bad: sum('bad'),
      firstBad: counted.find(({ firstBad }) => firstBad !== undefined)?.firstBad,
      cpuPerCall: spread(pick('cpuPerCall')),
      cpuByRound: pick('cpuPerCall'),
      ratio: base && spread(counted.map(({ cpuPerCall }, round) => cpuPerCall / base[round]!.cpuPerCall)),
      callsPerSecond: spread(pick('callsPerSecond')),
      p50: quantile(pick('p50'), 0.5),
      p99: quantile(pick('p99'), 0.5),
    }
  }
  return [...cells.values()].flatMap((cell) =>
    inTheRace
      .filter((one) => one.cells.some((own) => cellName(own) === cellName(cell)))
      .map((contestant) => row(contestant, cell)),
  )
}

const push = (into: Map<Contestant, Map<string, Sample[]>>, contestant: Contestant, cell: string, sample: Sample): void => {
  const own = into.get(contestant)
  const list = own?.get(cell)
  if (list === undefined) own?.set(cell, [sample])
  else list.push(sample)
}
