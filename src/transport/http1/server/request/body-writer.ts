/**
 * Writes the body of an answer piece by piece. Small pieces are joined for up to a millisecond, in pooled memory. Backpressure of the host
 * is reported. The connection of a host that reads nothing for too long is closed.
 */
import type { Parts } from '../../../../wire/message/payload.ts'
import type { BodyPool } from '../../../body-pool.ts'
import type { AnswerBody } from './http-request.ts'

export interface BodyFlow {
  /** Backpressure of the host. */
  readonly onFull: () => void
  readonly onDrained: () => void
  /** The host read nothing for `stallMs`; its connection is closed. */
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
    // The time-out is active only while bytes wait to be written.
    response.on('timeout', () => {
      flow.onStalled()
      response.destroy()
    })
  }

  /** Sends status and headers before there is a body, as of a stream that is silent at first. */
  begin(): void {
    this.#response.flushHeaders()
  }

  /** Writes a copy of the bytes. */
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
    const room = this.#take()
    const response = this.#response
    if (response.destroyed) return
    response.finish(room, (error) => error ?? this.#bodies.release(room))
    if (response.writableLength > 0) response.setTimeout(this.#flow.stallMs)
  }

  /** The answer cannot be completed: the connection is broken, so that the host does not see a regular end. */
  break(): void {
    clearTimeout(this.#timer)
    this.#response.destroy()
  }

  #flush(): void {
    const room = this.#take()
    if (room.length === 0 || this.#response.destroyed) return
    if (!this.#response.send(room, (error) => error ?? this.#bodies.release(room)) && !this.#isFull) this.#wait()
  }

  /** The bytes since the last write. */
  #take(): Parts {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const room = this.#room
    if (room === undefined) return []
    const bytes = room.subarray(0, this.#size)
    this.#room = undefined
    this.#size = 0
    this.#bodies.relayed(room)
    return [bytes]
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
