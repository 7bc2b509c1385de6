/** A rate limit: a token bucket with the tokens of one period, refilled evenly, on a monotonic clock. */

export interface Rate {
  readonly amount: number
  readonly periodMs: number
  /** As it was written: `20/s`. */
  readonly text: string
}

/** Tolerance for rounding errors in sums of fractions. */
const ROUNDING_MS = 0.001

export class TokenBucket {
  readonly #perTokenMs: number
  readonly #periodMs: number
  /** Time at which the bucket will be full; it determines the token count at any time. */
  #fullAtMs = -Infinity

  constructor({ amount, periodMs }: Rate) {
    this.#perTokenMs = periodMs / amount
    this.#periodMs = periodMs
  }

  /** Time until the bucket holds a token; 0: it holds one now. Times are monotonic, in milliseconds. */
  waitMs(nowMs: number): number {
    const missingMs = this.#fullAtMs - nowMs + this.#perTokenMs - this.#periodMs
    return missingMs > ROUNDING_MS ? missingMs : 0
  }

  /** `count` may exceed what the bucket holds, of tokens taken elsewhere: the rest is missing until it is refilled. */
  take(nowMs: number, count = 1): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#perTokenMs * count
  }

  /** Full, like a new bucket. */
  isFull(nowMs: number): boolean {
    return this.#fullAtMs <= nowMs
  }
}
