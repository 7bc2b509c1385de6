/**
 * Bytes that come in pieces and are wanted in one: a line of a pipe, a line of an event stream. Pieces are copied as they come, into memory
 * that may have been used before: one allocation per megabyte made garbage collection as expensive as reading it.
 */

/** Where the memory comes from, and goes to. */
export interface Memory {
  /** At least `bytes` bytes, whatever is in them. */
  lease(bytes: number): Buffer
  /** Nothing refers to `memory`, which was leased, any more. */
  giveBack(memory: Buffer): void
}

/** Memory that the collector takes back. */
const ORDINARY: Memory = { lease: (bytes) => Buffer.allocUnsafe(bytes), giveBack: () => undefined }
const MIN_BYTES = 4 * 1024
/** A message of the size before is expected again, up to this much: what is leased in vain is soon used again. */
const MAX_EXPECTED_BYTES = 2 * 1024 * 1024

export class Gathered {
  readonly #memory: Memory
  /** One piece, not copied yet. */
  #first: Buffer | undefined
  #room: Buffer | undefined
  #length = 0
  /** Of the last one that needed room. */
  #expected = 0

  constructor(memory: Memory = ORDINARY) {
    this.#memory = memory
  }

  get length(): number {
    return this.#length
  }

  /** What has come so far, until the next call. */
  get bytes(): Buffer {
    return this.#room?.subarray(0, this.#length) ?? this.#first ?? EMPTY
  }

  /** Takes a piece. The first one must stay as it is until the next call, unless `isReused`. */
  add(piece: Buffer, isReused = false): void {
    if (piece.length === 0) return
    if (this.#length === 0 && !isReused) this.#first = piece
    else this.#copy(piece)
    this.#length += piece.length
  }

  /** The whole, which is the caller's; the next one begins. */
  take(): Buffer {
    const { bytes } = this
    this.#expected = this.#room === undefined ? this.#expected : Math.min(this.#length, MAX_EXPECTED_BYTES)
    this.#reset()
    return bytes
  }

  /** Nothing of it is wanted. */
  drop(): void {
    if (this.#room !== undefined) this.#memory.giveBack(this.#room)
    this.#reset()
  }

  #reset(): void {
    this.#first = this.#room = undefined
    this.#length = 0
  }

  #copy(piece: Buffer): void {
    const length = this.#length + piece.length
    const before = this.#room
    if (before === undefined || length > before.length) {
      const room = this.#memory.lease(roomFor(Math.max(MIN_BYTES, this.#expected, length)))
      room.set(this.bytes)
      this.#first = undefined
      this.#room = room
      if (before !== undefined) this.#memory.giveBack(before)
    }
    this.#room?.set(piece, this.#length)
  }
}

const EMPTY = Buffer.alloc(0)
/** A power of two: what grows doubles, and lines of about the same size need the same room. */
const roomFor = (bytes: number): number => 2 ** Math.ceil(Math.log2(bytes))
