/** Counts how often each limit was reached, for `ps --json` and the admin status; logs each at most once a minute. */
import type { Log } from '../values/log.ts'
import { Throttle } from '../time/throttle.ts'

/** How often the limit of one option was reached since the start. */
export interface LimitCount {
  /** Path in the configuration. `limits.…` and `timeouts.…` of a server are below its key or in `defaults`. */
  readonly option: string
  /** Key of the server at which the limit was reached. */
  readonly server: string | undefined
  readonly count: number
}

interface Counted {
  readonly option: string
  readonly server: string | undefined
  count: number
}

const LOG_EVERY_MS = 60_000

export class LimitCounts {
  readonly #log: Pick<Log, 'warn'>
  /** By server (empty: none), then by option. A joined key would be built for every call that reaches a limit. */
  readonly #counted = new Map<string, Map<string, Counted>>()
  readonly #throttle = new Throttle(LOG_EVERY_MS)

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log
  }

  get all(): readonly LimitCount[] {
    return [...this.#counted.values()]
      .flatMap((options) => [...options.values()])
      .map(({ option, server, count }) => ({ option, server, count }))
  }

  /** Counts and logs that a limit was reached, so that a message or a connection was refused, cut off or dropped. */
  readonly hit = (option: string, server?: string): void => {
    const { count } = this.#count(option, server)
    if (this.#throttle.due(`${server ?? ''} ${option}`) === undefined) return
    this.#log.warn({ ...(server !== undefined && { server }), count }, `${option} reached`)
  }

  /** As `hit`, without a log line, for limits that are reached in normal operation. */
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
