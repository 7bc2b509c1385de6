/**
 * Messages out to a pipe, one line each: what is written in one tick leaves in one write, what waits is bounded, and a peer
 * that takes nothing for too long is told of.
 */
import type { Writable } from 'node:stream'
import { toLine } from '../../wire/framing/lines.ts'
import { byteLength } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { BodyPool } from '../body-pool.ts'
import type { OnTaken } from '../http1/server/request/http-request.ts'
import { StallTimer } from '../stall-timer.ts'

export interface LineWriterOptions {
  /** A message is refused when what waits would grow over this; alone in the queue it may have any size. */
  readonly maxQueuedBytes: number
  /** Whether a message of `bytes` may be queued above `maxQueuedBytes`. Absent: never. */
  readonly mayExceed?: (bytes: number) => boolean
  /** From here on the peer counts as slow. */
  readonly slowBytes: number
  /** How long nothing may be taken off the queue; a part of a message counts where the stream is a socket. */
  readonly stallMs: number
  readonly onStall: () => void
  /** The peer has taken something off the queue. */
  readonly onTaken?: () => void
  /** Where big messages lie until they are written. */
  readonly bodies?: BodyPool
}

/** Up to here copying into one buffer is cheaper than a vectored write. */
const JOIN_BYTES = 64 * 1024

export class LineWriter {
  readonly #stream: Writable
  readonly #options: LineWriterOptions
  #maxQueuedBytes: number
  #pieces: Uint8Array[] = []
  #bytes = 0
  readonly #stall: StallTimer

  constructor(stream: Writable, options: LineWriterOptions) {
    this.#stream = stream
    this.#options = options
    this.#maxQueuedBytes = options.maxQueuedBytes
    this.#stall = new StallTimer(stream, options.onStall)
  }

  /** Bytes that the peer has not taken. */
  get queuedBytes(): number {
    return this.#bytes + this.#stream.writableLength
  }

  /** Changes the limit for further messages. */
  resize(maxQueuedBytes: number): void {
    this.#maxQueuedBytes = maxQueuedBytes
  }

  /** `full`: the message was not taken. `slow`: it was, but more is waiting than should. */
  write(parts: Parts): 'ok' | 'slow' | 'full' {
    const line = toLine(parts)
    const bytes = byteLength(line)
    const queued = this.queuedBytes
    const { mayExceed } = this.#options
    if (queued > 0 && queued + bytes > this.#maxQueuedBytes && mayExceed?.(bytes) !== true) return 'full'
    // Not `setImmediate`: a lone message should not wait for the other sockets of this turn of the loop.
    if (this.#pieces.length === 0) process.nextTick(() => this.flush())
    this.#pieces.push(...line)
    this.#bytes += bytes
    return queued + bytes > this.#options.slowBytes ? 'slow' : 'ok'
  }

  /** Hands over what this tick has gathered. */
  flush(): void {
    const [pieces, bytes] = [this.#pieces, this.#bytes]
    if (pieces.length === 0) return
    this.#pieces = []
    this.#bytes = 0
    if (!this.#stream.writable) return
    if (bytes <= JOIN_BYTES) {
      this.#stream.write(Buffer.concat(pieces, bytes), this.#taken)
      this.#options.bodies?.release(pieces)
    } else {
      this.#stream.cork()
      const last = pieces.length - 1
      for (const [at, piece] of pieces.entries()) this.#stream.write(piece, at < last ? undefined : this.#takenAll(pieces))
      this.#stream.uncork()
    }
    if (this.#stream.writableLength > 0) this.#stall.start(this.#options.stallMs)
  }

  /** Nothing more will be written. */
  dispose(): void {
    this.#pieces = []
    this.#bytes = 0
    this.#stall.stop()
  }

  readonly #takenAll =
    (pieces: readonly Uint8Array[]): OnTaken =>
    (error) => {
      if (!error) this.#options.bodies?.release(pieces)
      this.#taken(error)
    }

  readonly #taken: OnTaken = (error) => {
    if (!error) this.#options.onTaken?.()
    if (this.#stream.writableLength > 0) this.#stall.refresh()
    else this.#stall.stop()
  }
}
