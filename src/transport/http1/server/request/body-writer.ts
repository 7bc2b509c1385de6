/**
 * Writes the body of an answer in pieces. Small pieces are joined in pooled memory for up to a millisecond. Backpressure of the host is
 * reported. The connection of a host that reads nothing for `stallMs` is closed.
 */
import type { Parts } from '../../../../wire/message/payload.ts'
import type { BodyPool } from '../../../body-pool.ts'
import type { AnswerBody } from './http-request.ts'

export interface BodyFlow {
  /** Backpressure of the host began. */
  readonly onFull: () => void
  /** Backpressure of the host ended. */
  readonly onDrained: () => void
  /** The host read nothing for `stallMs`. Its connection is then closed. */
  readonly onStalled: () => void
  readonly stallMs: number
}

/** Size of one block of pooled memory. */
const BLOCK_BYTES = 1024 * 1024
/** Longest delay of a small piece. */
const FLUSH_DELAY_MS = 1

export class BodyWriter {
  readonly #response: AnswerBody
  readonly #bodies: BodyPool
  readonly #flow: BodyFlow
  #block: Buffer | undefined
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #isWaiting = false

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

  /** Sends status and headers before the first byte of the body, for a stream that is silent at first. */
  begin(): void {
    this.#response.flushHeaders()
  }

  /** Writes a copy of the bytes. */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const block = (this.#block ??= this.#bodies.lease(BLOCK_BYTES))
      const piece = bytes.subarray(at, at + block.length - this.#size)
      block.set(piece, this.#size)
      this.#size += piece.length
      at += piece.length
      if (this.#size === block.length) this.#flush()
    }
    if (this.#size > 0) this.#timer ??= setTimeout(() => this.#flush(), FLUSH_DELAY_MS)
  }

  /** Ends a complete answer. */
  end(): void {
    const parts = this.#take()
    const response = this.#response
    if (response.destroyed) return
    response.finish(parts, (error) => error ?? this.#bodies.release(parts))
    if (response.writableLength > 0) response.setTimeout(this.#flow.stallMs)
  }

  /** Ends an incomplete answer: destroys the connection, so that the host sees no regular end. */
  break(): void {
    clearTimeout(this.#timer)
    this.#response.destroy()
  }

  #flush(): void {
    const parts = this.#take()
    if (parts.length === 0 || this.#response.destroyed) return
    if (!this.#response.send(parts, (error) => error ?? this.#bodies.release(parts)) && !this.#isWaiting) this.#waitForDrain()
  }

  /** The bytes since the last write. */
  #take(): Parts {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const block = this.#block
    if (block === undefined) return []
    const bytes = block.subarray(0, this.#size)
    this.#block = undefined
    this.#size = 0
    this.#bodies.relayed(block)
    return [bytes]
  }

  #waitForDrain(): void {
    const response = this.#response
    this.#isWaiting = true
    this.#flow.onFull()
    response.setTimeout(this.#flow.stallMs)
    response.once('drain', () => {
      this.#isWaiting = false
      response.setTimeout(0)
      this.#flow.onDrained()
    })
  }
}
