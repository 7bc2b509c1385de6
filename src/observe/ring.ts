/**
 * Captured calls in the order in which they ended, within a number of bytes and an age; the oldest go first. An array with a beginning
 * that moves, in place of a `Map`: to begin with the oldest entry of a `Map` is to walk over all that were removed before it, with every call.
 */

export interface Kept {
  readonly id: number
  /** Memory that it takes, about. */
  readonly size: number
  /** Monotonic, when it was put in. */
  readonly keptMs: number
}

export interface RingLimits {
  readonly maxBytes: number
  readonly maxAgeMs: number
}

/** Places at the beginning that are free before the rest moves up. */
const MAX_FREE = 1_024

export class Ring<T extends Kept> {
  readonly #limits: () => RingLimits
  readonly #evicted: (reason: 'bytes' | 'age') => void
  #items: (T | undefined)[] = []
  #first = 0
  #bytes = 0

  /** `evicted` is called for each call that has to go. */
  constructor(limits: () => RingLimits, evicted: (reason: 'bytes' | 'age') => void = () => undefined) {
    this.#limits = limits
    this.#evicted = evicted
  }

  get size(): number {
    return this.#items.length - this.#first
  }
  get bytes(): number {
    return this.#bytes
  }

  add(kept: T): void {
    this.#items.push(kept)
    this.#bytes += kept.size
    const { maxBytes } = this.#limits()
    while (this.#bytes > maxBytes) this.#removeFirst('bytes')
  }

  find(id: number): T | undefined {
    return this.values().find((kept) => kept.id === id)
  }

  /** Oldest first. */
  values(): readonly T[] {
    return this.#items.slice(this.#first) as T[]
  }

  /** Removes what is too old by now. */
  expire(nowMs: number): void {
    const { maxAgeMs } = this.#limits()
    for (let oldest = this.#items[this.#first]; oldest !== undefined; oldest = this.#items[this.#first]) {
      if (nowMs - oldest.keptMs < maxAgeMs) return
      this.#removeFirst('age')
    }
  }

  #removeFirst(reason: 'bytes' | 'age'): void {
    this.#bytes -= this.#items[this.#first]?.size ?? 0
    this.#items[this.#first++] = undefined
    if (this.#first >= MAX_FREE && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first)
      this.#first = 0
    }
    this.#evicted(reason)
  }
}
