/**
 * When lists are read again: after the server announced a change (bursts count once: 100 ms of quiet, at most 1 s), and from
 * time to time where it cannot announce any, with jitter and back-off (BRIDGING 3.7; B129, B157). After a reading the next announced
 * one waits in proportion to what it costs (B256). A request that needs the lists now does not wait for the quiet (B285).
 */
import { Subject, debounce, timer } from 'rxjs'
import type { Subscription } from 'rxjs'
import type { Inventory } from '../../catalog/inventory.ts'

const QUIET_MS = 100
const MAX_DELAY_MS = 1_000
const MAX_POLL_MS = 600_000

/** What is read in a second at most, by and large: reading lists of this size again and again takes a few hundredths of a core. */
const BYTES_PER_MS = 400

/** How long lists rest after they were read, in milliseconds; what of them was left out was read as well. */
export const restAfter = ({ readBytes = 0 }: Pick<Inventory, 'readBytes'> = {}): number => readBytes / BYTES_PER_MS

/** A reading that takes longer than this is expensive: the next one waits longer in the same proportion. */
const CHEAP_MS = 100

/** Whether lists that were read at `readMs`, in `costMs`, are too old for a host that asks for them (B285). */
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

  /** `restMs`: how long after a reading no announcement causes another one. */
  constructor(read: () => Promise<void>, restMs: () => number = () => 0) {
    this.#read = read
    this.#restMs = restMs
    this.#signals = this.#signals$.pipe(debounce(() => timer(this.#quietMs()))).subscribe(() => {
      // Undefined: `freshen` has read in the meantime.
      if (this.#firstSignalMs === undefined) return
      // Announced at the end of a reading, after which the lists rest.
      if (performance.now() < this.#restUntilMs) this.#signals$.next()
      else void this.#readOnce()
    })
  }

  request(): void {
    this.#firstSignalMs ??= performance.now()
    this.#signals$.next()
  }

  /**
   * Settles once everything announced so far has been read; never rejects. `isOutdated`: the lists are read even if nothing was
   * announced. `undefined`: nothing to wait for, or lists of this cost may not be read again yet.
   */
  freshen(isOutdated: boolean): Promise<unknown> | undefined {
    const isAnnounced = this.#firstSignalMs !== undefined
    if (this.#reading !== undefined) return isAnnounced ? this.#reading.then(() => this.freshen(false)) : this.#reading
    return (isOutdated || isAnnounced) && performance.now() >= this.#restUntilMs ? this.#readOnce() : undefined
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

  /** One reading at a time; a request that comes meanwhile causes one more. */
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
