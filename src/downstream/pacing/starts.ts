/**
 * Limits processes that start at the same time, since starting costs CPU (F-24). A slot is released when the process has been silent for a
 * second, even if it is still starting: it waits for something else then. A slot never lasts through a handshake, and a start that a call
 * waits for needs no slot.
 */
import type { Sweepable, Sweeper } from '../../rpc/sweeper.ts'

/** Time without output after which a process counts as idle. */
const QUIET_MS = 1_000
/** Longest time of a slot, for processes that print without answering. */
const MAX_HOLD_MS = 5_000

/** A process whose output shows whether it is busy. */
export interface Printing {
  /** Bytes it has written to stdout and stderr so far. */
  readonly outputBytes: number
}

export interface StartSlot {
  /** Releases the slot once this process is idle. */
  watch(process: Printing): void
  /** Idempotent. */
  release(): void
}

interface StartsOptions {
  readonly sweeper: Sweeper
  /** `limits.starts`. */
  readonly max: () => number
  /** Called when a start must wait for a slot. */
  readonly onWait: () => void
}

interface Waiter {
  readonly isWanted: () => boolean
  readonly grant: (slot: StartSlot) => void
}

class Slot implements StartSlot {
  readonly #released: () => void
  readonly #takenMs: number
  #process: Printing | undefined
  #bytes = -1
  #quietSinceMs: number

  constructor(nowMs: number, released: () => void) {
    this.#takenMs = this.#quietSinceMs = nowMs
    this.#released = released
  }

  watch(process: Printing): void {
    this.#process = process
  }

  release(): void {
    this.#released()
  }

  /** Whether the slot can be released. */
  isOver(nowMs: number): boolean {
    if (this.#process === undefined) return false
    const { outputBytes } = this.#process
    if (outputBytes !== this.#bytes) {
      this.#bytes = outputBytes
      this.#quietSinceMs = nowMs
    }
    return nowMs - this.#quietSinceMs >= QUIET_MS || nowMs - this.#takenMs >= MAX_HOLD_MS
  }
}

export class Starts implements Sweepable {
  readonly #options: StartsOptions
  readonly #held = new Set<Slot>()
  readonly #waiting = new Set<Waiter>()

  constructor(options: StartsOptions) {
    this.#options = options
  }

  /** Resolves when a process may be spawned, in order of the calls; at once if `isWanted`. */
  acquire(isWanted: () => boolean): Promise<StartSlot> {
    const mayStart = this.#waiting.size === 0 && this.#held.size < this.#options.max()
    if (mayStart || isWanted()) return Promise.resolve(this.#take())
    this.#options.onWait()
    return new Promise((grant) => this.#waiting.add({ isWanted, grant }))
  }

  /** Grants waiting starts that are wanted now. */
  review(): void {
    for (const waiter of this.#waiting) if (waiter.isWanted()) this.#grant(waiter)
  }

  sweep(nowMs: number): void {
    for (const slot of this.#held) if (slot.isOver(nowMs)) slot.release()
  }

  #grant(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    waiter.grant(this.#take())
  }

  #take(): StartSlot {
    const { sweeper } = this.#options
    const slot: Slot = new Slot(sweeper.nowMs, () => this.#release(slot))
    sweeper.watch(this)
    this.#held.add(slot)
    return slot
  }

  #release(slot: Slot): void {
    if (!this.#held.delete(slot)) return
    if (this.#held.size === 0) this.#options.sweeper.unwatch(this)
    for (const waiter of this.#waiting) {
      if (this.#held.size >= this.#options.max()) return
      this.#grant(waiter)
    }
  }
}
