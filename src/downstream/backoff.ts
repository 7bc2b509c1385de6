/**
 * When to try a lost server again: 0.5 s doubling to 60 s with full jitter; after five failures within two minutes once in
 * five minutes; all forgotten after a minute of health (RELIABILITY F-04).
 */

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** This many failures within `windowMs` mean the server is down. */
  readonly maxFailures: number
  readonly windowMs: number
  readonly downMs: number
  readonly resetAfterMs: number
}

export const DEFAULT_BACKOFF: BackoffOptions = {
  firstMs: 500,
  maxMs: 60_000,
  maxFailures: 5,
  windowMs: 120_000,
  downMs: 300_000,
  resetAfterMs: 60_000,
}

export class Backoff {
  readonly #options: BackoffOptions
  readonly #random: () => number
  #attempt = 0
  #failedAtMs: number[] = []
  #isDown = false

  constructor(options: BackoffOptions = DEFAULT_BACKOFF, random: () => number = Math.random) {
    this.#options = options
    this.#random = random
  }

  /** After a failure at `nowMs` that ended `upMs` of health: how long to wait, and whether the server counts as down. */
  fail(nowMs: number, upMs: number): { waitMs: number; isDown: boolean } {
    const { firstMs, maxMs, maxFailures, windowMs, downMs, resetAfterMs } = this.#options
    if (upMs >= resetAfterMs) {
      this.#attempt = 0
      this.#failedAtMs = []
      this.#isDown = false
    }
    this.#failedAtMs = [...this.#failedAtMs.filter((at) => nowMs - at < windowMs), nowMs]
    // Once down, one try at a time: the pauses between them must not be taken for better days.
    this.#isDown ||= this.#failedAtMs.length >= maxFailures
    const ceilingMs = Math.min(maxMs, firstMs * 2 ** this.#attempt++)
    return { waitMs: this.#isDown ? downMs : ceilingMs * (0.5 + this.#random() / 2), isDown: this.#isDown }
  }
}
