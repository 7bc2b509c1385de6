/**
 * Calls counted by server, tool, method, outcome and era. How many series there can be is known beforehand: servers are those of the
 * configuration, methods and outcomes those of tables, and of tools and prompts at most `maxSeries` are told apart; all further ones are
 * `other`. Names that no server owns are never labels, so no host can make series.
 */
import { METHODS } from '../wire/protocol/methods.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import type { CallOutcome } from './ends.ts'
import type { Exemplar, Family } from './exposition.ts'

export const OTHER = 'other'

/** Upper bounds in seconds. */
export const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

export interface CountedCall {
  readonly ref: number
  /** Of its trace, where traces are kept. */
  readonly traceId?: string | undefined
  readonly method: string
  /** Key of the server; `undefined`: it reached none. */
  readonly server: string | undefined
  /** Exposed name of a tool or prompt, once its server is known. */
  readonly tool: string | undefined
  readonly outcome: CallOutcome
  readonly era: Era
  readonly seconds: number
  /** Wall clock, seconds. */
  readonly at: number
}

interface Series {
  readonly server: string
  readonly tool: string
  readonly method: string
}

interface Timed extends Series {
  readonly counts: number[]
  readonly exemplars: (Exemplar | undefined)[]
  sum: number
}

interface Counted extends Series {
  readonly outcome: CallOutcome
  readonly era: Era
  count: number
}

export class CallMetrics {
  readonly #maxSeries: () => number
  readonly #capped: () => void
  /** Servers and tools that are told apart. */
  readonly #known = new Set<string>()
  readonly #counted = new Map<string, Counted>()
  readonly #timed = new Map<string, Timed>()

  /** `capped` is called for each call that is counted as `other`. */
  constructor(maxSeries: () => number, capped: () => void) {
    this.#maxSeries = maxSeries
    this.#capped = capped
  }

  count(call: CountedCall): void {
    const { server = '', tool = '', method } = this.#bounded(call)
    const { outcome, era } = call
    const name = `${server}\n${tool}\n${method}`
    const key = `${name}\n${outcome}\n${era}`
    const counted = this.#counted.get(key)
    if (counted === undefined) this.#counted.set(key, { server, tool, method, outcome, era, count: 1 })
    else counted.count++
    const timed = this.#timed.get(name) ?? this.#addTimed(name, { server, tool, method })
    const at = bucketOf(call.seconds)
    timed.counts[at] = (timed.counts[at] ?? 0) + 1
    timed.sum += call.seconds
    timed.exemplars[at] = {
      labels: { call: String(call.ref), ...(call.traceId !== undefined && { trace_id: call.traceId }) },
      value: call.seconds,
      at: call.at,
    }
  }

  get families(): readonly Family[] {
    return [
      {
        type: 'counter',
        name: 'trunkline_calls',
        help: 'Calls that ended, by server, exposed tool or prompt, method, outcome and era of the host.',
        samples: [...this.#counted.values()].map(({ server, tool, method, outcome, era, count }) => ({
          labels: { server, tool, method, outcome, era },
          value: count,
        })),
      },
      {
        type: 'histogram',
        name: 'trunkline_call_duration_seconds',
        help: 'From the request of the host to the answer.',
        bounds: BOUNDS,
        samples: [...this.#timed.values()].map(({ server, tool, method, counts, exemplars, sum }) => ({
          labels: { server, tool, method },
          counts,
          exemplars,
          sum,
        })),
      },
    ]
  }

  #bounded({ server, tool, method }: CountedCall): Partial<Series> & { readonly method: string } {
    const known = Object.hasOwn(METHODS, method) ? method : OTHER
    if (server === undefined || tool === undefined) return { ...(server !== undefined && { server }), method: known }
    const name = `${server}\n${tool}`
    if (!this.#known.has(name)) {
      if (this.#known.size >= this.#maxSeries()) {
        this.#capped()
        return { server, tool: OTHER, method: known }
      }
      this.#known.add(name)
    }
    return { server, tool, method: known }
  }

  #addTimed(name: string, series: Series): Timed {
    const buckets = BOUNDS.length + 1
    const timed: Timed = {
      ...series,
      counts: Array<number>(buckets).fill(0),
      exemplars: Array<undefined>(buckets).fill(undefined),
      sum: 0,
    }
    this.#timed.set(name, timed)
    return timed
  }
}

const bucketOf = (seconds: number): number => {
  const at = BOUNDS.findIndex((bound) => seconds <= bound)
  return at === -1 ? BOUNDS.length : at
}
