/** Calls that wait for a slot or a link, in the order in which they came and for a bounded time. */
import type { CancelSignal } from '../../rpc/cancellation.ts'
import { Failure } from '../../wire/message/failure.ts'

/** How long a call waits. */
const MAX_WAIT_MS = 10_000

export class WaitingCalls {
  /** What a waiting call asks for, such as `slot`, and the option that limits it. */
  readonly #thing: string
  readonly #limit: string
  readonly #waiting = new Set<() => boolean>()
  #isAdmitting = false

  constructor(thing: string, limit: string) {
    this.#thing = thing
    this.#limit = limit
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Resolves with what `take` returned when that was not `undefined`. `admit` calls it. */
  wait<T>(signal: CancelSignal, take: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => leave(new Failure('cancelled', 'cancelled while waiting', { executed: 'no' }))
      const timer = setTimeout(
        () => leave(overloaded(`no ${this.#thing} within ${MAX_WAIT_MS} ms (${this.#limit})`, this.#limit)),
        MAX_WAIT_MS,
      )
      const finish = (settle: () => void): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        this.#waiting.delete(enter)
        settle()
      }
      const leave = (failure: unknown): void => finish(() => reject(failure))
      const enter = (): boolean => {
        try {
          const taken = take()
          if (taken === undefined) return false
          finish(() => resolve(taken))
        } catch (error) {
          leave(error)
        }
        return true
      }
      this.#waiting.add(enter)
      signal.addEventListener('abort', onAbort)
    })
  }

  /** Something became free. Each call takes what it waits for, if it can. `areAlike`: where one cannot, none behind it can. */
  admit({ areAlike = false } = {}): void {
    // A call that takes a link may close another one.
    if (this.#isAdmitting || this.#waiting.size === 0) return
    this.#isAdmitting = true
    for (const enter of this.#waiting) if (!enter() && areAlike) break
    this.#isAdmitting = false
  }
}

export const overloaded = (message: string, limit: string): Failure =>
  new Failure('overloaded', message, { executed: 'no', retryable: true, retryAfterMs: 1_000, limit })
