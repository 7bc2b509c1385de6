/** The pause that an authorization server asks for with `Retry-After`: no token is requested before its end (BRIDGING 5.3). */
import { Unavailable } from './token-endpoint.ts'

/** The longest pause that is kept, as for servers. */
const MAX_PAUSE_MS = 30_000

export class GrantPause {
  #untilMs = -Infinity
  #asked: Unavailable | undefined

  /** Throws `Unavailable` during a pause. */
  check(): void {
    const leftMs = this.#untilMs - performance.now()
    if (leftMs > 0 && this.#asked !== undefined) throw new Unavailable(this.#asked.message, this.#asked.status, Math.ceil(leftMs))
  }

  /** Returns the error of a request for a token with the pause that it begins, if it asks for one. */
  begun(error: unknown): unknown {
    if (!(error instanceof Unavailable) || error.retryAfterMs === undefined) return error
    const pauseMs = Math.min(error.retryAfterMs, MAX_PAUSE_MS)
    this.#untilMs = performance.now() + pauseMs
    this.#asked = error
    return new Unavailable(error.message, error.status, pauseMs)
  }
}
