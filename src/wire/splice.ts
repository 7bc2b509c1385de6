/** Puts a message together from what came and what is ours: stretches of the original that touch become one slice. */
import type { Parts } from './payload.ts'

export class Splice {
  readonly #bytes: Buffer
  readonly #out: Uint8Array[] = []
  /** The stretch that is kept and not yet cut out. */
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
    this.#out.push(part)
  }

  parts(): Parts {
    this.#cut()
    return this.#out
  }

  #cut(): void {
    if (this.#from < this.#to) this.#out.push(this.#bytes.subarray(this.#from, this.#to))
    this.#from = this.#to = 0
  }
}
