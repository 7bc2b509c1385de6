/**
 * A connection of a host with only fast-path requests, one at a time. At any other request it is handed to node:http, together with the
 * bytes already read. The host sees no difference.
 *
 *   idle ─▶ part of a head ─▶ request in progress, its body arriving ─▶ answered ─▶ the rest of its body, unread ─▶ idle …
 *     └──────────┴── other form, pipelined requests, too slow ──────────┴─▶ node:http, permanently
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import type { Socket } from 'node:net'
import { readInPlace } from '../../../read-in-place.ts'
import { takenBytes } from '../../../stall-timer.ts'
import { refuse } from '../connection/connection-caps.ts'
import { reportStalled } from '../request/http-request.ts'
import type { RequestLimits, ListenerState } from '../request/http-request.ts'
import { closeGently } from '../connection/lingering.ts'
import { FastHead } from './fast-head.ts'
import type { BodyPart } from './fast-head.ts'
import { FastRequest } from './fast-request.ts'
import { RequestBody } from './request-body.ts'
import type { WriteBuffer } from './write-buffer.ts'

/** A connection without a complete head after this time is handed to node:http, which has time-outs for slow peers. Checked once per sweep. */
const SLOW_MS = 2_000
/** Added to the keep-alive time that is sent to the host, so that no request crosses the close. node:http does the same. */
const IDLE_MARGIN_MS = 2_000

/** Limit of reads for a head, or for a body in chunks. Usual clients need fewer. */
const MAX_PIECES = 8

/** Limit of buffered bytes of later requests. Above it the socket is paused. */
const MAX_EARLY_BYTES = 64 * 1024

/** State that the fast-path connections of one listener share. */
export interface FastShared {
  /** The state that all requests of the listener share, also those of node:http. */
  readonly listener: ListenerState
  readonly limits: Omit<RequestLimits, 'headersTimeoutMs'>
  /** Memory for all reads, each of which is handled at once; `undefined`: each read has its own memory. */
  readonly readBuffer: Buffer | undefined
  readonly writeBuffer: WriteBuffer
  /** Time of the last sweep (monotonic). */
  readonly nowMs: number
  /** Value of the `Date` header, updated by each sweep. */
  readonly date: string
  /** Hands the connection to node:http; `early`: bytes already read. */
  handOver(connection: FastConnection, socket: Socket, early: Buffer): void
  /** Removes a closed connection. */
  closed(connection: FastConnection): void
  /** Answers 408 to a request that was not complete in time, and closes the connection. `isReading`: its body was being read. */
  refuseSlow(socket: Socket, isReading: boolean): void
}

export class FastConnection {
  readonly #socket: Socket
  readonly #shared: FastShared
  /** One-entry cache: the head of the last request. */
  #head: FastHead | undefined
  /** The received part of a head, or of a body in chunks. */
  #begun: Buffer | undefined
  /** Number of reads of `#begun`. */
  #pieces = 0
  #request: FastRequest | undefined
  /** The incomplete body of a request in progress or already answered. */
  #body: RequestBody | undefined
  /** Bytes received while a request was in progress. */
  #early: Buffer | undefined
  #isAnswered = false
  #isProven = false
  /** The last answer was written. The connection waits for the host to close. */
  #isClosing = false
  /** Begin of the current state (monotonic). */
  #sinceMs: number
  /** Bytes that the host had taken at the last sweep. */
  #taken: number | undefined
  /** Ends reads into the shared memory; `undefined`: each read has its own memory. */
  readonly #leaveMemory: (() => void) | undefined

