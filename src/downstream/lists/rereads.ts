/**
 * Decides when lists are read again: after announced changes (bursts count once: 100 ms of quiet, at most 1 s), and periodically with
 * jitter and back-off if the server cannot announce changes (BRIDGING 3.7; B129, B157). After a reading, the next announced one waits in
 * proportion to its cost (B256). A list request does not wait for the quiet (B285).
 */
import { Subject, debounce, timer } from 'rxjs'
import type { Subscription } from 'rxjs'
import type { Inventory } from '../../catalog/inventory.ts'

const QUIET_MS = 100
const MAX_DELAY_MS = 1_000
const MAX_POLL_MS = 600_000

/** Average rate of repeated readings, which takes a few per cent of a core. */
const BYTES_PER_MS = 400

/** Minimum time in milliseconds between a reading of this size and the next announced one. */
export const restAfter = ({ readBytes = 0 }: Pick<Inventory, 'readBytes'> = {}): number => readBytes / BYTES_PER_MS

/** A reading that takes longer than this is expensive: the next one waits longer in the same proportion. */
const CHEAP_MS = 100

/** Whether lists that were read at `readMs`, in `costMs`, are too old for a list request (B285). */
export const isWorthReading = (last: { readonly readMs: number; readonly costMs: number }, freshMs: number): boolean =>
  performance.now() - last.readMs >= freshMs * Math.max(1, last.costMs / CHEAP_MS)

export class Rereads {
  readonly #read: () => Promise<void>
  readonly #restMs: () => number
  #restUntilMs = -Infinity
  readonly #signals$ = new Subject<void>()
  readonly #signals: Subscription
  #firstSignalMs: number | undefined
  #reading: Promise<boolean> | undefined
  #again = false
  #poll: NodeJS.Timeout | undefined

  /** `restMs`: time after a reading in which announced changes wait. */
  constructor(read: () => Promise<void>, restMs: () => number = () => 0) {
    this.#read = read
    this.#restMs = restMs
    this.#signals = this.#signals$.pipe(debounce(() => timer(this.#quietMs()))).subscribe(() => {
      // Undefined: `freshen` has read meanwhile.
      if (this.#firstSignalMs === undefined) return
      // Announced at the end of a reading: waits for the rest.
      if (performance.now() < this.#restUntilMs) this.#signals$.next()
      else void this.#readOnce()
    })
  }

  request(): void {
    this.#firstSignalMs ??= performance.now()
    this.#signals$.next()
  }

  /**
   * Settles once all changes announced so far have been read; never rejects. `isOutdated`: reads the lists even without an announced
   * change. `undefined`: nothing to wait for, or the next reading is not allowed yet.
   */
  freshen(isOutdated: boolean): Promise<unknown> | undefined {
    const isAnnounced = this.#firstSignalMs !== undefined
    if (this.#reading !== undefined) return isAnnounced ? this.#reading.then(() => this.freshen(false)) : this.#reading
    return (isOutdated || isAnnounced) && performance.now() >= this.#restUntilMs ? this.#readOnce() : undefined
  }

  /** Reads about every `periodMs` while `isNeeded`, less often after failures; `undefined`: stops polling. */
  poll(periodMs: number | undefined, isNeeded = (): boolean => true): void {
    clearTimeout(this.#poll)
    this.#poll = undefined
    if (periodMs !== undefined) this.#pollAfter(periodMs, periodMs, isNeeded)
  }

  close(): void {
    this.#signals.unsubscribe()
    this.poll(undefined)
  }

  #pollAfter(waitMs: number, periodMs: number, isNeeded: () => boolean): void {
    const jitteredMs = waitMs * (0.75 + Math.random() / 2)
    const poll = setTimeout(() => {
      const read = isNeeded() ? this.#readOnce() : Promise.resolve(true)
      void read.then((succeeded) => {
        // `poll` may have been called meanwhile.
        if (this.#poll === poll) this.#pollAfter(succeeded ? periodMs : Math.min(waitMs * 2, MAX_POLL_MS), periodMs, isNeeded)
      })
    }, jitteredMs)
    this.#poll = poll.unref()
  }

  #quietMs(): number {
    const nowMs = performance.now()
    const waitedMs = nowMs - (this.#firstSignalMs ?? nowMs)
    return Math.max(0, Math.min(QUIET_MS, MAX_DELAY_MS - waitedMs), this.#restUntilMs - nowMs)
  }

  /** One reading at a time; a request during a reading causes one more. */
  async #readOnce(): Promise<boolean> {
    if (this.#reading !== undefined) {
      this.#again = true
      return true
    }
    this.#firstSignalMs = undefined
    this.#reading = this.#read().then(
      () => true,
      () => false,
    )
    const succeeded = await this.#reading
    this.#reading = undefined
    this.#restUntilMs = performance.now() + this.#restMs()
    if (this.#again) {
      this.#again = false
      this.request()
    }
    return succeeded
  }
}
