/** For what happens as often as others decide, and is told at most once in a time: log lines above all. Counts what is not told. */

/** Kinds that are remembered. Beyond it all are forgotten, and the next of each is told at once. */
const MAX_KINDS = 1_000

interface Kind {
  /** Occurrences since it was told. */
  count: number
  toldMs: number
}

export class Throttle {
  readonly #periodMs: number
  readonly #clock: () => number
  readonly #kinds = new Map<string, Kind>()

  /** `clock`: monotonic, in milliseconds. */
  constructor(periodMs: number, clock: () => number = () => performance.now()) {
    this.#periodMs = periodMs
    this.#clock = clock
  }

  /** It happened. How often since it was told last, this time included, if it is to be told now; else `undefined`. */
  due(kind = ''): number | undefined {
    let known = this.#kinds.get(kind)
    if (known === undefined) {
      if (this.#kinds.size >= MAX_KINDS) this.#kinds.clear()
      this.#kinds.set(kind, (known = { count: 0, toldMs: -Infinity }))
    }
    known.count++
    const nowMs = this.#clock()
    if (nowMs - known.toldMs < this.#periodMs) return undefined
    const { count } = known
    known.count = 0
    known.toldMs = nowMs
    return count
  }
}
