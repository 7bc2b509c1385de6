/**
 * When to try a lost server again: after 0.5 s doubling to 30 s, with jitter, for ever; the waits begin again after a minute of
 * health. Only a process that crashes again and again is given up for longer: five crashes within two minutes, and it is started
 * once in five minutes (RELIABILITY F-04).
 */

import { backoffMs } from '../../time/backoff.ts'

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** This many crashes within `windowMs` are too many. */
  readonly maxCrashes: number
  readonly windowMs: number
  readonly crashLoopMs: number
  readonly resetAfterMs: number
  /** Attempts that calls and lists bring forward are this far apart; a link that lasted for less was no health. */
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
export interface Setback {
  /** Milliseconds of health that it ended; 0 for an attempt that failed. */
  readonly upMs: number
  /** A process of ours ended by itself. */
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

  /** How long to wait after a setback at `nowMs`, and whether the process crashes too often to be started before. */
  fail(nowMs: number, { upMs, isCrash }: Setback): { waitMs: number; isCrashLoop: boolean } {
    const { firstMs, maxMs, maxCrashes, windowMs, crashLoopMs, resetAfterMs } = this.#options
    if (upMs >= resetAfterMs) {
      this.#attempt = 0
      this.#crashedAtMs = []
      this.#isCrashLoop = false
    }
    if (isCrash) this.#crashedAtMs = [...this.#crashedAtMs.filter((at) => nowMs - at < windowMs), nowMs]
    // The pauses of a crash loop must not be taken for better days: only health ends it.
    this.#isCrashLoop ||= this.#crashedAtMs.length >= maxCrashes
    return {
      waitMs: this.#isCrashLoop ? crashLoopMs : backoffMs(this.#attempt++, { firstMs, maxMs }, this.#random),
      isCrashLoop: this.#isCrashLoop,
    }
  }
}
