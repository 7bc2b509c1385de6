/**
 * An incomplete body of a fast-path request with a stated length. Before it is requested by `read`, at most 64 KiB are buffered, then the
 * socket is paused. While it is read, its bytes count towards the memory limit of bodies, as with node:http. The buffer grows with the
 * received bytes, because a client can state any length.
 *
 * Gain: the connection stays on the fast path; with node:http each small call on it costs about a third more (decision 0041).
 */
import { Gathered } from '../../../../wire/framing/gathered.ts'
import type { BodyPool } from '../../../body-pool.ts'
import type { HeldBytes } from '../../../held-bytes.ts'
import type { OnBody, Unread } from '../request/http-request.ts'

/** Limit of the buffer before `read`. */
const MAX_UNREQUESTED_BYTES = 64 * 1024

/** Bytes of a refused body that are reported. */
const START_BYTES = 4096

/** Flow control of the connection. */
export interface BodySource {
  pause(): void
  resume(): void
}

export class RequestBody {
  readonly #source: BodySource
  readonly #bodies: BodyPool
  readonly #gathered: Gathered
  #missing: number
  #counted = 0
  #done: OnBody | undefined
  /** The stated length exceeds the limit of `#done`, which is called back with the first bytes. */
  #isTooLarge = false
  /** Received bytes are discarded. */
  #isDiscarded = false

  constructor(part: Buffer, length: number, source: BodySource, bodies: BodyPool) {
    this.#source = source
    this.#bodies = bodies
    this.#gathered = new Gathered({ lease: (bytes) => bodies.leaseRequest(bytes), giveBack: (memory) => bodies.giveBack(memory) })
    this.#missing = length - part.length
    this.#gathered.add(part, true)
  }

  get #held(): HeldBytes {
    return this.#bodies.held
  }

  /** Whether all bytes were received, kept or not. */
  get isComplete(): boolean {
    return this.#missing === 0
  }
  /** Number of bytes that were not received yet. */
  get missing(): number {
    return this.#missing
  }
  /** Whether `read` was called and the body is incomplete. */
  get isAwaited(): boolean {
    return this.#done !== undefined
  }

  /** Calls back once, with the body or with the reason why it was not read, and its first bytes: they show what is refused. */
  read(maxBytes: number, done: OnBody): void {
    const { length } = this.#gathered
    this.#isTooLarge = length + this.#missing > maxBytes
    if (this.#isTooLarge && length > 0) return this.#refuse('too_large', done)
    if (this.isComplete) return done(this.#take())
    this.#done = done
    this.#count(this.#gathered.length)
    this.#source.resume()
  }

  /** Adds the beginning of `chunk` to the body; returns the number of bytes used. */
  push(chunk: Buffer): number {
    const piece = chunk.length <= this.#missing ? chunk : chunk.subarray(0, this.#missing)
    this.#missing -= piece.length
    if (this.#isDiscarded) return piece.length
    this.#gathered.add(piece, true)
    const done = this.#done
    if (done === undefined) {
      if (this.#gathered.length > MAX_UNREQUESTED_BYTES) this.#source.pause()
    } else if (this.#isTooLarge) this.#refuse('too_large', done)
    else if (this.#held.isFull) this.#refuse('overloaded', done)
    else {
      this.#count(piece.length)
      if (this.isComplete) done(this.#take())
    }
    return piece.length
  }

  /** Drops an unneeded body: the rest is read and discarded. */
  discard(): void {
    this.#isDiscarded = true
    this.release()
    this.#source.resume()
  }

  /** Frees the memory of a body that is never completed or not needed. */
  release(): void {
    this.#settle()
    this.#gathered.drop()
  }

  #count(bytes: number): void {
    this.#held.add(bytes)
    this.#counted += bytes
  }

  #refuse(reason: Unread, done: OnBody): void {
    const start = Buffer.from(this.#gathered.bytes.subarray(0, START_BYTES))
    this.discard()
    done(reason, start)
  }

  #take(): Buffer {
    this.#settle()
    return this.#gathered.take()
  }

  /** Removes its bytes from the memory limit, and its callback. */
  #settle(): void {
    this.#held.release(this.#counted)
    this.#counted = 0
    this.#done = undefined
  }
}
