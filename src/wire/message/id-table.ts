/**
 * A map from integer ids to values, in place of a `Map` for entries that are added and removed with every call.
 *
 * A long-lived `Map` with many changes keeps deleted entries alive: V8 replaces its table every few insertions, each table refers to
 * its successor, and once one of them is in the old generation all of them stay until the next full collection. Here a table is
 * replaced only when it grows. Open addressing with linear probing; a deletion closes the gap.
 *
 * Gain: an entry costs 0.14 µs in place of 0.19; the effect on garbage collection was not measured alone (bench/notes.md).
 */
const NONE = -1
/** One free slot, which tables share until their first entry: many never have one. Nothing writes to it. */
const NO_IDS: number[] = [NONE]
const NO_VALUES: undefined[] = [undefined]
const FEWEST = 4

export class IdTable<T> {
  #ids = NO_IDS
  #values: (T | undefined)[] = NO_VALUES
  #size = 0

  get size(): number {
    return this.#size
  }

  /** `id`: an integer from 0 on. */
  get(id: number): T | undefined {
    return this.#values[this.#find(id)]
  }

  set(id: number, value: T): void {
    let at = this.#find(id)
    if (this.#ids[at] !== id) {
      if (++this.#size * 2 > this.#ids.length) {
        this.#grow()
        at = this.#find(id)
      }
      this.#ids[at] = id
    }
    this.#values[at] = value
  }

  /** Removes the entry and returns its value. */
  delete(id: number): T | undefined {
    let gap = this.#find(id)
    if (this.#ids[gap] !== id) return undefined
    const value = this.#values[gap]
    const mask = this.#ids.length - 1
    for (let at = (gap + 1) & mask; this.#ids[at] !== NONE; at = (at + 1) & mask) {
      // An entry may fill the gap unless its home slot lies behind the gap.
      const home = (this.#ids[at] ?? 0) & mask
      if (((at - home) & mask) < ((at - gap) & mask)) continue
      this.#ids[gap] = this.#ids[at] ?? NONE
      this.#values[gap] = this.#values[at]
      gap = at
    }
    this.#ids[gap] = NONE
    this.#values[gap] = undefined
    this.#size--
    return value
  }

  clear(): void {
    this.#ids = NO_IDS
    this.#values = NO_VALUES
    this.#size = 0
  }

  /** A copy of the current values, in no particular order. */
  values(): T[] {
    return this.#values.filter((value) => value !== undefined)
  }

  /** The slot of `id`, or the free slot where it would be stored. */
  #find(id: number): number {
    const mask = this.#ids.length - 1
    let at = id & mask
    while (this.#ids[at] !== NONE && this.#ids[at] !== id) at = (at + 1) & mask
    return at
  }

  #grow(): void {
    const ids = this.#ids
    const values = this.#values
    const length = Math.max(ids.length * 2, FEWEST)
    this.#ids = Array.from({ length }, () => NONE)
    this.#values = Array.from({ length })
    for (const [from, id] of ids.entries()) {
      if (id === NONE) continue
      const at = this.#find(id)
      this.#ids[at] = id
      this.#values[at] = values[from]
    }
  }
}
