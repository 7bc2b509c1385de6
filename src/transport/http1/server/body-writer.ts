/**
 * The body of an answer that is written as it is made. Little pieces wait for each other, a millisecond at most, in memory that is used
 * again; a host that does not take them is told of, and loses its connection when it takes nothing for too long.
 */
import type { BodyPool } from '../../body-pool.ts'
import type { AnswerBody } from './http-request.ts'

export interface BodyFlow {
  /** The host takes less than comes. */
  readonly onFull: () => void
  readonly onDrained: () => void
  /** It took nothing for `stallMs`; its connection is closed. */
  readonly onStalled: () => void
  readonly stallMs: number
}

const ROOM_BYTES = 1024 * 1024
const GATHER_MS = 1

export class BodyWriter {
  readonly #response: AnswerBody
  readonly #bodies: BodyPool
  readonly #flow: BodyFlow
  #room: Buffer | undefined
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #isFull = false

  constructor(response: AnswerBody, bodies: BodyPool, flow: BodyFlow) {
    this.#response = response
    this.#bodies = bodies
    this.#flow = flow
    response.on('error', () => undefined)
    // It listens only while something waits to be taken.
    response.on('timeout', () => {
      flow.onStalled()
      response.destroy()
    })
  }

  /** Takes a copy. */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const room = (this.#room ??= this.#bodies.lease(ROOM_BYTES))
      const piece = bytes.subarray(at, at + room.length - this.#size)
      room.set(piece, this.#size)
      this.#size += piece.length
      at += piece.length
      if (this.#size === room.length) this.#flush()
    }
    if (this.#size > 0) this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS)
  }

  /** The answer is complete. */
  end(): void {
    this.#flush()
    this.#response.end()
  }

  /** It will never be: the host sees a broken connection, not an end. */
  break(): void {
    clearTimeout(this.#timer)
    this.#response.destroy()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const room = this.#room
    if (room === undefined || this.#size === 0 || this.#response.destroyed) return
    const bytes = room.subarray(0, this.#size)
    this.#room = undefined
    this.#size = 0
    this.#bodies.relayed(room)
    if (!this.#response.write(bytes, (error) => error ?? this.#bodies.release([room])) && !this.#isFull) this.#wait()
  }

  #wait(): void {
    const response = this.#response
    this.#isFull = true
    this.#flow.onFull()
    response.setTimeout(this.#flow.stallMs)
    response.once('drain', () => {
      this.#isFull = false
      response.setTimeout(0)
      this.#flow.onDrained()
    })
  }
}
