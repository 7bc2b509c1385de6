/** Exponential back-off with jitter, used for all retries. */

export interface BackoffRange {
  /** The wait before the first new attempt, in milliseconds. */
  readonly firstMs: number
  /** No wait is longer. */
  readonly maxMs: number
}

/**
 * Milliseconds before the next attempt after `failures` failed attempts (from 0). The delay doubles each time, within the range. The
 * result is between half of it and all of it, so that retries of many clients spread. `random`: between 0 and 1.
 */
export const backoffMs = (failures: number, { firstMs, maxMs }: BackoffRange, random: () => number = Math.random): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, 50)) * (0.5 + random() / 2)
