/**
 * A connection of a host while it carries only fast-path requests, one at a time. With any other request it is handed to node:http,
 * together with the bytes already read. A host can see no difference.
 *
 *   idle ─▶ part of a head ─▶ request in progress, its body arriving ─▶ answered ─▶ the rest of its body, unread ─▶ idle …
 *     └──────────┴── not plain, more than one at a time, too slow ──────┴─▶ node:http, for good
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import type { Socket } from 'node:net'
import { readInPlace } from '../../../read-in-place.ts'
import { untakenBytes } from '../../../stall-timer.ts'
import { refuse } from '../connection/connection-caps.ts'
import { tellStalled } from '../request/http-request.ts'
import type { Shared } from '../request/http-request.ts'
import { closeGently } from '../connection/lingering.ts'
import type { LingerLimits } from '../connection/lingering.ts'
import { FastHead } from './fast-head.ts'
import type { BodyPart } from './fast-head.ts'
import { FastRequest } from './fast-request.ts'
import { RequestBody } from './request-body.ts'
import type { WriteBuffer } from './write-buffer.ts'

/** A connection without a complete request head after this time, ms, is handed to node:http, which has time-outs for slow peers. Times are up to a sweep old. */
const SLOW_MS = 2_000
/** Margin over the keep-alive time sent to the host, so that no request crosses the close, as in node:http. */
const IDLE_MARGIN_MS = 2_000

/** Reads for a head, or for a body in chunks: more than any usual client needs. */
const MAX_PIECES = 8

/** Bytes of later requests that are buffered; then the socket is paused. */
const MAX_EARLY_BYTES = 64 * 1024

/** What the plain connections of one listener use. */
export interface FastShared extends Shared, LingerLimits {
  /** Memory that every read goes through, as reads are handled at once; `undefined`: each has its own. */
  readonly readBuffer: Buffer | undefined
  readonly writeBuffer: WriteBuffer
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  /** Time of the last sweep, monotonic. */
  readonly nowMs: number
  /** `Date: …`, for this second. */
  readonly date: string
  /** The connection is handed to node:http; `early`: bytes already read. */
  handOver(connection: FastConnection, socket: Socket, early: Buffer): void
  closed(connection: FastConnection): void
  /** The request was not complete in time: answers 408 and closes it. `isReading`: its body was being read. */
  refuseSlow(socket: Socket, isReading: boolean): void
}

export class FastConnection {
  readonly #socket: Socket
  readonly #shared: FastShared
  /** One-entry cache: the head of the last request. */
  #head: FastHead | undefined
  /** Part of a head, or of a body in chunks. */
  #begun: Buffer | undefined
  /** Number of its reads. */
  #pieces = 0
  #request: FastRequest | undefined
  /** The incomplete body of a request in progress or already answered. */
  #body: RequestBody | undefined
  /** Bytes received while a request was in progress. */
  #early: Buffer | undefined
  #isAnswered = false
  #isProven = false
  /** The last answer was written; waits for the host to close. */
  #isClosing = false
  #sinceMs: number
  /** At the last sweep. */
  #untaken: number | undefined
  /** Ends reading into the memory of all connections; `undefined`: what is read is this connection's. */
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

  /** The last answer has been given and no request has begun. */
  get isIdle(): boolean {
    return !this.#isClosing && this.#request === undefined && this.#begun === undefined && this.#body === undefined
  }

