/**
 * Searches captured messages for secrets soon after their calls have ended, in short slices: at most 1 % of the time. At a higher rate of
 * calls, messages leave the ring unsearched; a message that is shown is always searched first.
 */
import type { Hide } from './body.ts'
import type { CallRing, Place } from './call-ring.ts'

const PERIOD_MS = 100
const SLICE_MS = 1

export class SecretSearch implements Disposable {
  readonly #ring: CallRing
  readonly #hide: Hide
  #next: Place = 0
  #timer: NodeJS.Timeout | undefined

  constructor(ring: CallRing, hide: Hide) {
    this.#ring = ring
    this.#hide = hide
  }

  /** Schedules a search. */
  wake(): void {
    this.#timer ??= setTimeout(() => this.#slice(), PERIOD_MS).unref()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #slice(): void {
    this.#timer = undefined
    const untilMs = performance.now() + SLICE_MS
    this.#next = Math.max(this.#next, this.#ring.first)
    while (this.#next < this.#ring.next) {
      if (performance.now() >= untilMs) return this.wake()
      for (const message of this.#ring.messagesAt(this.#next++)) message.search(this.#hide)
    }
  }
}
