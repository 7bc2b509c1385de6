/**
 * Back-off for links that end soon after they were opened: a process that crashes with each call is not started for each call (F-04).
 * Counted by owner, so that crashes of one caller do not delay others.
 */
import { setMaxListeners } from 'node:events'
import type { Link } from '../../era/server/link.ts'
import { pause } from '../../time/pause.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Backoff } from './backoff.ts'
import type { BackoffOptions } from './backoff.ts'
import { isProcessEnd } from './restarts.ts'
import type { Restarts } from './restarts.ts'

interface Failing {
  readonly backoff: Backoff
  /** Earliest time of the next start. */
  nextMs: number
}

export class LinkStarts {
  readonly #options: BackoffOptions
  readonly #nowMs: () => number
  readonly #restarts: Restarts
  readonly #isCrash: (failure: unknown) => boolean
  readonly #records = new Map<string, Failing>()
  readonly #closing = new AbortController()

  /** `isCrash`: a process of the server ended by itself. */
  constructor(options: BackoffOptions, nowMs: () => number, restarts: Restarts, isCrash: (failure: unknown) => boolean) {
    this.#options = options
    this.#nowMs = nowMs
    this.#restarts = restarts
    this.#isCrash = isCrash
    // Each waiting caller adds a listener; Node 22 warns of more than ten.
    setMaxListeners(0, this.#closing.signal)
  }

  /** Opens a link, at once or after the back-off; rejects with `exited` or `overloaded` if that takes longer than `maxWaitMs`. */
  async open(key: string, maxWaitMs: number, open: () => Promise<Link>): Promise<Link> {
    const { waitMs: restartMs } = this.#restarts
    if (restartMs > maxWaitMs) throw this.#restarts.refusal()
    const waitMs = Math.max(restartMs, (this.#records.get(key)?.nextMs ?? 0) - this.#nowMs())
    if (waitMs > maxWaitMs)
      throw new Failure('exited', 'its last processes ended too soon; it is not started again yet', {
        executed: 'no',
        retryable: true,
        retryAfterMs: Math.ceil(waitMs),
      })
    if (waitMs > 0) await pause(waitMs, this.#closing.signal)
    const link = await open().catch((error: unknown) => {
      this.#failed(key, 0, error)
      throw error
    })
    const sinceMs = this.#nowMs()
    void link.closed.then((failure) => {
      if (failure !== undefined) this.#failed(key, this.#nowMs() - sinceMs, failure)
    })
    return link
  }

  /** Ends all waits when the server is stopped; their `open` fails then. */
  close(): void {
    this.#closing.abort()
  }

  #failed(key: string, upMs: number, failure: unknown): void {
    this.#restarts.ended(this.#isCrash(failure))
    const nowMs = this.#nowMs()
    for (const [other, { nextMs }] of this.#records) if (nowMs - nextMs >= this.#options.windowMs) this.#records.delete(other)
    const record = this.#records.get(key) ?? { backoff: new Backoff(this.#options), nextMs: 0 }
    record.nextMs = nowMs + record.backoff.fail(nowMs, { upMs, isCrash: isProcessEnd(failure) }).waitMs
    this.#records.set(key, record)
  }
}
