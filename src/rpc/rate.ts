/** So many in a time: a token bucket that holds what one period allows and fills evenly, on a clock that never goes back. */

export interface Rate {
  readonly amount: number
  readonly periodMs: number
  /** As it was written: `20/s`. */
  readonly text: string
}

/** What sums of fractions of milliseconds may be off by. */
const ROUNDING_MS = 0.001

export class TokenBucket {
  readonly #perTokenMs: number
  readonly #periodMs: number
  /** When it will be full: the one number that says how many tokens it holds at any time. */
  #fullAtMs = -Infinity

  constructor({ amount, periodMs }: Rate) {
    this.#perTokenMs = periodMs / amount
    this.#periodMs = periodMs
  }

  /** How long until it holds a token; 0: it does now. Times are monotonic, in milliseconds. */
  waitMs(nowMs: number): number {
    const missingMs = this.#fullAtMs - nowMs + this.#perTokenMs - this.#periodMs
    return missingMs > ROUNDING_MS ? missingMs : 0
  }

  take(nowMs: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#perTokenMs
  }

  /** Full, like a new bucket. */
  isFull(nowMs: number): boolean {
    return this.#fullAtMs <= nowMs
  }
}
