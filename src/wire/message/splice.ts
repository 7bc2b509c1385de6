/**
 * Joins a message from received bytes and our own pieces. Adjacent slices of the original become one. A small message becomes one
 * buffer, since a slice costs more than the copy of a few bytes.
 *
 * Gain: one of the small steps that took 100 B from 1.3 to 1.0 of raw; not measured alone (bench/notes.md).
 */
import type { Parts } from './payload.ts'

interface Piece {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

const SMALL_BYTES = 1_024
/** Up to here a loop is faster than a native copy. */
const SHORT_BYTES = 64

export class Splice {
  readonly #bytes: Buffer
  readonly #pieces: Piece[] = []
  #length = 0
  /** The current slice, which may grow. */
  #from = 0
  #to = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** The original from `from` to `to`. */
  keep(from: number, to: number): void {
    if (from >= to) return
    if (from !== this.#to) {
      this.#cut()
      this.#from = from
    }
    this.#to = to
  }

  put(part: Uint8Array): void {
    this.#cut()
    this.#add(part, 0, part.length)
  }

  parts(): Parts {
    this.#cut()
    return this.#length > SMALL_BYTES ? this.#pieces.map(sliceOf) : [this.#joined()]
  }

  #joined(): Buffer {
    const joined = Buffer.allocUnsafe(this.#length)
    let at = 0
    for (const piece of this.#pieces) {
      const { bytes, start, end } = piece
      if (end - start > SHORT_BYTES) joined.set(sliceOf(piece), at)
      // Cast: `index` is below the length of the bytes.
      else for (let index = start, to = at; index < end; index++) joined[to++] = bytes[index]!
      at += end - start
    }
    return joined
  }

  #cut(): void {
    if (this.#from < this.#to) this.#add(this.#bytes, this.#from, this.#to)
    this.#from = this.#to = 0
  }

  #add(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push({ bytes, start, end })
    this.#length += end - start
  }
}

const sliceOf = ({ bytes, start, end }: Piece): Uint8Array => (end - start === bytes.length ? bytes : bytes.subarray(start, end))
