/**
 * The one timer that looks after deadlines. Whatever has a deadline is registered while it has one and is looked at ten times
 * a second on the monotonic clock; a gap of the loop (a suspended machine) counts as no time at all (F-27).
 */

export interface Sweepable {
  /** `nowMs` is monotonic and does not count the time the process was stopped. */
  sweep(nowMs: number): void
}

export interface SweeperOptions {
  readonly failed?: (error: unknown) => void
  readonly periodMs?: number
  readonly clock?: () => number
}

/** Half of what overload begins at (`listen.limits.loop_lag`): those that cause it are slowed down before others are refused. */
const LATE_MS = 100
const REPORT_EVERY_MS = 60_000

export class Sweeper {
  readonly #watched = new Set<Sweepable>()
  readonly #periodMs: number
  readonly #clock: () => number
  readonly #failed: ((error: unknown) => void) | undefined
  #reportedMs = -Infinity
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

  /** The event loop was late at the last sweep: what can wait should. */
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
    // What came or drained while we were stopped is taken up first: nothing may be judged before.
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
    if (this.#now - this.#reportedMs < REPORT_EVERY_MS) return
    this.#reportedMs = this.#now
    this.#failed?.(error)
  }

  [Symbol.dispose](): void {
    this.#watched.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
