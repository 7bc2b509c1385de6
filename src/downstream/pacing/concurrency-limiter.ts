/** Limits concurrent calls to one server; a bounded number waits for a bounded time. Below the limit it only counts. */
import type { CancelSignal } from '../../rpc/cancellation.ts'
import { overloaded, WaitingCalls } from './waiting-calls.ts'

export class ConcurrencyLimiter {
  #maxConcurrent: number
  #maxQueued: number
  readonly #waiting = new WaitingCalls('slot', 'limits.concurrency')
  #taken = 0

  constructor(maxConcurrent: number, maxQueued: number) {
    this.#maxConcurrent = maxConcurrent
    this.#maxQueued = maxQueued
  }

  /** Changes the limits for further calls. */
  resize(maxConcurrent: number, maxQueued: number): void {
    this.#maxConcurrent = maxConcurrent
    this.#maxQueued = maxQueued
    this.#waiting.admit({ areAlike: true })
  }

  get inUse(): number {
    return this.#taken
  }

  /** Calls that wait for a slot. */
  get queued(): number {
    return this.#waiting.size
  }

  /** Takes a slot: at once (`undefined`), or when the promise resolves. Throws `overloaded` if too many calls wait. */
  acquire(signal: CancelSignal): Promise<unknown> | undefined {
    if (this.#take()) return undefined
    if (this.#waiting.size >= this.#maxQueued)
      throw overloaded(
        `limits.concurrency (${this.#maxConcurrent}) and limits.queue (${this.#maxQueued}) reached`,
        'limits.queue',
      )
    return this.#waiting.wait(signal, this.#take)
  }

  release(): void {
    this.#taken--
    this.#waiting.admit({ areAlike: true })
  }

  /** After a reload with a lower limit, waiting calls stay until enough others have ended. */
  readonly #take = (): true | undefined => {
    if (this.#taken >= this.#maxConcurrent) return undefined
    this.#taken++
    return true
  }
}
