/**
 * One HTTP request of a host, read by the fast path or by node:http. The body is read up to a limit. The answer is one write, a body in
 * pieces, or a stream of events. This file knows HTTP only; the `host/` module interprets the bytes.
 */
import type { Socket } from 'node:net'
import type { Parts } from '../../../../wire/message/payload.ts'
import { byteLength } from '../../../../wire/message/payload.ts'
import type { BodyPool } from '../../../body-pool.ts'
import { BodyWriter } from './body-writer.ts'
import type { ConnectionCaps } from '../connection/connection-caps.ts'
import { EventStream } from './event-stream.ts'
import type { LingerLimits } from '../connection/lingering.ts'
import type { WriteBatch } from '../../write-batch.ts'

/** A shorter reply is joined and written at once. The parts of a longer one are written without a copy. */
export const JOIN_BELOW_BYTES = 64 * 1024

const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
}

const NO_PARTS: Parts = []

export type Headers = Readonly<Record<string, string>>

/** Events of a listener. */
export interface ListenerEvents {
  request(request: HttpRequest): void
  /** A connection could not be accepted (no descriptor is left, F-29) or was closed. Other connections continue. */
  trouble(error: Error): void
  /** A limit was reached; `option`: its path in the configuration. */
  reached(option: string): void
  /** A stream has ended before its host has read all of it. It needs to be swept until it closes. */
  finishing?(stream: EventStream): void
}

/** Limits of the head of a request: size and time. */
export interface RequestLimits extends LingerLimits {
  readonly headersTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
}

/** State that the requests of one listener share. */
export interface ListenerState {
  /** Is notified of connections with an admitted request. */
  readonly caps: Pick<ConnectionCaps, 'proven'>
  /** Joins the writes of small replies. */
  readonly batch: WriteBatch
  /** Memory of large replies until they are written. */
  readonly bodies: BodyPool
  /** The connection of a host that reads nothing of an answer for this time is closed. */
  readonly writeStallMs: number
  readonly events: ListenerEvents
  /** `isEnding`: each answer is the last one on its connection. */
  readonly ending: { isEnding: boolean }
  /** The address of a connection's client, from the PROXY header where there is one; `undefined`: a unix socket. */
  readonly addressOf: (socket: Socket) => string | undefined
  /** The client of a request: the peer, or the address that trusted proxies state in a header. */
  readonly clientOf: (request: Pick<HttpRequest, 'header'>, peer: string | undefined) => string | undefined
}

/** Why a body was not read: it exceeds its own limit (`too_large`) or the memory limit of all bodies (`overloaded`). */
export type Unread = 'too_large' | 'overloaded'

/** `start`: what was received of a body that is too large. Valid during the call. */
export type OnBody = (body: Buffer | Unread, start?: Buffer) => void

/** Results computed from a head. They are kept for later requests of the connection with the same head. */
export interface HeadNotes {
  /** A bearer token and its SHA-256. */
  credential: { readonly token: string; readonly digest: Buffer } | undefined
}

/** The bytes are in the kernel; `error`: why they are not. */
export type OnTaken = (error?: Error | null) => void

/** The part of a writable stream that is used for a body in pieces. */
export interface AnswerBody {
  /** `close` was emitted. */
  readonly closed: boolean
  readonly destroyed: boolean
  readonly writableEnded: boolean
  readonly writableLength: number
  /** Bytes written to the connection that the system has taken so far; `undefined`: unknown. */
  readonly takenBytes: number | undefined
  /** Writes one piece, which is not empty; a small one is copied. False: wait for `drain`. */
  send(parts: Parts, onTaken?: OnTaken): boolean
  /** The last piece, and the end. */
  finish(parts?: Parts, onTaken?: OnTaken): void
  destroy(): unknown
  /** Closes the connection after the written bytes, without the end of the body. */
  breakOff(): void
  flushHeaders(): void
  /** `timeout` is emitted when bytes wait and the host takes none of them for this time; 0: never. */
  setTimeout(ms: number): unknown
  on(event: 'close' | 'drain' | 'error' | 'timeout', listener: () => void): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
}

/** Whether an answer of this status has a body, and thus a length ([RFC 9110 8.6]). */
export const hasBody = (status: number): boolean => status !== 204

export abstract class HttpRequest {
  abstract readonly method: string
  /** `undefined`: nothing is kept for later requests. */
  abstract readonly notes: HeadNotes | undefined
  #path: string
  readonly query: string
  protected readonly shared: ListenerState
  /** Called when the kernel has all bytes of a large answer, or when its connection broke. Not called for small answers. */
  onTaken: (() => void) | undefined
  /** Whether the memory of the body may be reused after the answer is written. */
  isBodyFree = false
  #extraHeaders: Headers | undefined

