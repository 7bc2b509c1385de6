/**
 * One HTTP request of a host, from the fast path or from node:http. It can be read within a limit, answered in one write, or
 * become a stream of events. It knows HTTP only; the `host/` module interprets the bytes.
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

/** Below this a reply is joined and written at once; above, its slices go out as they are. */
export const JOIN_BELOW_BYTES = 64 * 1024

const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
}

const NOTHING: Parts = []

export type Headers = Readonly<Record<string, string>>

/** Events of a listener. */
export interface ListenerEvents {
  request(request: HttpRequest): void
  /** A connection could not be accepted, as when no descriptor is left (F-29), or was closed; the others continue. */
  trouble(error: Error): void
  /** A limit was reached, by the path of its option. */
  reached(option: string): void
}

/** How large the head of a request may be, and how slowly it may come. */
export interface RequestLimits extends LingerLimits {
  readonly headersTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
}

/** What all requests of one listener use. */
export interface Shared {
  /** Learns on which connections a request was admitted. */
  readonly caps: Pick<ConnectionCaps, 'proven'>
  /** Takes small replies. */
  readonly batch: WriteBatch
  /** Where big replies of servers lie until they are written. */
  readonly bodies: BodyPool
  /** A host that reads nothing of an answer for this time loses its connection. */
  readonly writeStallMs: number
  readonly events: ListenerEvents
  /** Whether answers are the last ones on their connections. */
  readonly ending: { isEnding: boolean }
  /** The address of a connection's client, behind proxies that say it at the beginning; `undefined`: a unix socket. */
  readonly addressOf: (socket: Socket) => string | undefined
  /** The client of a request whose peer is this: it itself, or what trusted proxies say of it. */
  readonly clientOf: (request: Pick<HttpRequest, 'header'>, peer: string | undefined) => string | undefined
}

/** Why a body was not read: it exceeds its own limit, or what all of them may hold together. */
export type Unread = 'too_large' | 'overloaded'

/** What is found out about a head, kept for the requests that follow with the same one on the same connection. */
export interface HeadNotes {
  /** A bearer token, and its SHA-256. */
  credential: { readonly token: string; readonly digest: Buffer } | undefined
}

/** The system has taken what was written, or `error` says why it has not. */
export type OnTaken = (error?: Error | null) => void

/** Response channel for a body written in pieces: the used part of the stream interface. */
export interface AnswerBody {
  /** `close` was emitted. */
  readonly closed: boolean
  readonly destroyed: boolean
  readonly writableEnded: boolean
  readonly writableLength: number
  /** Writes one piece, which is not empty; a small one is copied. False: wait for `drain`. */
  send(parts: Parts, onTaken?: OnTaken): boolean
  /** The last piece, and the end. */
  finish(parts?: Parts, onTaken?: OnTaken): void
  destroy(): unknown
  /** Closes the connection once what was written is out, without the mark of an end. */
  breakOff(): void
  flushHeaders(): void
  /** `timeout` is emitted after this time without traffic; 0: never. */
  setTimeout(ms: number): unknown
  on(event: 'close' | 'drain' | 'error' | 'timeout', listener: () => void): unknown
  once(event: 'close' | 'drain', listener: () => void): unknown
}

export abstract class HttpRequest {
  abstract readonly method: string
  /** `undefined`: there is no place to keep any. */
  abstract readonly notes: HeadNotes | undefined
  #path: string
  readonly query: string
  protected readonly shared: Shared
  /** Called when the system has taken the whole of a large answer, or its connection broke; small ones are taken at once. */
  onTaken: (() => void) | undefined
  /** Whether the bytes of the request are not needed once the answer is written. */
  isBodyFree = false
  #extraHeaders: Headers | undefined

  /** `target`: path and query. */
  constructor(target: string, shared: Shared) {
    this.shared = shared
    const mark = target.indexOf('?')
    this.#path = mark === -1 ? target : target.slice(0, mark)
    this.query = mark === -1 ? '' : target.slice(mark + 1)
  }

