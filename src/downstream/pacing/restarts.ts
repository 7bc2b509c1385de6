/**
 * Limits the restarts of one server per minute (`limits.restarts`), over all callers (F-04). The first process of a caller is no
 * restart.
 */
import { Failure } from '../../wire/message/failure.ts'

const WINDOW_MS = 60_000

/** How the end of a process shows on its pipes: it exited, or was ended because it was of no use any more. */
export const isProcessEnd = (error: unknown): boolean =>
  error instanceof Failure && (error.kind === 'exited' || error.kind === 'lost')

export class Restarts {
  /** `limits.restarts`. */
  readonly #max: () => number
  readonly #nowMs: () => number
  #endedMs: number[] = []

  constructor(max: () => number, nowMs: () => number) {
    this.#max = max
    this.#nowMs = nowMs
  }

  /** A process has ended by itself, or would not start. */
  ended(): void {
    const nowMs = this.#nowMs()
    this.#endedMs = [...this.#endedMs.filter((at) => nowMs - at < WINDOW_MS), nowMs]
  }

  /** Why none is started now. */
  refusal(): Failure {
    return new Failure('overloaded', `limits.restarts (${this.#max()} a minute) reached`, {
      executed: 'no',
      retryable: true,
      retryAfterMs: Math.ceil(this.waitMs),
      limit: 'limits.restarts',
    })
  }

  /** Milliseconds until one more may be started. */
  get waitMs(): number {
    const oldest = this.#endedMs.at(-this.#max())
    return oldest === undefined ? 0 : Math.max(0, oldest + WINDOW_MS - this.#nowMs())
  }
}
