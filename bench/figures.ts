/** One number of a section of the benchmark; lower is better. The page prints it; the goals and `--compare` read it. */
import { type Deadline, isOver } from './budget.ts'
import { spread, type Spread } from './stats.ts'

export interface Figure {
  readonly section: string
  readonly subject: string
  readonly what: string
  readonly unit: 'ms' | 'µs' | 'MiB'
  readonly value: Spread
  /** To the section's baseline, by round; holds on a busy machine where the value does not. */
  readonly ratio: Spread | undefined
  /** Beside the baseline, by round, in the same unit. */
  readonly more: Spread | undefined
}

/** By round; `base`: what the baseline had in the same rounds. */
export const figure = (
  section: string,
  subject: string,
  what: string,
  unit: Figure['unit'],
  values: readonly number[],
  base?: readonly number[],
): Figure => ({
  section,
  subject,
  what,
  unit,
  value: spread(values),
  ratio: base && spread(values.map((value, round) => value / base[round]!)),
  more: base && spread(values.map((value, round) => value - base[round]!)),
})

/** How much is done; the shortest form shows that everything works and says nothing about speed. */
export interface Effort {
  readonly rounds: number
  readonly warmUp: number
  readonly forMs: number
  readonly warmUpMs: number
  /** Calls of 100 B that a process answers before it is measured, for at most ten times `warmUpMs`. */
  readonly warmUpCalls: number
  /** Calls of one kind that a process makes before bursts of them are measured, ms. */
  readonly settleMs: number
  /** Sessions per step of memory. */
  readonly sessions: number
  /** Servers behind one gateway. */
  readonly servers: readonly number[]
}

/**
 * Runs `measure` for each, in an order that rotates with the rounds; what came of the rounds that count, by round. One that fails takes no
 * further part: `lose` is told why, and nothing of it is in what is found. `deadline`: when rounds end before all are done.
 */
export const rotate = async <T, V>(
  { rounds, warmUp }: Pick<Effort, 'rounds' | 'warmUp'>,
  all: readonly T[],
  measure: (one: T, isWarmUp: boolean) => Promise<V>,
  lose: (one: T, error: unknown) => void,
  deadline?: Deadline,
): Promise<ReadonlyMap<T, readonly V[]>> => {
  const found = new Map<T, V[]>(all.map((one) => [one, []]))
  let started = performance.now()
  for (let round = -warmUp; round < rounds; round++) {
    if (round === 0) started = performance.now()
    if (round > 0 && isOver(deadline, round, (performance.now() - started) / round)) break
    for (let turn = 0; turn < all.length; turn++) {
      const one = all[(turn + round + warmUp) % all.length]
      if (!found.has(one!)) continue
      try {
        const value = await measure(one!, round < 0)
        if (round >= 0) found.get(one!)!.push(value)
      } catch (error) {
        found.delete(one!)
        lose(one!, error)
      }
    }
  }
  return found
}
