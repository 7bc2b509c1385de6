/**
 * Budget of automatic retries: a share of all calls, so that retries do not overload a failing server (RELIABILITY 7). Calls are counted
 * by their reference numbers, which costs a call nothing.
 */

/** One retry, in hundredths. */
const ONE = 100
/** Maximum budget. It grows by one each millisecond: ten retries a second. */
const RESERVE = 100 * ONE

export class RetryBudget {
  /** `limits.retry_budget`, per cent of the calls; 0: no retries. */
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

  /** Takes one retry, for the call with this number; false: none is left. */
  take(ref: number): boolean {
    const nowMs = this.#nowMs()
    const percent = this.#percent()
    const earned = Math.max(0, ref - this.#ref) * percent + (nowMs - this.#countedMs)
    this.#left = Math.min(RESERVE, this.#left + earned)
    this.#ref = Math.max(this.#ref, ref)
    this.#countedMs = nowMs
    if (percent === 0 || this.#left < ONE) return false
    this.#left -= ONE
    return true
  }
}