  /** `target`: path and query. */
  constructor(target: string, shared: ListenerState) {
    this.shared = shared
    const mark = target.indexOf('?')
    this.#path = mark === -1 ? target : target.slice(0, mark)
    this.query = mark === -1 ? '' : target.slice(mark + 1)
  }

  /** Without query. */
  get path(): string {
    return this.#path
  }

  /** The address of the client, which may be behind trusted proxies; `undefined`: a unix socket. */
  get client(): string | undefined {
    return this.shared.clientOf(this, this.peerAddress)
  }

  /** Removes a path prefix that a reverse proxy did not remove. */
  cutPrefix(prefix: string): void {
    if (this.#path.startsWith(prefix) && this.#path[prefix.length] === '/') this.#path = this.#path.slice(prefix.length)
  }

  /** The address of the peer, or of its client according to the PROXY protocol; `undefined`: a unix socket. */
  abstract get peerAddress(): string | undefined
  /** The value of a header; `name`: in lower case. Repeated headers are joined as by node:http. */
  abstract header(name: string): string | undefined
  /** How often a header was sent. More than one `Host` is a smuggling attempt. */
  abstract count(name: string): number
  /** All headers by lower-case name. */
  abstract headers(): Headers
  /** Runs `callback` when the host disconnects before the answer is complete; in the next tick if it already disconnected. */
  abstract onDisconnect(callback: () => void): void
  /** Reads the body. Calls back with the body, or with the reason why it was refused; the connection is then closed. */
  abstract readBody(maxBytes: number, done: OnBody): void
  /** The request was admitted: its connection is not closed in favour of a newer one. */
  abstract admitted(): void
  /** Ends a request that cannot be answered: with 500 if no byte was sent, else by destroying the connection. */
  abstract fail(): void

  protected abstract get canAnswer(): boolean
  /** Sends status, headers and a body of `length` bytes in one write. */
  protected abstract sendWhole(status: number, headers: Headers, body: Parts, length: number): void
  /** Sends status and headers, and returns the body stream; `length`: bytes of the body, if known. */
  protected abstract begin(status: number, headers: Headers, length?: number): AnswerBody

  /** Adds headers to any answer of this request (CORS). */
  addHeaders(headers: Headers): void {
    this.#extraHeaders = { ...this.#extraHeaders, ...headers }
  }

  /** Sends the whole answer. */
  reply(status: number, headers: Headers, body: Parts = NO_PARTS): void {
    if (!this.canAnswer) return
    const length = byteLength(body)
    if (length < JOIN_BELOW_BYTES) this.sendWhole(status, this.#all(headers), body, length)
    else this.#sendBig(this.begin(status, this.#all(headers), length), body, length)
  }

  /** Answers with a body that is written in pieces. `onFull` and `onDrained` report backpressure of the host. */
  replyInPieces(status: number, headers: Headers, onFull: () => void, onDrained: () => void): BodyWriter {
    const { bodies, writeStallMs: stallMs } = this.shared
    const onStalled = (): void => reportStalled(this.shared)
    return new BodyWriter(this.begin(status, this.#all(headers)), bodies, { onFull, onDrained, stallMs, onStalled })
  }

  /** Answers 200 with a stream of events. */
  openEvents(headers: Headers): EventStream {
    return new EventStream(this.begin(200, this.#all({ ...EVENT_HEADERS, ...headers })), this.shared)
  }

  #all(headers: Headers): Headers {
    return this.#extraHeaders === undefined ? headers : { ...this.#extraHeaders, ...headers }
  }

  /** Closes the connection if the host takes nothing of the answer for `writeStallMs`. */
  protected closeIfStalled(response: AnswerBody): void {
    response.setTimeout(this.shared.writeStallMs)
    response.on('timeout', () => {
      reportStalled(this.shared)
      response.destroy()
    })
  }

  #sendBig(response: AnswerBody, body: Parts, length: number): void {
    const { bodies } = this.shared
    this.closeIfStalled(response)
    bodies.held.add(length)
    response.once('close', () => bodies.held.release(length))
    response.finish(body, (error) => {
      this.onTaken?.()
      if (!error) bodies.release(body)
    })
  }
}

/** Reports that a host read nothing of its answer for `writeStallMs`. */
export const reportStalled = ({ events, writeStallMs }: ListenerState): void => {
  events.reached('listen.limits.write_stall')
  events.trouble(new Error(`a host read nothing of its answer for ${writeStallMs} ms (listen.limits.write_stall)`))
}
