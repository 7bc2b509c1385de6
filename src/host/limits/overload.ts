/** Detects overload, and sheds new sessions, then new calls; never calls in flight and `/healthz` (F-29, F-30). */
import type { Sweepable } from '../../rpc/sweeper.ts'
import type { Gauges } from './gauges.ts'

/** 0: nothing is shed; 1: new sessions; 2: new sessions and new calls. */
export type Shedding = 0 | 1 | 2

export interface OverloadOptions {
  /** `listen.limits.loop_lag`. */
  readonly maxLoopLagMs: number
}

export interface OverloadEvents {
  /** Called when `shedding` has changed. `reason` names the limit. */
  changed(shedding: Shedding, reason: string): void
  /** Called when the heap has stayed full despite shedding: the process must be restarted. */
  exhausted(reason: string): void
}

const LAG_OPTION = 'listen.limits.loop_lag'
/** Shares in use, 0 to 1. */
const DESCRIPTORS = 0.8
const HEAP = 0.95
const HEAP_FULL = 0.98
/** How long the event loop must be late before sessions are shed, and before calls are shed. */
const LAG_MS = 1_000
const LONG_LAG_MS = 3_000
const EXHAUSTED_MS = 30_000
/** Period of an on-time sweep. */
const PERIOD_MS = 100
/** Period of the gauges, which take a while to read. */
const GAUGE_MS = 1_000

export class Overload implements Sweepable {
  readonly #options: () => OverloadOptions
  readonly #gauges: Gauges
  readonly #events: OverloadEvents
  readonly #clock: () => number
  #lastMs: number
  #lateSinceMs = Infinity
  #gaugedMs = -Infinity
  #descriptors = 0
  #heap = 0
  #fullSinceMs = Infinity
  #shedding: Shedding = 0
  #reason = ''
  #limit: string | undefined

  constructor(
    options: () => OverloadOptions,
    gauges: Gauges,
    events: OverloadEvents,
    clock: () => number = () => performance.now(),
  ) {
    this.#options = options
    this.#gauges = gauges
    this.#events = events
    this.#clock = clock
    this.#lastMs = clock()
  }

  get shedding(): Shedding {
    return this.#shedding
  }
  /** Describes the limit that is near; empty: none. */
  get reason(): string {
    return this.#reason
  }

  /** The option that sets this limit; `undefined`: no option does. */
  get limit(): string | undefined {
    return this.#limit
  }

  sweep(): void {
    const nowMs = this.#clock()
    this.#measureLag(nowMs)
    if (nowMs - this.#gaugedMs >= GAUGE_MS) this.#measureResources(nowMs)
    const [shedding, reason, limit] = this.#judge(nowMs)
    this.#reason = reason
    this.#limit = limit
    if (shedding !== this.#shedding) this.#events.changed((this.#shedding = shedding), reason)
  }

  #measureLag(nowMs: number): void {
    const lateMs = nowMs - this.#lastMs - PERIOD_MS
    if (lateMs < this.#options().maxLoopLagMs) this.#lateSinceMs = Infinity
    // A larger gap means that the process was stopped (F-27).
    else if (lateMs < 5_000) this.#lateSinceMs = Math.min(this.#lateSinceMs, nowMs)
    this.#lastMs = nowMs
  }

  #measureResources(nowMs: number): void {
    this.#gaugedMs = nowMs
    this.#descriptors = this.#gauges.descriptors()
    this.#heap = this.#gauges.heap()
    this.#fullSinceMs = this.#heap >= HEAP_FULL ? Math.min(this.#fullSinceMs, nowMs) : Infinity
    if (nowMs - this.#fullSinceMs >= EXHAUSTED_MS) this.#events.exhausted(this.#heapReason)
  }

  #judge(nowMs: number): readonly [shedding: Shedding, reason: string, limit?: string] {
    const lateMs = nowMs - this.#lateSinceMs
    if (this.#heap >= HEAP_FULL) return [2, this.#heapReason]
    if (lateMs >= LONG_LAG_MS) return [2, this.#lagReason, LAG_OPTION]
    if (this.#heap >= HEAP) return [1, this.#heapReason]
    if (this.#descriptors >= DESCRIPTORS)
      return [1, `${percent(this.#descriptors)} of the file descriptors are in use (ulimit -n)`]
    return lateMs >= LAG_MS ? [1, this.#lagReason, LAG_OPTION] : [0, '']
  }

  get #heapReason(): string {
    return `the heap is ${percent(this.#heap)} full`
  }
  get #lagReason(): string {
    return `the event loop is late (${LAG_OPTION}, ${this.#options().maxLoopLagMs} ms)`
  }
}

const percent = (part: number): string => `${Math.round(part * 100)} %`
