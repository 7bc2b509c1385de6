/**
 * Simulated time: timers, immediates, `performance.now` and `Date`, which stand still while code runs and jump to the next timer once nothing is
 * left to do. Promises and `process.nextTick` are Node's own. Each node has a clock of its own, which may be off and run fast or slow (`node.ts`).
 *
 * The surprise: an immediate costs a hundredth of a millisecond, so that a loop that waits for a time by immediates ends.
 */

import { currentNode, runAt } from './node.ts'
import type { SimulatedNode } from './node.ts'

/** Wall clock at the beginning: 2026-08-01. */
const EPOCH_MS = Date.UTC(2026, 7, 1)
const IMMEDIATE_MS = 0.01
const LONGEST_MS = 2 ** 31 - 1

const NOTHING = (): void => undefined

const real = {
  setImmediate: globalThis.setImmediate,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  clearImmediate: globalThis.clearImmediate,
  Date: globalThis.Date,
  now: performance.now.bind(performance),
  timeout: AbortSignal.timeout.bind(AbortSignal),
}

/** Steps in a turn of Node's event loop. Between its immediates Node runs all promises and ticks that are ready; a turn asks the system for events. */
const STEPS_PER_TURN = 200
const READY = Promise.resolve()

/** Milliseconds of real time. */
export const realNowMs = real.now

export class SimulatedTimer {
  readonly #clock: SimulatedClock
  run: () => void
  readonly order: number
  readonly everyMs: number | undefined
  /** Who made it, for the report of one that is left over. */
  readonly origin: string
  /** The process whose timer it is. */
  readonly node: SimulatedNode | undefined
  dueMs: number
  delayMs: number
  isOpen = true
  #isRef = true

  constructor(
    clock: SimulatedClock,
    run: () => void,
    delayMs: number,
    order: number,
    isRepeated: boolean,
    origin: string,
    node: SimulatedNode | undefined,
  ) {
    this.#clock = clock
    this.run = run
    this.order = order
    this.delayMs = delayMs
    this.everyMs = isRepeated ? delayMs : undefined
    this.dueMs = clock.nowMs + delayMs
    this.origin = origin
    this.node = node
  }

  ref(): this {
    this.#isRef = true
    return this
  }
  unref(): this {
    this.#isRef = false
    return this
  }
  hasRef(): boolean {
    return this.#isRef
  }
  refresh(): this {
    this.#clock.again(this)
    return this
  }
  close(): this {
    this.#clock.clear(this)
    return this
  }
  [Symbol.toPrimitive](): number {
    return this.order
  }
  [Symbol.dispose](): void {
    this.close()
  }
}

export class SimulatedClock {
  #nowMs = 0
  #order = 0
  /** A heap by due time, then by order. */
  readonly #heap: { readonly dueMs: number; readonly order: number; readonly timer: SimulatedTimer }[] = []
  #immediates: { run: () => void; isOpen: boolean; readonly node: SimulatedNode | undefined }[] = []
  readonly #open = new Set<SimulatedTimer>()
  /** What a timer threw, in order. */
  readonly errors: unknown[] = []
  /** Whether the stack of whoever makes a timer is kept: slow, for one seed. */
  isTracing = false

  get nowMs(): number {
    return this.#nowMs
  }
  /** What `performance.now` says to the process that runs. */
  get localMs(): number {
    return this.#nowMs * (currentNode()?.rate ?? 1)
  }
  /** What `Date.now` says to it. */
  get wallMs(): number {
    return EPOCH_MS + Math.floor(this.localMs + (currentNode()?.offsetMs ?? 0))
  }
  /** Timers that have not run and were not cleared; those of the simulation itself and of killed processes are not among them. */
  get open(): readonly SimulatedTimer[] {
    return [...this.#open].filter(({ origin, node }) => origin !== 'world' && node?.isDead !== true)
  }

  /** A timer of the simulation itself; `node`: the process that it wakes. */
  after(ms: number, run: () => void, node?: SimulatedNode): SimulatedTimer {
    return this.#add(run, ms, false, 'world', node)
  }

  timer(run: () => void, ms: number | undefined, isRepeated: boolean): SimulatedTimer {
    const delayMs = ms === undefined || !(ms >= 1) || ms > LONGEST_MS ? 1 : Math.trunc(ms)
    const node = currentNode()
    const origin = this.isTracing ? (new Error('timer').stack ?? '') : ''
    return this.#add(run, delayMs / (node?.rate ?? 1), isRepeated, origin, node)
  }

  immediate(run: () => void): { isOpen: boolean } {
    const entry = { run, isOpen: true, node: currentNode() }
    this.#immediates.push(entry)
    return entry
  }

  /** The heap keeps a cleared timer until it would be due, and must not keep what it refers to. */
  clear(timer: SimulatedTimer): void {
    this.#close(timer)
    timer.run = NOTHING
  }

  #close(timer: SimulatedTimer): void {
    timer.isOpen = false
    this.#open.delete(timer)
  }

