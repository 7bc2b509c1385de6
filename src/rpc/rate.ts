/** A rate limit as a token bucket. It holds at most the tokens of one period and refills evenly, on a monotonic clock. */

export interface Rate {
  readonly amount: number
  readonly periodMs: number
  /** As written in the configuration: `20/s`. */
  readonly text: string
}

/** Tolerance for rounding errors of sums of fractions. */
const ROUNDING_MS = 0.001

export class TokenBucket {
  readonly #perTokenMs: number
  readonly #periodMs: number
  /** The time at which the bucket is full again. The token count at any time follows from it. */
  #fullAtMs = -Infinity

  constructor({ amount, periodMs }: Rate) {
    this.#perTokenMs = periodMs / amount
    this.#periodMs = periodMs
  }

  /** Milliseconds until the bucket holds a token; 0: it holds one now. `nowMs`: monotonic. */
  waitMs(nowMs: number): number {
    const missingMs = this.#fullAtMs - nowMs + this.#perTokenMs - this.#periodMs
    return missingMs > ROUNDING_MS ? missingMs : 0
  }

  /** Takes `count` tokens; a negative count gives them back. Other replicas may have taken more than the bucket holds: the deficit is refilled first. */
  take(nowMs: number, count = 1): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#perTokenMs * count
  }

  /** Whether the bucket is as full as a new one. */
  isFull(nowMs: number): boolean {
    return this.#fullAtMs <= nowMs
  }
}
