/**
 * Joins bytes that are received in pieces: a line of a pipe, a line of an event stream. Pieces are copied into pooled memory: one
 * allocation per megabyte made garbage collection as expensive as reading.
 *
 * Gain: 1 MB × 32 from HTTP to a pipe costs 1.39 × raw in place of 2.56 (bench/notes.md).
 */

/** A pool of memory. */
export interface Memory {
  /** Returns at least `bytes` bytes with any content. */
  lease(bytes: number): Buffer
  /** Returns leased memory to the pool. Nothing may refer to it from here on. */
  giveBack(memory: Buffer): void
}

/** Memory without a pool: the garbage collector frees it. */
const ORDINARY: Memory = { lease: (bytes) => Buffer.allocUnsafe(bytes), giveBack: () => undefined }
const MIN_BYTES = 4 * 1024
/** A message is expected to be as large as the one before, up to this limit. */
const MAX_EXPECTED_BYTES = 2 * 1024 * 1024

/** What messages are expected to need. Those who share it know the size of each other's last message. */
export interface ExpectedSize {
  /** Size of the last message that needed memory, in bytes. */
  bytes: number
  /** Memory is at most this many times what was received: a stalled sender occupies little. */
  readonly maxTimes: number
}

export class Gathered {
  readonly #memory: Memory
  /** The only piece so far, not copied. */
  #first: Buffer | undefined
  #room: Buffer | undefined
  #length = 0
  readonly #expected: ExpectedSize

  constructor(memory: Memory = ORDINARY, expected: ExpectedSize = { bytes: 0, maxTimes: Number.POSITIVE_INFINITY }) {
    this.#memory = memory
    this.#expected = expected
  }

  get length(): number {
    return this.#length
  }

  /** The bytes so far, valid until the next call of any method. */
  get bytes(): Buffer {
    return this.#room?.subarray(0, this.#length) ?? this.#first ?? EMPTY
  }

  /** Adds a piece. The first piece must stay unchanged until the next call, unless `isReused`. */
  add(piece: Buffer, isReused = false): void {
    if (piece.length === 0) return
    if (this.#length === 0 && !isReused) this.#first = piece
    else this.#copy(piece)
    this.#length += piece.length
  }

  /** Returns all bytes, owned by the caller, and starts again. */
  take(): Buffer {
    const { bytes } = this
    if (this.#room !== undefined) this.#expected.bytes = Math.min(this.#length, MAX_EXPECTED_BYTES)
    this.#reset()
    return bytes
  }

  /** Discards the bytes. */
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
      const expected = Math.min(this.#expected.bytes, length * this.#expected.maxTimes)
      const room = this.#memory.lease(roomFor(Math.max(MIN_BYTES, expected, length)))
      room.set(this.bytes)
      this.#first = undefined
      this.#room = room
      if (before !== undefined) this.#memory.giveBack(before)
    }
    this.#room?.set(piece, this.#length)
  }
}

const EMPTY = Buffer.alloc(0)
/** Rounds up to a power of two: growing memory doubles, and lines of similar length use memory of the same size. */
const roomFor = (bytes: number): number => 2 ** Math.ceil(Math.log2(bytes))