  /** Closes it if it is idle. */
  closeIdle(): void {
    if (this.isIdle) this.#end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  sweep(nowMs: number): void {
    const { keepAliveTimeoutMs, requestTimeoutMs, writeStallMs } = this.#shared
    const forMs = nowMs - this.#sinceMs
    if (this.#isClosing) return
    if (this.#body !== undefined) {
      if (forMs >= requestTimeoutMs) this.#refuseSlow(this.#body)
      return
    }
    if (this.#request !== undefined) return
    if (this.#socket.writableLength > 0) {
      const untaken = untakenBytes(this.#socket)
      if (untaken !== this.#untaken) {
        this.#untaken = untaken
        this.#sinceMs = nowMs
      } else if (forMs >= writeStallMs) {
        tellStalled(this.#shared)
        this.#socket.destroy()
      }
    } else if (!this.#isAnswered || this.#begun !== undefined) {
      if (forMs >= SLOW_MS) this.#handOver(this.#begun ?? NOTHING)
    } else if (forMs >= keepAliveTimeoutMs + IDLE_MARGIN_MS) this.#end()
  }

  /** A request on it was admitted. */
  proven(): void {
    if (this.#isProven) return
    this.#isProven = true
    this.#shared.caps.proven(this.#socket)
  }

  /** The answer to its request is out; `isKept`: another may follow. */
  answered(isKept: boolean): void {
    this.#request = undefined
    this.#isAnswered = true
    const body = this.#body
    if (body === undefined) this.#sinceMs = this.#shared.nowMs
    else body.discard()
    if (!isKept || !this.#socket.writable) this.#end()
    else if (this.#early !== undefined) this.#handOver(this.#early)
    else if (this.#shared.ending.isEnding) this.#end()
    // Backpressure: no further request is read while answers wait to be written.
    else if (this.#socket.writableNeedDrain) this.#rest()
  }

  readonly #onData = (chunk: Buffer): void => {
    const rest = this.#body === undefined ? chunk : this.#pushBody(this.#body, chunk)
    if (rest === undefined) return
    if (this.#request !== undefined) {
      this.#early = this.#early === undefined ? this.#own(rest) : Buffer.concat([this.#early, rest])
      if (this.#early.length > MAX_EARLY_BYTES) this.#socket.pause()
      return
    }
    const begun = this.#begun
    const bytes = begun === undefined ? rest : Buffer.concat([begun, rest])
    const body = this.#bodyIn(bytes)
    if (body === 'more' && this.#pieces < MAX_PIECES) this.#wait(this.#own(bytes))
    else if (body === 'more' || body === undefined) this.#handOver(this.#own(bytes))
    else this.#serve(body)
  }

  /** What was read, in memory that stays as it is. */
  #own(bytes: Buffer): Buffer {
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
      if (head.lines > this.#shared.maxHeaderLines || head.size > this.#shared.maxHeaderBytes) return undefined
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
    const body = Buffer.isBuffer(received) ? this.#own(received) : this.#expect(received)
    this.#request = new FastRequest(this.#head, body, this, this.#socket, this.#shared)
    this.#shared.events.request(this.#request)
  }

  /** The request is dispatched at its head, as by node:http: a refusal does not wait for the body. */
  #expect({ part, length }: BodyPart): RequestBody {
    this.#sinceMs = this.#shared.nowMs
    return (this.#body = new RequestBody(part, length, this.#socket, this.#shared.bodies))
  }

  #rest(): void {
    this.#socket.pause()
    this.#socket.once('drain', () => this.#socket.resume())
  }

  /** Whether the rest of an unneeded body may be read, so that the connection can be kept. */
  get mayKeep(): boolean {
    return this.#body === undefined || this.#body.missing <= this.#shared.maxUnreadBytes
  }

  /** Closes it after the written bytes; later requests are dropped. */
  #end(): void {
    const isSending = this.#body !== undefined || this.#early !== undefined
    this.#isClosing = true
    this.#stopReading()
    if (isSending) return closeGently(this.#socket, this.#shared, this.#shared.events)
    this.#socket.resume()
    this.#socket.destroySoon()
  }

  #refuseSlow(body: RequestBody): void {
    const { isAwaited } = body
    if (this.#request === undefined) {
      this.#shared.events.reached('listen.limits.request_timeout')
      return void this.#socket.destroy()
    }
    this.#breakOff(body)
    this.#shared.refuseSlow(this.#socket, isAwaited)
  }

  /** The rest of the body is not read. */
  #breakOff(body: RequestBody): void {
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

  /** As node:http: a connection that the host has ended gets no further answer, and an incomplete request is dropped. */
  readonly #onEnd = (): void => {
    if (this.#isClosing) return
    if (this.#body !== undefined) this.#breakOff(this.#body)
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

const NOTHING = Buffer.alloc(0)
const ignore = (): void => undefined
