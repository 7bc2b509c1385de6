/**
 * Keeps the order that a pipe has by itself and separate POSTs have not: nothing overtakes the first message without an id,
 * which is `notifications/initialized`. Everything else may run side by side.
 */

/** How long messages wait behind `notifications/initialized` when the server does not take it. */
export const DEFAULT_GATE_MS = 5_000

export class SendGate {
  readonly #maxWaitMs: number
  readonly #waiting: (() => void)[] = []
  #state: 'fresh' | 'shut' | 'open' = 'fresh'
  #timer: NodeJS.Timeout | undefined

  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs
  }

  /** Calls `start` now, or once the gate opens. */
  pass(hasId: boolean, start: () => void): void {
    if (this.#state === 'shut') {
      this.#waiting.push(start)
      return
    }
    if (this.#state === 'fresh' && !hasId) {
      this.#state = 'shut'
      this.#timer = setTimeout(() => this.open(), this.#maxWaitMs)
    }
    start()
  }

  /** A message without an id was taken, or failed. */
  open(): void {
    if (this.#state !== 'shut') return
    this.#state = 'open'
    clearTimeout(this.#timer)
    for (const start of this.#waiting.splice(0)) start()
  }

  /** Forgets what waits. */
  close(): void {
    this.#waiting.length = 0
    clearTimeout(this.#timer)
  }
}
