/**
 * The one timer for deadlines. Objects with a deadline are registered while they have one, and swept ten times a second on the
 * monotonic clock. A gap of the loop (a suspended machine) does not count as time (F-27).
 */
import { Throttle } from '../time/throttle.ts'

export interface Sweepable {
  /** `nowMs` is monotonic and does not count the time the process was stopped. */
  sweep(nowMs: number): void
}

export interface SweeperOptions {
  readonly failed?: (error: unknown) => void
  readonly periodMs?: number
  readonly clock?: () => number
}

/** Half of the default of `listen.limits.loop_lag`: peers that cause the lag are slowed down before hosts are refused. */
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

  /** `failed`: a task threw, at most once a minute; the others were done. */
  constructor({ failed, periodMs = 100, clock = () => performance.now() }: SweeperOptions = {}) {
    this.#failed = failed
    this.#periodMs = periodMs
    this.#clock = clock
    this.#now = this.#last = clock()
  }

  /** The sweeper's time, in milliseconds; fine enough for deadlines only. */
  get nowMs(): number {
    if (this.#timer === undefined) this.#advance()
    return this.#now
  }

  /** The event loop was late at the last sweep: deferrable work should wait. */
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

  /** True if the process had been stopped. */
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
    // After a gap, received and drained data is handled before any deadline is checked.
    if (this.#advance()) return
    for (const item of this.#watched)
      try {
        item.sweep(this.#now)
      } catch (error) {
        this.#report(error)
      }
  }

  /** An error past the timer would end the process (F-29). */
  #report(error: unknown): void {
    if (this.#reports.due() !== undefined) this.#failed?.(error)
  }

  [Symbol.dispose](): void {
    this.#watched.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
