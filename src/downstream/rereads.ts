/**
 * When lists are read again: after the server announced a change (bursts count once: 100 ms of quiet, at most 1 s), and from
 * time to time where it cannot announce any, with jitter and back-off (BRIDGING 3.7; B129, B157).
 */
import { Subject, debounce, timer } from 'rxjs'
import type { Subscription } from 'rxjs'

const QUIET_MS = 100
const MAX_DELAY_MS = 1_000
const MAX_POLL_MS = 600_000

export class Rereads {
  readonly #read: () => Promise<void>
  readonly #signals$ = new Subject<void>()
  readonly #signals: Subscription
  #firstSignalMs: number | undefined
  #reading: Promise<void> | undefined
  #again = false
  #poll: NodeJS.Timeout | undefined

  constructor(read: () => Promise<void>) {
    this.#read = read
    this.#signals = this.#signals$.pipe(debounce(() => timer(this.#quietMs()))).subscribe(() => {
      this.#firstSignalMs = undefined
      void this.#readOnce()
    })
  }

  request(): void {
    this.#firstSignalMs ??= performance.now()
    this.#signals$.next()
  }

  /** Reads every `periodMs` or so from now on, less often while that fails, and only while it `isNeeded`; `undefined`: never. */
  poll(periodMs: number | undefined, isNeeded = (): boolean => true): void {
    clearTimeout(this.#poll)
    this.#poll = undefined
    if (periodMs !== undefined) this.#pollAfter(periodMs, periodMs, isNeeded)
  }

  /** Reads no more. */
  close(): void {
    this.#signals.unsubscribe()
    this.poll(undefined)
  }

  #pollAfter(waitMs: number, periodMs: number, isNeeded: () => boolean): void {
    const jitteredMs = waitMs * (0.75 + Math.random() / 2)
    const poll = setTimeout(() => {
      const read = isNeeded() ? this.#readOnce() : Promise.resolve(true)
      void read.then((succeeded) => {
        // Meanwhile somebody may have said otherwise.
        if (this.#poll === poll) this.#pollAfter(succeeded ? periodMs : Math.min(waitMs * 2, MAX_POLL_MS), periodMs, isNeeded)
      })
    }, jitteredMs)
    this.#poll = poll.unref()
  }

  #quietMs(): number {
    const waitedMs = performance.now() - (this.#firstSignalMs ?? performance.now())
    return Math.max(0, Math.min(QUIET_MS, MAX_DELAY_MS - waitedMs))
  }

  /** One reading at a time; a request that comes meanwhile causes one more. */
  async #readOnce(): Promise<boolean> {
    if (this.#reading !== undefined) {
      this.#again = true
      return true
    }
    let succeeded = true
    do {
      this.#again = false
      this.#reading = this.#read()
      succeeded = await this.#reading.then(
        () => true,
        () => false,
      )
      this.#reading = undefined
    } while (this.#again)
    return succeeded
  }
}
