/** Limits how often a repeated event is reported, mostly in the log. Counts the occurrences between two reports. */

/** Limit of tracked kinds. At the limit all are dropped, and the next occurrence of each kind is reported at once. */
const MAX_KINDS = 1_000

interface Kind {
  /** Occurrences since the last report. */
  count: number
  reportedMs: number
}

export class Throttle {
  readonly #periodMs: number
  readonly #clock: () => number
  readonly #kinds = new Map<string, Kind>()

  /** `periodMs`: the shortest time between two reports of one kind. `clock`: monotonic, in milliseconds. */
  constructor(periodMs: number, clock: () => number = () => performance.now()) {
    this.#periodMs = periodMs
    this.#clock = clock
  }

  /** Counts one occurrence. Returns the occurrences since the last report if a report is due now, else `undefined`. */
  due(kind = ''): number | undefined {
    let known = this.#kinds.get(kind)
    if (known === undefined) {
      if (this.#kinds.size >= MAX_KINDS) this.#kinds.clear()
      this.#kinds.set(kind, (known = { count: 0, reportedMs: -Infinity }))
    }
    known.count++
    const nowMs = this.#clock()
    if (nowMs - known.reportedMs < this.#periodMs) return undefined
    const { count } = known
    known.count = 0
    known.reportedMs = nowMs
    return count
  }
}
