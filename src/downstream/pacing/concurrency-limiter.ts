/** Limits concurrent calls to one server; a bounded number waits for a bounded time. Below the limit it only counts. */
import type { CancelSignal } from '../../rpc/cancellation.ts'
import { Failure } from '../../wire/message/failure.ts'

interface Waiter {
  enter(): void
}

/** How long a call waits for a free slot. */
const MAX_WAIT_MS = 10_000

export class ConcurrencyLimiter {
  #maxConcurrent: number
  #maxQueued: number
  readonly #waiting = new Set<Waiter>()
  #taken = 0

  constructor(maxConcurrent: number, maxQueued: number) {
    this.#maxConcurrent = maxConcurrent
    this.#maxQueued = maxQueued
  }

  /** Changes the limits for further calls. */
  resize(maxConcurrent: number, maxQueued: number): void {
    this.#maxConcurrent = maxConcurrent
    this.#maxQueued = maxQueued
    for (const waiter of this.#waiting) {
      if (this.#taken >= maxConcurrent) return
      this.#taken++
      this.#waiting.delete(waiter)
      waiter.enter()
    }
  }

  get inUse(): number {
    return this.#taken
  }

  /** Calls that wait for a slot. */
  get queued(): number {
    return this.#waiting.size
  }

  /** Takes a slot: at once (`undefined`), or when the promise resolves. Throws `overloaded` if too many calls wait. */
  acquire(signal: CancelSignal): Promise<void> | undefined {
    if (this.#taken < this.#maxConcurrent) {
      this.#taken++
      return undefined
    }
    if (this.#waiting.size >= this.#maxQueued)
      throw overloaded(
        `limits.concurrency (${this.#maxConcurrent}) and limits.queue (${this.#maxQueued}) reached`,
        'limits.queue',
      )
    return this.#wait(signal)
  }

  release(): void {
    const [next] = this.#waiting
    // After a reload with a lower limit, waiting calls stay until enough others have ended.
    if (next === undefined || this.#taken > this.#maxConcurrent) this.#taken--
    else {
      this.#waiting.delete(next)
      next.enter()
    }
  }

  #wait(signal: CancelSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (failure: Failure): void => {
        this.#waiting.delete(waiter)
        finish(() => reject(failure))
      }
      const onAbort = (): void => leave(new Failure('cancelled', 'cancelled while waiting', { executed: 'no' }))
      const timer = setTimeout(
        () => leave(overloaded(`no slot within ${MAX_WAIT_MS} ms (limits.concurrency)`, 'limits.concurrency')),
        MAX_WAIT_MS,
      )
      const finish = (settle: () => void): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        settle()
      }
      const waiter: Waiter = { enter: () => finish(resolve) }
      this.#waiting.add(waiter)
      signal.addEventListener('abort', onAbort)
    })
  }
}

const overloaded = (message: string, limit: string): Failure =>
  new Failure('overloaded', message, { executed: 'no', retryable: true, retryAfterMs: 1_000, limit })
