/** The brackets that are open, one bit each, so that JSON of any depth costs less memory than its own bytes. */
export class Brackets {
  /** A set bit is an object. */
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
    // Cast: there is a byte for each eight brackets.
    if (isObject) this.#bits[at]! |= bit
    else this.#bits[at]! &= ~bit
    this.#size++
  }

  /** Whether the innermost one is an object; false without any. Cast: `last` is of a bracket that is open. */
  get isObject(): boolean {
    const last = this.#size - 1
    return last >= 0 && (this.#bits[last >> 3]! & (1 << (last & 7))) !== 0
  }

  pop(): void {
    this.#size--
  }
}