  again(timer: SimulatedTimer): void {
    timer.dueMs = this.#nowMs + timer.delayMs
    timer.isOpen = true
    this.#open.add(timer)
    this.#push(timer)
  }

  /** Lets `ms` pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await this.#advance(endMs, () => false)
    this.#nowMs = endMs
  }

  /** Lets time pass until `work` has settled; rejects when it has not within `withinMs`. */
  async drive<T>(work: Promise<T>, withinMs: number, what: string): Promise<T> {
    const endMs = this.#nowMs + withinMs
    const state = { isOver: false }
    const over = (): void => {
      state.isOver = true
    }
    work.then(over, over)
    await this.#advance(endMs, () => state.isOver)
    if (!state.isOver) throw new Error(`${what} has not ended after ${withinMs} ms`)
    return work
  }

  /** Puts this clock in the place of Node's; returns how to take it away. */
  install(): () => void {
    const isTimer = (timer: unknown): timer is SimulatedTimer => timer instanceof SimulatedTimer
    const clear = (timer: unknown): void => {
      if (isTimer(timer)) this.clear(timer)
      else real.clearTimeout(timer as NodeJS.Timeout)
    }
    const set =
      (isRepeated: boolean) =>
      (run: (...values: unknown[]) => void, ms?: number, ...values: unknown[]): SimulatedTimer =>
        this.timer(() => run(...values), ms, isRepeated)
    const now = (): number => this.wallMs
    class SimulatedDate extends real.Date {
      constructor(...parts: [] | [number]) {
        if (parts.length === 0) super(now())
        else super(...parts)
      }
      static override now(): number {
        return now()
      }
    }
    Object.assign(globalThis, {
      setTimeout: set(false),
      setInterval: set(true),
      setImmediate: (run: (...values: unknown[]) => void, ...values: unknown[]) => this.immediate(() => run(...values)),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: (entry: { isOpen: boolean } | undefined) => {
        if (entry !== undefined) entry.isOpen = false
      },
      Date: SimulatedDate,
    })
    performance.now = () => this.localMs
    AbortSignal.timeout = (ms) => {
      const controller = new AbortController()
      const abort = (): void => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
      this.after(ms, abort, currentNode())
      return controller.signal
    }
    return () => {
      const { now, timeout, ...globals } = real
      Object.assign(globalThis, globals)
      performance.now = now
      AbortSignal.timeout = timeout
    }
  }

  #add(run: () => void, delayMs: number, isRepeated: boolean, origin: string, node?: SimulatedNode): SimulatedTimer {
    const timer = new SimulatedTimer(this, run, delayMs, this.#order++, isRepeated, origin, node)
    this.#open.add(timer)
    this.#push(timer)
    return timer
  }

  /** Runs what is due by `endMs`, each thing with all that follows from it, until nothing is left or `isOver`. */
  #advance(endMs: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      let isEnded = false
      const step = (): void => {
        if (isEnded || (!isOver() && this.#step(endMs))) return
        isEnded = true
        resolve()
      }
      // From a promise: stored plans depend on promises running before ticks.
      const begin = (): void => void READY.then(step)
      const turn = (): void => {
        for (let steps = 0; steps < STEPS_PER_TURN; steps++) real.setImmediate(begin)
        real.setImmediate(() => isEnded || turn())
      }
      turn()
    })
  }

  /** Runs the next thing that is due by `endMs`; false: there is none. */
  #step(endMs: number): boolean {
    const immediate = this.#immediates.shift()
    if (immediate !== undefined) {
      const { node } = immediate
      if (!immediate.isOpen || node?.isDead === true) return true
      if (node !== undefined && node.pausedUntilMs > this.#nowMs) {
        this.after(node.pausedUntilMs - this.#nowMs, () => immediate.isOpen && immediate.run(), node)
        return true
      }
      this.#nowMs += IMMEDIATE_MS
      this.#run(immediate.run, node)
    } else {
      const first = this.#heap[0]
      if (first === undefined || first.dueMs > endMs) return false
      this.#pop()
      const { timer, dueMs } = first
      if (!timer.isOpen || timer.dueMs !== dueMs) return true
      this.#nowMs = Math.max(this.#nowMs, dueMs)
      const { node } = timer
      if (node?.isDead === true) {
        this.clear(timer)
        return true
      }
      if (node !== undefined && node.pausedUntilMs > this.#nowMs) {
        timer.dueMs = node.pausedUntilMs
        this.#push(timer)
        return true
      }
      if (timer.everyMs === undefined) this.#close(timer)
      else {
        timer.dueMs = this.#nowMs + timer.everyMs
        this.#push(timer)
      }
      this.#run(timer.run, node)
    }
    return true
  }

  #run(run: () => void, node: SimulatedNode | undefined): void {
    try {
      runAt(node, run)
    } catch (error) {
      this.errors.push(error)
    }
  }

  #push(timer: SimulatedTimer): void {
    const heap = this.#heap
    const entry = { dueMs: timer.dueMs, order: this.#order++, timer }
    let at = heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(entry, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

const isBefore = (a: { dueMs: number; order: number }, b: { dueMs: number; order: number }): boolean =>
  a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)
