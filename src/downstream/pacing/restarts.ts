/** Limits the restarts of one server (`limits.restarts`, F-04), over all callers, except the first process of each. */
import { Failure } from '../../wire/message/failure.ts'

const WINDOW_MS = 60_000

/** Whether the error means the end of a process: it exited, or its pipes were closed. */
export const isProcessEnd = (error: unknown): boolean =>
  error instanceof Failure && (error.kind === 'exited' || error.kind === 'lost')

export class Restarts {
  /** `limits.restarts`. */
  readonly #max: () => number
  readonly #nowMs: () => number
  #endedMs: number[] = []
  #crashes = 0

  constructor(max: () => number, nowMs: () => number) {
    this.#max = max
    this.#nowMs = nowMs
  }

  /** Processes that ended by themselves, since the start. */
  get crashes(): number {
    return this.#crashes
  }

  /** Counts a process that ended by itself (`isCrash`) or did not start. */
  ended(isCrash: boolean): void {
    if (isCrash) this.#crashes++
    const nowMs = this.#nowMs()
    this.#endedMs = [...this.#endedMs.filter((at) => nowMs - at < WINDOW_MS), nowMs]
  }

  /** The failure of a start that is not allowed now. */
  refusal(): Failure {
    return new Failure('overloaded', `limits.restarts (${this.#max()} a minute) reached`, {
      executed: 'no',
      retryable: true,
      retryAfterMs: Math.ceil(this.waitMs),
      limit: 'limits.restarts',
    })
  }

  /** Milliseconds until the next start is allowed. */
  get waitMs(): number {
    const oldest = this.#endedMs.at(-this.#max())
    return oldest === undefined ? 0 : Math.max(0, oldest + WINDOW_MS - this.#nowMs())
  }
}