  constructor(socket: Socket, shared: FastShared) {
    this.#socket = socket
    this.#shared = shared
    this.#sinceMs = shared.nowMs
    const { readBuffer } = shared
    this.#leaveMemory = readBuffer === undefined ? undefined : readInPlace(socket, readBuffer, this.#onData)
    if (this.#leaveMemory === undefined) socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('error', ignore)
    socket.on('close', this.#onClose)
  }

  /** Whether no request has begun since the last answer. */
  get isIdle(): boolean {
    return !this.#isClosing && this.#request === undefined && this.#begun === undefined && this.#body === undefined
  }

  /** Closes an idle connection. */
  closeIdle(): void {
    if (this.isIdle) this.#end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Checks the time limits; called once per second. */
  sweep(nowMs: number): void {
    const { limits } = this.#shared
    const forMs = nowMs - this.#sinceMs
    if (this.#isClosing) return this.#checkTaken(nowMs)
    if (this.#body !== undefined) {
      if (forMs >= limits.requestTimeoutMs) this.#refuseSlow(this.#body)
      return
    }
    if (this.#request !== undefined) return
    if (this.#socket.writableLength > 0) this.#checkTaken(nowMs)
    else if (!this.#isAnswered || this.#begun !== undefined) {
      if (forMs >= SLOW_MS) this.#handOver(this.#begun ?? EMPTY)
    } else if (forMs >= limits.keepAliveTimeoutMs + IDLE_MARGIN_MS) this.#end()
  }

  /** Closes the connection of a host that takes nothing of what waits for it. */
  #checkTaken(nowMs: number): void {
    if (this.#socket.writableLength === 0) return
    const { listener } = this.#shared
    const taken = takenBytes(this.#socket)
    if (taken !== this.#taken) {
      this.#taken = taken
      this.#sinceMs = nowMs
    } else if (nowMs - this.#sinceMs >= listener.writeStallMs) {
      reportStalled(listener)
      this.#socket.destroy()
    }
  }

  /** A request of the connection was admitted. */
  proven(): void {
    if (this.#isProven) return
    this.#isProven = true
    this.#shared.listener.caps.proven(this.#socket)
  }

  /** The answer was written; `isKept`: the connection stays open. */
  answered(isKept: boolean): void {
    this.#request = undefined
    this.#isAnswered = true
    const body = this.#body
    if (body === undefined) this.#sinceMs = this.#shared.nowMs
    else body.discard()
    if (!isKept || !this.#socket.writable) this.#end()
    else if (this.#early !== undefined) this.#handOver(this.#early)
    else if (this.#shared.listener.ending.isEnding) this.#end()
    // Backpressure: no further request is read while answers wait to be written.
    else if (this.#socket.writableNeedDrain) this.#pauseUntilDrained()
  }

  readonly #onData = (chunk: Buffer): void => {
    const rest = this.#body === undefined ? chunk : this.#pushBody(this.#body, chunk)
    if (rest === undefined) return
    if (this.#request !== undefined) {
      this.#early = this.#early === undefined ? this.#copied(rest) : Buffer.concat([this.#early, rest])
      if (this.#early.length > MAX_EARLY_BYTES) this.#socket.pause()
      return
    }
    const begun = this.#begun
    const bytes = begun === undefined ? rest : Buffer.concat([begun, rest])
    const body = this.#bodyIn(bytes)
    if (body === 'more' && this.#pieces < MAX_PIECES) this.#wait(this.#copied(bytes))
    else if (body === 'more' || body === undefined) this.#handOver(this.#copied(bytes))
    else this.#serve(body)
  }

  /** A copy of bytes in the shared memory, which the next read overwrites. Other bytes are returned unchanged. */
  #copied(bytes: Buffer): Buffer {
    return bytes.buffer === this.#shared.readBuffer?.buffer ? Buffer.from(bytes) : bytes
  }

  #stopReading(): void {
    this.#leaveMemory?.()
    this.#socket.off('data', this.#onData)
  }

  /** Returns the bytes after the body, if any. */
  #pushBody(body: RequestBody, chunk: Buffer): Buffer | undefined {
    const taken = body.push(chunk)
    if (!body.isComplete) return undefined
    this.#body = undefined
    this.#sinceMs = this.#shared.nowMs
    return taken < chunk.length ? chunk.subarray(taken) : undefined
  }

  #bodyIn(bytes: Buffer): Buffer | BodyPart | 'more' | undefined {
    let body = this.#head?.bodyIn(bytes)
    if (body === undefined) {
      const head = FastHead.read(bytes)
      if (head === 'more' || head === undefined) return head
      const { maxHeaderLines, maxHeaderBytes } = this.#shared.limits
      if (head.lines > maxHeaderLines || head.size > maxHeaderBytes) return undefined
      this.#head = head
      body = head.bodyIn(bytes)
    }
    return body === 'beyond' ? undefined : body
  }

  #wait(bytes: Buffer): void {
    if (this.#pieces++ === 0) this.#sinceMs = this.#shared.nowMs
    this.#begun = bytes
  }

  #serve(received: Buffer | BodyPart): void {
    this.#begun = undefined
    this.#pieces = 0
    if (this.#head === undefined) return
    const body = Buffer.isBuffer(received) ? this.#copied(received) : this.#expect(received)
    this.#request = new FastRequest(this.#head, body, this, this.#socket, this.#shared)
    this.#shared.listener.events.request(this.#request)
  }

  /** The request is dispatched before its body is complete, as by node:http, so that a refusal does not wait for the body. */
  #expect({ part, length }: BodyPart): RequestBody {
    this.#sinceMs = this.#shared.nowMs
    return (this.#body = new RequestBody(part, length, this.#socket, this.#shared.listener.bodies))
  }

  #pauseUntilDrained(): void {
    this.#socket.pause()
    this.#socket.once('drain', () => this.#socket.resume())
  }

  /** Whether the rest of an unneeded body is small enough to be read, so that the connection can be kept. */
  get mayKeep(): boolean {
    return this.#body === undefined || this.#body.missing <= this.#shared.limits.maxUnreadBytes
  }

  /** Closes the connection after the written bytes. Later requests are dropped. */
  #end(): void {
    const isSending = this.#body !== undefined || this.#early !== undefined
    this.#isClosing = true
    this.#stopReading()
    const { listener, limits } = this.#shared
    if (isSending) return closeGently(this.#socket, limits, listener.events)
    this.#socket.resume()
    this.#socket.destroySoon()
  }

  #refuseSlow(body: RequestBody): void {
    const { isAwaited } = body
    if (this.#request === undefined) {
      this.#shared.listener.events.reached('listen.limits.request_timeout')
      return void this.#socket.destroy()
    }
    this.#abandonBody(body)
    this.#shared.refuseSlow(this.#socket, isAwaited)
  }

  /** Stops reading. The rest of the body is not read. */
  #abandonBody(body: RequestBody): void {
    this.#body = undefined
    body.release()
    this.#stopReading()
  }

  #handOver(early: Buffer): void {
    const socket = this.#socket
    this.#stopReading()
    socket.off('end', this.#onEnd)
    socket.off('error', ignore)
    socket.off('close', this.#onClose)
    this.#shared.handOver(this, socket, early)
  }

  /** The host ended its side. As in node:http, an idle connection is ended and an incomplete request gets 400. */
  readonly #onEnd = (): void => {
    if (this.#isClosing) return
    if (this.#body !== undefined) this.#abandonBody(this.#body)
    else if (this.#begun === undefined) return void this.#socket.end()
    this.#begun = undefined
    refuse(this.#socket, 400, '')
  }

  readonly #onClose = (): void => {
    this.#shared.closed(this)
    this.#body?.release()
    this.#request?.disconnected()
  }
}

const EMPTY = Buffer.alloc(0)
const ignore = (): void => undefined
