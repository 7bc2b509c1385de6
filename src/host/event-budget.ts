/**
 * What the event logs of all sessions may keep together. When that is used up, the sessions written to longest ago lose their
 * oldest events first: they are the least likely to come back for them (RELIABILITY 7; T-32).
 */
import type { EventLog } from './event-log.ts'
import type { Log } from './hub.ts'

const MIB = 1024 * 1024
/** Hitting the limit is told at most this often. */
const TELL_EVERY_MS = 60_000

export class EventBudget {
  readonly #maxBytes: number
  readonly #log: Pick<Log, 'warn'>
  /** Logs that keep something; who was written to longest ago is first. */
  readonly #logs = new Set<EventLog>()
  #bytes = 0
  #dropped = 0
  #toldAtMs = -Infinity

  constructor(maxBytes: number, log: Pick<Log, 'warn'>) {
    this.#maxBytes = maxBytes
    this.#log = log
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Events that this limit took away. */
  get dropped(): number {
    return this.#dropped
  }

  /** A log has grown or shrunk by so many bytes. */
  weigh(log: EventLog, bytes: number): void {
    this.#bytes += bytes
    if (bytes > 0 || log.bytes === 0) this.#logs.delete(log)
    if (bytes > 0) this.#logs.add(log)
  }

  /** Drops until what is left fits. */
  makeRoom(): void {
    if (this.#bytes <= this.#maxBytes) return
    for (const log of this.#logs) while (this.#bytes > this.#maxBytes && log.dropOldest()) this.#dropped++
    const nowMs = performance.now()
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return
    this.#toldAtMs = nowMs
    this.#log.warn(
      { dropped: this.#dropped },
      `listen.limits.event_log (${this.#maxBytes / MIB} MiB) reached: streams of sessions idle longest cannot be resumed in full`,
    )
  }
}
