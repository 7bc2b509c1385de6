/**
 * Composes a message of slices of received bytes and new pieces. Adjacent slices become one. A small message becomes one buffer, since
 * writing a slice costs more than copying a few bytes.
 */
import type { Parts } from './payload.ts'

const SMALL_BYTES = 1_024

export class Splice {
  readonly #bytes: Buffer
  readonly #parts: Uint8Array[] = []
  #length = 0
  /** The last slice, which the next one may extend. */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Appends the received bytes from `from` to `to`. */
  keep(from: number, to: number): void {
    if (from >= to) return
    if (from !== this.#to) {
      this.#cut()
      this.#from = from
    }
    this.#to = to
  }

  /** Appends a new piece. */
  put(part: Uint8Array): void {
    this.#cut()
    this.#add(part)
  }

  parts(): Parts {
    this.#cut()
    return this.#length > SMALL_BYTES ? this.#parts : [Buffer.concat(this.#parts, this.#length)]
  }

  #cut(): void {
    if (this.#from < this.#to) this.#add(this.#bytes.subarray(this.#from, this.#to))
    this.#from = this.#to = 0
  }

  #add(part: Uint8Array): void {
    this.#parts.push(part)
    this.#length += part.length
  }
}
