/**
 * A map that takes memory only while it has entries. An empty `Map` takes 200 bytes, and ten thousand links have several that are nearly
 * always empty.
 */
export class SparseMap<Key, Value> {
  #map: Map<Key, Value> | undefined

  get size(): number {
    return this.#map?.size ?? 0
  }

  has(key: Key): boolean {
    return this.#map?.has(key) === true
  }

  get(key: Key): Value | undefined {
    return this.#map?.get(key)
  }

  set(key: Key, value: Value): void {
    this.#map ??= new Map()
    this.#map.set(key, value)
  }

  /** Returns whether there was such an entry. An iteration under way continues without it. */
  delete(key: Key): boolean {
    const wasThere = this.#map?.delete(key) === true
    if (this.#map?.size === 0) this.#map = undefined
    return wasThere
  }

  clear(): void {
    this.#map?.clear()
    this.#map = undefined
  }

  keys(): Iterable<Key> {
    return this.#map?.keys() ?? []
  }

  [Symbol.iterator](): Iterator<[Key, Value]> {
    return (this.#map ?? new Map<Key, Value>())[Symbol.iterator]()
  }
}