  /** Without query. */
  get path(): string {
    return this.#path
  }

  /** The address of the client, also behind trusted proxies; `undefined`: a unix socket. */
  get client(): string | undefined {
    return this.shared.clientOf(this, this.peerAddress)
  }

  /** Removes a path prefix that the proxy in front did not strip. */
  cutPrefix(prefix: string): void {
    if (this.#path.startsWith(prefix) && this.#path[prefix.length] === '/') this.#path = this.#path.slice(prefix.length)
  }

  /** The address of the peer, or of its client where the PROXY protocol says it; `undefined`: a unix socket. */
  abstract get peerAddress(): string | undefined
  /** A header's value; names in lower case. Repeated ones are joined as node:http does. */
  abstract header(name: string): string | undefined
  /** How often a header came; more than one `Host` is a smuggling attempt. */
  abstract count(name: string): number
  /** All headers, by their names in lower case. */
  abstract headers(): Headers
  /** Runs when the host disconnects before the answer is complete; soon, where it has: the store may have been asked meanwhile. */
  abstract onDisconnect(callback: () => void): void
  /** Reads the body; calls back with the reason once it must not be read to its end (the connection is then not kept). */
  abstract readBody(maxBytes: number, done: (body: Buffer | Unread) => void): void
  /** The caller may come in: its connection is not closed in favour of another one. */
  abstract admitted(): void
  /** Ends a request that cannot be answered: with 500 if no byte was sent, else by breaking the connection. */
  abstract fail(): void

  protected abstract get canAnswer(): boolean
  /** Status, headers and a body of `length` bytes together. */
  protected abstract sendWhole(status: number, headers: Headers, body: Parts, length: number): void
  /** Sends status and headers and returns the body to write to; without `length` the length is not known yet. */
  protected abstract begin(status: number, headers: Headers, length?: number): AnswerBody

  /** Headers for whatever is answered (CORS). */
  addHeaders(headers: Headers): void {
    this.#extraHeaders = { ...this.#extraHeaders, ...headers }
  }

  /** The whole answer in one write. */
  reply(status: number, headers: Headers, body: Parts = NOTHING): void {
    if (!this.canAnswer) return
    const length = byteLength(body)
    if (length < JOIN_BELOW_BYTES) this.sendWhole(status, this.#all(headers), body, length)
    else this.#sendBig(this.begin(status, this.#all(headers), length), body, length)
  }

  /** Answers with a body that is written as it is made; `onFull` and `onDrained` say whether the host takes it. */
  replyInPieces(status: number, headers: Headers, onFull: () => void, onDrained: () => void): BodyWriter {
    const { bodies, writeStallMs: stallMs } = this.shared
    const onStalled = (): void => tellStalled(this.shared)
    return new BodyWriter(this.begin(status, this.#all(headers)), bodies, { onFull, onDrained, stallMs, onStalled })
  }

  /** Answers 200 with a stream of events. */
  openEvents(headers: Headers): EventStream {
    const response = this.begin(200, this.#all({ ...EVENT_HEADERS, ...headers }))
    response.flushHeaders()
    return new EventStream(response, this.shared)
  }

  #all(headers: Headers): Headers {
    return this.#extraHeaders === undefined ? headers : { ...this.#extraHeaders, ...headers }
  }

  #sendBig(response: AnswerBody, body: Parts, length: number): void {
    const { writeStallMs, bodies } = this.shared
    response.setTimeout(writeStallMs)
    response.on('timeout', () => {
      tellStalled(this.shared)
      response.destroy()
    })
    bodies.held.add(length)
    response.once('close', () => bodies.held.release(length))
    response.finish(body, (error) => {
      this.onTaken?.()
      if (!error) bodies.release(body)
    })
  }
}

/** A host took nothing of an answer for too long. */
export const tellStalled = ({ events, writeStallMs }: Shared): void => {
  events.reached('listen.limits.write_stall')
  events.trouble(new Error(`a host took nothing of its answer for ${writeStallMs} ms (listen.limits.write_stall)`))
}
