/**
 * Delays between attempts to connect to a server: 0.5 s doubling to 30 s, with jitter, without end; reset after a minute of health. After
 * five crashes within two minutes a process is started once in five minutes (RELIABILITY F-04).
 */

import { backoffMs } from '../../time/backoff.ts'

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** Crashes within `windowMs` that make a crash loop. */
  readonly maxCrashes: number
  readonly windowMs: number
  readonly crashLoopMs: number
  readonly resetAfterMs: number
  /** Minimum time between attempts started by calls and lists; a shorter link does not count as health. */
  readonly minRetryMs: number
}

export const DEFAULT_BACKOFF: BackoffOptions = {
  firstMs: 500,
  maxMs: 30_000,
  maxCrashes: 5,
  windowMs: 120_000,
  crashLoopMs: 300_000,
  resetAfterMs: 60_000,
  minRetryMs: 2_000,
}

/** A failed attempt, or the loss of a link. */
interface Setback {
  /** Duration of the lost link; 0 for a failed attempt. */
  readonly upMs: number
  /** A process started by Trunkline ended by itself. */
  readonly isCrash: boolean
}

export class Backoff {
  readonly #options: BackoffOptions
  readonly #random: () => number
  #attempt = 0
  #crashedAtMs: number[] = []
  #isCrashLoop = false

  constructor(options: BackoffOptions = DEFAULT_BACKOFF, random: () => number = Math.random) {
    this.#options = options
    this.#random = random
  }

  /** The delay after a setback at `nowMs`, and whether the process is in a crash loop. */
  fail(nowMs: number, { upMs, isCrash }: Setback): { waitMs: number; isCrashLoop: boolean } {
    const { firstMs, maxMs, maxCrashes, windowMs, crashLoopMs, resetAfterMs } = this.#options
    if (upMs >= resetAfterMs) {
      this.#attempt = 0
      this.#crashedAtMs = []
      this.#isCrashLoop = false
    }
    if (isCrash) this.#crashedAtMs = [...this.#crashedAtMs.filter((at) => nowMs - at < windowMs), nowMs]
    // Only health ends a crash loop, not its long pauses.
    this.#isCrashLoop ||= this.#crashedAtMs.length >= maxCrashes
    return {
      waitMs: this.#isCrashLoop ? crashLoopMs : backoffMs(this.#attempt++, { firstMs, maxMs }, this.#random),
      isCrashLoop: this.#isCrashLoop,
    }
  }
}
