/**
 * How many calls are sent a second time without anybody asking: a part of all calls, so that a server in trouble is not given more
 * to do than without its trouble (RELIABILITY 7). Calls are counted by their numbers, which costs a call nothing.
 */

/** Counted in hundredths. */
const ONE = 100
/** What quiet times save up, and what a millisecond brings: ten a second. */
const RESERVE = 100 * ONE
const PER_MS = 1

export class RetryBudget {
  /** `limits.retry_budget`, per cent of the calls; 0: none at all. */
  readonly #percent: () => number
  readonly #nowMs: () => number
  #left = RESERVE
  #ref = 0
  #countedMs: number

  constructor(percent: () => number, nowMs: () => number = () => performance.now()) {
    this.#percent = percent
    this.#nowMs = nowMs
    this.#countedMs = nowMs()
  }

  /** Takes one retry, of the call with this number; false: none is left. */
  take(ref: number): boolean {
    const nowMs = this.#nowMs()
    const percent = this.#percent()
    const earned = Math.max(0, ref - this.#ref) * percent + (nowMs - this.#countedMs) * PER_MS
    this.#left = Math.min(RESERVE, this.#left + earned)
    this.#ref = Math.max(this.#ref, ref)
    this.#countedMs = nowMs
    if (percent === 0 || this.#left < ONE) return false
    this.#left -= ONE
    return true
  }
}
