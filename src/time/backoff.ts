/** Exponential back-off with jitter, used by all retries. */

export interface BackoffRange {
  /** The delay before the first retry, in milliseconds. */
  readonly firstMs: number
  /** The longest delay, in milliseconds. */
  readonly maxMs: number
}

/**
 * Returns the milliseconds to wait before retry `failures` (the first is 0). The delay doubles with each failure up to `maxMs`; the
 * result lies between half of it and all of it, so that many clients do not retry at the same time. `random` returns 0 to 1.
 */
export const backoffMs = (failures: number, { firstMs, maxMs }: BackoffRange, random: () => number = Math.random): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, 50)) * (0.5 + random() / 2)
