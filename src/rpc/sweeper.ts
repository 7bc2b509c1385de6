/**
 * The one timer for deadlines. It calls every registered object ten times a second, with a monotonic time. The time during which the
 * process did not run (a suspended machine) is not counted (F-27).
 */
import { Throttle } from '../time/throttle.ts'

export interface Sweepable {
  /** `nowMs`: monotonic milliseconds, without the time during which the process was stopped. */
  sweep(nowMs: number): void
}

export interface SweeperOptions {
  readonly failed?: (error: unknown) => void
  readonly periodMs?: number
  readonly clock?: () => number
}

/** Half of the default of `listen.limits.loop_lag`: servers that cause the lag are slowed down before hosts are refused. */
const LATE_MS = 100
const REPORT_EVERY_MS = 60_000

export class Sweeper {
  readonly #watched = new Set<Sweepable>()
  readonly #periodMs: number
  readonly #clock: () => number
  readonly #failed: ((error: unknown) => void) | undefined
  readonly #reports = new Throttle(REPORT_EVERY_MS, () => this.#now)
  #isLate = false
  #timer: NodeJS.Timeout | undefined
  #now: number
  #last: number

  /** `failed`: called when an object throws, at most once a minute. The other objects are swept all the same. */
  constructor({ failed, periodMs = 100, clock = () => performance.now() }: SweeperOptions = {}) {
    this.#failed = failed
    this.#periodMs = periodMs
    this.#clock = clock
    this.#now = this.#last = clock()
  }

  /** The sweeper's time, in milliseconds. Up to one period old, which is exact enough for deadlines. */
  get nowMs(): number {
    if (this.#timer === undefined) this.#advance()
    return this.#now
  }

  /** Whether the event loop was late at the last sweep. Work that can wait should wait. */
  get isLate(): boolean {
    return this.#isLate
  }

  watch(item: Sweepable): void {
    this.#watched.add(item)
    if (this.#timer !== undefined) return
    this.#advance()
    this.#timer = setInterval(() => this.#sweep(), this.#periodMs)
    this.#timer.unref()
  }

  unwatch(item: Sweepable): void {
    this.#watched.delete(item)
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Returns whether the process had been stopped. */
  #advance(): boolean {
    const clock = this.#clock()
    const gap = clock - this.#last
    const wasStopped = this.#timer !== undefined && gap > 5_000
    this.#last = clock
    this.#isLate = this.#timer !== undefined && !wasStopped && gap > this.#periodMs + LATE_MS
    this.#now += wasStopped ? this.#periodMs : gap
    return wasStopped
  }

  #sweep(): void {
    // After a stop, data that has arrived is handled before any deadline is checked.
    if (this.#advance()) return
    for (const item of this.#watched)
      try {
        item.sweep(this.#now)
      } catch (error) {
        this.#report(error)
      }
  }

  /** An error that left the timer's callback would end the process (F-29). */
  #report(error: unknown): void {
    if (this.#reports.due() !== undefined) this.#failed?.(error)
  }

  [Symbol.dispose](): void {
    this.#watched.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
