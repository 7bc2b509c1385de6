/** The clocks by which tokens are verified. */
export interface Clock {
  /** Wall clock in milliseconds, for the times in tokens. */
  readonly wallMs: () => number
  /** Monotonic, in milliseconds, for the age of fetched documents. */
  readonly monotonicMs: () => number
}

export const SYSTEM_CLOCK: Clock = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }
