/** Waits that double: the one rule by which anything here is tried again. */

export interface BackoffRange {
  /** The wait before the first new attempt, in milliseconds. */
  readonly firstMs: number
  /** No wait is longer. */
  readonly maxMs: number
}

/**
 * Milliseconds before the next attempt, after `failures` attempts (from 0) that failed: doubled each time, within the range, of which
 * between the half and the whole is waited, so that many do not try in step. `random`: between 0 and 1.
 */
export const backoffMs = (failures: number, { firstMs, maxMs }: BackoffRange, random: () => number = Math.random): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, 50)) * (0.5 + random() / 2)
