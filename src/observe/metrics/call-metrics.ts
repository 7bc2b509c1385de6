/**
 * Counts calls by server, tool, method, outcome and era. The number of series is bounded: servers are those of the configuration, methods
 * and outcomes those of tables, and at most `maxSeries` tools and prompts have their own series; further ones are `other`. Names that no
 * server owns are never labels, so hosts cannot create series.
 */
import { METHODS } from '../../wire/protocol/methods.ts'
import type { Era } from '../../wire/protocol/revisions.ts'
import type { CallOutcome } from '../outcomes.ts'
import type { Exemplar, Family } from './exposition.ts'

export const OTHER = 'other'

/** Upper bounds in seconds. */
export const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

export interface CountedCall {
  readonly ref: number
  /** `undefined`: not traced. */
  readonly traceId?: string | undefined
  readonly method: string
  /** Server key; `undefined`: the call reached no server. */
  readonly server: string | undefined
  /** Exposed name of a listed tool or prompt. */
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
  readonly exemplars: (LastCall | undefined)[]
  sum: number
  /** By outcome, then by era. */
  readonly counted: Map<CallOutcome, Record<Era, number>>
}

/** The latest call of a bucket; overwritten by the next. */
interface LastCall {
  ref: number
  traceId: string | undefined
  seconds: number
  at: number
}

export class CallMetrics {
  readonly #maxSeries: () => number
  readonly #capped: () => void
  /** Number of tools with their own series. */
  #known = 0
  /** By server, tool and method. Nested, so that no key is built per call. */
  readonly #timed = new Map<string, Map<string, Map<string, Timed>>>()

  /** `capped` is called for each call that is counted as `other`. */
  constructor(maxSeries: () => number, capped: () => void) {
    this.#maxSeries = maxSeries
    this.#capped = capped
  }

  count(call: CountedCall): void {
    const { server = '', method, seconds } = call
    const tool = call.server === undefined ? '' : (call.tool ?? '')
    const timed = this.#timed.get(server)?.get(tool)?.get(method) ?? this.#find(server, tool, method)
    const eras = timed.counted.get(call.outcome)
    if (eras === undefined) timed.counted.set(call.outcome, { legacy: 0, modern: 0, [call.era]: 1 })
    else eras[call.era]++
    const at = bucketOf(seconds)
    timed.counts[at] = (timed.counts[at] ?? 0) + 1
    timed.sum += seconds
    const last = timed.exemplars[at]
    if (last === undefined) timed.exemplars[at] = { ref: call.ref, traceId: call.traceId, seconds, at: call.at }
    else {
      last.ref = call.ref
      last.traceId = call.traceId
      last.seconds = seconds
      last.at = call.at
    }
  }

  get families(): readonly Family[] {
    return [
      {
        type: 'counter',
        name: 'trunkline_calls',
        help: 'Calls that ended, by server, exposed tool or prompt, method, outcome and era of the host.',
        samples: this.#all.flatMap(({ server, tool, method, counted }) =>
          [...counted].flatMap(([outcome, eras]) =>
            (['legacy', 'modern'] as const)
              .filter((era) => eras[era] > 0)
              .map((era) => ({ labels: { server, tool, method, outcome, era }, value: eras[era] })),
          ),
        ),
      },
      {
        type: 'histogram',
        name: 'trunkline_call_duration_seconds',
        help: 'From the request of the host to the answer.',
        bounds: BOUNDS,
        samples: this.#all.map(({ server, tool, method, counts, exemplars, sum }) => ({
          labels: { server, tool, method },
          counts,
          exemplars: exemplars.map((last) => last && exemplarOf(last)),
          sum,
        })),
      },
    ]
  }

  get #all(): readonly Timed[] {
    return [...this.#timed.values()].flatMap((tools) => [...tools.values()].flatMap((methods) => [...methods.values()]))
  }

  /** Returns the series of a call; creates it if necessary. Names beyond `maxSeries` share one. */
  #find(server: string, tool: string, method: string): Timed {
    const known = Object.hasOwn(METHODS, method) ? method : OTHER
    if (tool === '' || this.#timed.get(server)?.has(tool) === true) return this.#series(server, tool, known)
    if (this.#known >= this.#maxSeries()) {
      this.#capped()
      return this.#series(server, OTHER, known)
    }
    this.#known++
    return this.#series(server, tool, known)
  }

  #series(server: string, tool: string, method: string): Timed {
    const tools = getOrAdd(this.#timed, server, () => new Map<string, Map<string, Timed>>())
    const methods = getOrAdd(tools, tool, () => new Map<string, Timed>())
    const buckets = BOUNDS.length + 1
    return getOrAdd(methods, method, () => ({
      server,
      tool,
      method,
      counts: Array<number>(buckets).fill(0),
      exemplars: Array<undefined>(buckets).fill(undefined),
      sum: 0,
      counted: new Map(),
    }))
  }
}

const getOrAdd = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

const exemplarOf = ({ ref, traceId, seconds, at }: LastCall): Exemplar => ({
  labels: { call: String(ref), ...(traceId !== undefined && { trace_id: traceId }) },
  value: seconds,
  at,
})

/** Returns the bucket by linear search, since most calls are in the first buckets. */
const bucketOf = (seconds: number): number => {
  let at = 0
  while (at < BOUNDS.length && seconds > (BOUNDS[at] ?? Infinity)) at++
  return at
}
