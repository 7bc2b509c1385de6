/** Captured calls in the order in which they ended, within a number of bytes and an age; the oldest go first. */

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

export class Ring<T extends Kept> {
  readonly #limits: () => RingLimits
  readonly #evicted: (reason: 'bytes' | 'age') => void
  readonly #byId = new Map<number, T>()
  #bytes = 0

  /** `evicted` is called for each call that has to go. */
  constructor(limits: () => RingLimits, evicted: (reason: 'bytes' | 'age') => void = () => undefined) {
    this.#limits = limits
    this.#evicted = evicted
  }

  get size(): number {
    return this.#byId.size
  }
  get bytes(): number {
    return this.#bytes
  }

  add(kept: T): void {
    this.#byId.set(kept.id, kept)
    this.#bytes += kept.size
    const { maxBytes } = this.#limits()
    for (const oldest of this.#byId.values()) {
      if (this.#bytes <= maxBytes) return
      this.#remove(oldest, 'bytes')
    }
  }

  find(id: number): T | undefined {
    return this.#byId.get(id)
  }

  /** Oldest first. */
  values(): IterableIterator<T> {
    return this.#byId.values()
  }

  /** Removes what is too old by now. */
  expire(nowMs: number): void {
    const { maxAgeMs } = this.#limits()
    for (const oldest of this.#byId.values()) {
      if (nowMs - oldest.keptMs < maxAgeMs) return
      this.#remove(oldest, 'age')
    }
  }

  #remove(kept: T, reason: 'bytes' | 'age'): void {
    this.#byId.delete(kept.id)
    this.#bytes -= kept.size
    this.#evicted(reason)
  }
}
