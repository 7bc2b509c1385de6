/**
 * Detects a peer that takes nothing of what was written to its stream. The surprise: a stream reports a write only when all of it is out,
 * and a message of 15 MB is one write. Only the native handle of a socket knows how much of it has been taken. `net.Socket.setTimeout`
 * reads it as well, but also counts bytes received as traffic, and does not see the handle below TLS. A stream without a handle, or a Node
 * release without these properties, counts whole writes only.
 */
import type { Writable } from 'node:stream'

/** The used part of a socket's native handle. */
interface Handle {
  /** Bytes of all writes so far, the current one included. */
  readonly bytesWritten?: number
  /** Bytes of the current write that the system has not taken. */
  readonly writeQueueSize?: number
  /** The handle of the connection below TLS. */
  readonly _parent?: Handle
}

/** Bytes written to `stream` that the system has taken so far; `undefined`: unknown. */
export const takenBytes = (stream: Writable): number | undefined => {
  const handle: Handle | null | undefined = Reflect.get(stream, '_handle')
  const { bytesWritten, writeQueueSize } = handle?._parent ?? handle ?? {}
  return bytesWritten === undefined || writeQueueSize === undefined ? undefined : bytesWritten - writeQueueSize
}

export class StallTimer {
  readonly #stream: Writable
  readonly #onStall: () => void
  #timer: NodeJS.Timeout | undefined
  #taken: number | undefined
  /** The time is over, and nothing is known to have been taken in it. */
  #isDue = false

  /** `onStall` is called once per start. */
  constructor(stream: Writable, onStall: () => void) {
    this.#stream = stream
    this.#onStall = onStall
  }

  /** Bytes wait: `onStall` is called when none of them is taken for `ms`, or up to twice that after some were. A running timer continues. */
  start(ms: number): void {
    if (this.#timer !== undefined) return
    this.#taken = takenBytes(this.#stream)
    this.#timer = setTimeout(this.#check, ms).unref()
  }

  /** A whole write was taken, and more bytes wait. */
  refresh(): void {
    this.#isDue = false
    this.#taken = takenBytes(this.#stream)
    this.#timer?.refresh()
  }

  /** No bytes wait. */
  stop(): void {
    this.#isDue = false
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** After a pause of this process (SIGSTOP) the timer runs before the peer, which may have read all the time, is given more (F-27). */
  readonly #check = (): void => {
    this.#isDue = true
    setImmediate(this.#decide)
  }

  readonly #decide = (): void => {
    if (!this.#isDue) return
    this.#isDue = false
    const taken = takenBytes(this.#stream)
    if (taken === this.#taken) return this.#onStall()
    this.#taken = taken
    this.#timer?.refresh()
  }
}
