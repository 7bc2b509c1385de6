/**
 * What the event logs of all sessions may keep together. When that is used up, the sessions written to longest ago lose their
 * oldest events first: they are the least likely to come back for them (RELIABILITY 7; T-32).
 */
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { EventLog } from './event-log.ts'

export class EventBudget {
  /** Called each time: a reload may have changed it. */
  readonly #maxBytes: () => number
  readonly #limits: Pick<LimitCounts, 'hit'>
  /** Logs that keep something; who was written to longest ago is first. */
  readonly #logs = new Set<EventLog>()
  #bytes = 0

  constructor(maxBytes: () => number, limits: Pick<LimitCounts, 'hit'>) {
    this.#maxBytes = maxBytes
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A log has grown or shrunk by so many bytes. */
  weigh(log: EventLog, bytes: number): void {
    this.#bytes += bytes
    if (bytes > 0 || log.bytes === 0) this.#logs.delete(log)
    if (bytes > 0) this.#logs.add(log)
  }

  /** Drops until what is left fits; each event that goes is counted. */
  makeRoom(): void {
    const maxBytes = this.#maxBytes()
    if (this.#bytes <= maxBytes) return
    for (const log of this.#logs) while (this.#bytes > maxBytes && log.dropOldest()) this.#limits.hit('listen.limits.event_log')
  }
}
