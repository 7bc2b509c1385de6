/**
 * The byte limit of all event logs together. At the limit, the oldest events of the least recently written sessions are dropped first,
 * since they are the least likely to be resumed (RELIABILITY 7; T-32).
 */
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { EventLog } from './event-log.ts'

export class EventBudget {
  /** Read each time, since a reload may change it. */
  readonly #maxBytes: () => number
  readonly #limits: Pick<LimitCounts, 'hit'>
  /** Non-empty logs, the least recently written first. */
  readonly #logs = new Set<EventLog>()
  #bytes = 0

  constructor(maxBytes: () => number, limits: Pick<LimitCounts, 'hit'>) {
    this.#maxBytes = maxBytes
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Records that a log has grown or shrunk by `bytes`. */
  weigh(log: EventLog, bytes: number): void {
    this.#bytes += bytes
    if (bytes > 0 || log.bytes === 0) this.#logs.delete(log)
    if (bytes > 0) this.#logs.add(log)
  }

  /** Drops events until the rest fits, and counts each. */
  makeRoom(): void {
    const maxBytes = this.#maxBytes()
    if (this.#bytes <= maxBytes) return
    for (const log of this.#logs) while (this.#bytes > maxBytes && log.dropOldest()) this.#limits.hit('listen.limits.event_log')
  }
}
