/**
 * Counts how often each limit was reached, for `ps --json` and the admin status. Calls within their limits do not use it. A limit
 * that is reached is logged, at most once a minute each.
 */
import { Throttle } from '../time/throttle.ts'

/** One option, and how often its limit was reached since the start. */
export interface LimitCount {
  /** Its path in the configuration; `limits.…` and `timeouts.…` of a server are below its key, or in `defaults`. */
  readonly option: string
  /** Key of the server at which it was reached. */
  readonly server: string | undefined
  readonly count: number
}

interface Counted {
  readonly option: string
  readonly server: string | undefined
  count: number
}

const TELL_EVERY_MS = 60_000

export class LimitCounts {
  readonly #log: { warn(facts: object, message: string): void }
  /** By server (empty: none), then by option. Some limits are reached with every call, so no key is made of both. */
  readonly #counted = new Map<string, Map<string, Counted>>()
  readonly #throttle = new Throttle(TELL_EVERY_MS)

  constructor(log: { warn(facts: object, message: string): void }) {
    this.#log = log
  }

  get all(): readonly LimitCount[] {
    return [...this.#counted.values()]
      .flatMap((options) => [...options.values()])
      .map(({ option, server, count }) => ({ option, server, count }))
  }

  /** The limit was reached, and a message or a peer was refused, cut off or dropped. */
  readonly hit = (option: string, server?: string): void => {
    const { count } = this.#count(option, server)
    if (this.#throttle.due(`${server ?? ''} ${option}`) === undefined) return
    this.#log.warn({ ...(server !== undefined && { server }), count }, `${option} reached`)
  }

  /** As `hit`, for limits that are reached in normal operation. */
  readonly passed = (option: string, server?: string): void => void this.#count(option, server)

  #count(option: string, server: string | undefined): Counted {
    const counted = this.#counted.get(server ?? '')?.get(option) ?? this.#add(option, server)
    counted.count++
    return counted
  }

  #add(option: string, server: string | undefined): Counted {
    const options = this.#counted.get(server ?? '') ?? new Map<string, Counted>()
    const counted: Counted = { option, server, count: 0 }
    this.#counted.set(server ?? '', options.set(option, counted))
    return counted
  }
}
