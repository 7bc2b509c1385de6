/**
 * Bounds how many processes are starting at the same time: starting costs CPU, and nothing else is bounded here (F-24). The surprise:
 * a slot is given back while the process may still be starting, because one that has been silent for a second waits for something
 * else. A slot never lasts through a handshake, and a start that a call waits for needs none.
 */
import type { Sweepable, Sweeper } from '../../rpc/sweeper.ts'

/** So long without output, and the process counts as idle. */
const QUIET_MS = 1_000
/** A process that goes on printing without ever answering does not keep others away. */
const MAX_HOLD_MS = 5_000

/** What says whether a process is busy. */
export interface Printing {
  /** Bytes it has written to stdout and stderr so far. */
  readonly outputBytes: number
}

export interface StartSlot {
  /** From now on silence of this process gives the slot back. */
  watch(process: Printing): void
  /** Gives the slot back; harmless if it was given back before. */
  release(): void
}

export interface StartsOptions {
  readonly sweeper: Sweeper
  /** `limits.starts`. */
  readonly max: () => number
  /** A start has to wait for a slot. */
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

  /** Whether the process needs its slot no more. */
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

  /** Resolves when a process may be spawned, in the order of asking; at once for a start that `isWanted`. */
  acquire(isWanted: () => boolean): Promise<StartSlot> {
    const mayStart = this.#waiting.size === 0 && this.#held.size < this.#options.max()
    if (mayStart || isWanted()) return Promise.resolve(this.#take())
    this.#options.onWait()
    return new Promise((grant) => this.#waiting.add({ isWanted, grant }))
  }

  /** Some of the waiting starts may be wanted now. */
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
    if (this.#held.size === 0) sweeper.watch(this)
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
