/** A stack of open brackets, one bit each, so that deeply nested JSON costs less memory than its own bytes. */
export class Brackets {
  /** A set bit stands for an object. */
  #bits = new Uint8Array(64)
  #size = 0

  get size(): number {
    return this.#size
  }

  push(isObject: boolean): void {
    const at = this.#size >> 3
    if (at === this.#bits.length) {
      const more = new Uint8Array(2 * at)
      more.set(this.#bits)
      this.#bits = more
    }
    const bit = 1 << (this.#size & 7)
    // Cast: there is a byte for every eight brackets.
    if (isObject) this.#bits[at]! |= bit
    else this.#bits[at]! &= ~bit
    this.#size++
  }

  /** Whether the innermost open bracket is that of an object; false if none is open. Cast: `last` is below the size. */
  get isObject(): boolean {
    const last = this.#size - 1
    return last >= 0 && (this.#bits[last >> 3]! & (1 << (last & 7))) !== 0
  }

  pop(): void {
    this.#size--
  }
}
