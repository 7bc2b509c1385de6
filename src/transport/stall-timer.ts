/**
 * Detects a peer that takes nothing of what was written to its stream. The surprise: a stream reports a write only when all of it is out,
 * and a message of 15 MB is one write. Only the native handle of a socket knows how much of it has been taken. `net.Socket.setTimeout`
 * reads it as well, but also counts bytes received as traffic, and does not see the handle below TLS. A stream without a handle, or a Node
 * release without this property, counts whole writes only.
 */
import type { Writable } from 'node:stream'

/** The used part of a socket's native handle. */
interface Handle {
  /** Bytes of the current write that the system has not taken. */
  readonly writeQueueSize?: number
  /** The handle of the connection below TLS. */
  readonly _parent?: Handle
}

/** Bytes of the current write to `stream` that the system has not taken; `undefined`: unknown. */
export const untakenBytes = (stream: Writable): number | undefined => {
  const handle: Handle | null | undefined = Reflect.get(stream, '_handle')
  return (handle?._parent ?? handle)?.writeQueueSize
}

export class StallTimer {
  readonly #stream: Writable
  readonly #onStall: () => void
  #timer: NodeJS.Timeout | undefined
  #untaken: number | undefined

  /** `onStall` is called once per start. */
  constructor(stream: Writable, onStall: () => void) {
    this.#stream = stream
    this.#onStall = onStall
  }

  /** Bytes wait: `onStall` is called when none of them is taken for `ms`, or up to twice that after some were. A running timer continues. */
  start(ms: number): void {
    if (this.#timer !== undefined) return
    this.#untaken = untakenBytes(this.#stream)
    this.#timer = setTimeout(this.#check, ms).unref()
  }

  /** A whole write was taken, and more bytes wait. */
  refresh(): void {
    this.#untaken = untakenBytes(this.#stream)
    this.#timer?.refresh()
  }

  /** No bytes wait. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  readonly #check = (): void => {
    const untaken = untakenBytes(this.#stream)
    if (untaken === this.#untaken) return this.#onStall()
    this.#untaken = untaken
    this.#timer?.refresh()
  }
}
