/**
 * A connection of a host as long as only plain requests come on it, one at a time. Whatever else comes is node:http's, with the bytes
 * that have been read and all that follow; a host can see no difference.
 *
 *   idle ─▶ part of a request ─▶ request under way ─▶ answered ─▶ idle …
 *     └──────────┴── not plain, more than one at a time, too slow ──┴─▶ node:http, for good
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Parts } from '../wire/payload.ts'
import { refuse } from './connection-caps.ts'
import { HttpRequest, tellStalled } from './http-request.ts'
import type { HeadNotes, Headers, Outgoing, Shared, Unread } from './http-request.ts'
import { PlainHead } from './plain-head.ts'
import { PlainResponse } from './plain-response.ts'
import type { WriteRoom } from './write-room.ts'

/** What may be in a value, as node:http has it. */
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/
/** Whoever has begun a request, or not, for so long, ms: node:http knows what to say to the slow. Times are up to a sweep old. */
const SLOW_MS = 2_000
/** Longer than the host was told, by a second at least, so that none of its requests crosses our close, as node:http does. */
const IDLE_MARGIN_MS = 2_000

/** What may come before its turn; more is not read yet. */
const MAX_EARLY_BYTES = 64 * 1024

/** What the plain connections of one listener use. */
export interface PlainShared extends Shared {
  readonly room: WriteRoom
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  /** Time of the last sweep, monotonic. */
  readonly nowMs: number
  /** `Date: …`, for this second. */
  readonly date: string
  /** No connection is kept any more. */
  readonly isClosing: boolean
  /** It is not ours any more: `early` is what was read of it. */
  handOver(connection: PlainConnection, socket: Socket, early: Buffer): void
  closed(connection: PlainConnection): void
}

export class PlainConnection {
  readonly #socket: Socket
  readonly #shared: PlainShared
  /** Of the request before: mostly that of the next one too. */
  #head: PlainHead | undefined
  /** Part of a request. */
  #begun: Buffer | undefined
  #request: PlainRequest | undefined
  /** Came while a request was under way. */
  #early: Buffer | undefined
  #isAnswered = false
  #sinceMs: number

  constructor(socket: Socket, shared: PlainShared) {
    this.#socket = socket
    this.#shared = shared
    this.#sinceMs = shared.nowMs
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('error', ignore)
    socket.on('close', this.#onClose)
  }

  /** The last answer has been given and no request has begun. */
  get isIdle(): boolean {
    return this.#request === undefined && this.#begun === undefined
  }

  /** Closes it if nothing is under way. */
  closeIdle(): void {
    if (this.isIdle) this.#end()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  sweep(nowMs: number): void {
    const { keepAliveTimeoutMs, writeStallMs } = this.#shared
    const forMs = nowMs - this.#sinceMs
    if (this.#request !== undefined) return
    if (this.#socket.writableLength > 0) {
      if (forMs < writeStallMs) return
      tellStalled(this.#shared)
      this.#socket.destroy()
    } else if (!this.#isAnswered || this.#begun !== undefined) {
      if (forMs >= SLOW_MS) this.#handOver(this.#begun ?? NOTHING)
    } else if (forMs >= keepAliveTimeoutMs + IDLE_MARGIN_MS) this.#end()
  }

  /** The answer to its request is out; `isKept`: another may follow. */
  answered(isKept: boolean): void {
    this.#request = undefined
    this.#isAnswered = true
    this.#sinceMs = this.#shared.nowMs
    if (!isKept || !this.#socket.writable) this.#end()
    else if (this.#early !== undefined) this.#handOver(this.#early)
    else if (this.#shared.isClosing) this.#end()
    // Who does not take its answers is not asked for more requests.
    else if (this.#socket.writableNeedDrain) this.#rest()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#request !== undefined) {
      this.#early = this.#early === undefined ? chunk : Buffer.concat([this.#early, chunk])
      if (this.#early.length > MAX_EARLY_BYTES) this.#socket.pause()
      return
    }
    const begun = this.#begun
    const bytes = begun === undefined ? chunk : Buffer.concat([begun, chunk])
    const body = this.#bodyIn(bytes)
    if (Buffer.isBuffer(body)) this.#serve(body)
    // A head and a body may come by themselves; who needs more pieces than that is no usual client.
    else if (body === 'more' && begun === undefined) this.#wait(bytes)
    else this.#handOver(bytes)
  }

  #bodyIn(bytes: Buffer): Buffer | 'more' | undefined {
    let body = this.#head?.bodyIn(bytes)
    if (body === undefined) {
      const head = PlainHead.read(bytes)
      if (head === 'more' || head === undefined) return head
      if (head.lines > this.#shared.maxHeaderLines || head.size > this.#shared.maxHeaderBytes) return undefined
      this.#head = head
      body = head.bodyIn(bytes)
    }
    return body === 'beyond' ? undefined : body
  }

  #wait(bytes: Buffer): void {
    this.#begun = bytes
    this.#sinceMs = this.#shared.nowMs
  }

  #serve(body: Buffer): void {
    this.#begun = undefined
    if (this.#head === undefined) return
    this.#request = new PlainRequest(this.#head, body, this, this.#socket, this.#shared)
    this.#shared.events.request(this.#request)
  }

  #rest(): void {
    this.#socket.pause()
    this.#socket.once('drain', () => this.#socket.resume())
  }

  /** Closes it once what was written is out; what comes behind the last answer is not read (RFC 9112, 9.6). */
  #end(): void {
    this.#socket.off('data', this.#onData)
    this.#socket.resume()
    this.#socket.destroySoon()
  }

  #handOver(early: Buffer): void {
    const socket = this.#socket
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('error', ignore)
    socket.off('close', this.#onClose)
    this.#shared.handOver(this, socket, early)
  }

  /** As node:http: who says no more is not answered any more, and half a request is none. */
  readonly #onEnd = (): void => {
    if (this.#begun === undefined) return void this.#socket.end()
    this.#begun = undefined
    refuse(this.#socket, 400, '')
  }

  readonly #onClose = (): void => {
    this.#shared.closed(this)
    this.#request?.disconnected()
  }
}

const NOTHING = Buffer.alloc(0)
const ignore = (): void => undefined

class PlainRequest extends HttpRequest {
  readonly method = 'POST'
  readonly #head: PlainHead
  readonly #body: Buffer
  readonly #connection: PlainConnection
  readonly #socket: Socket
  readonly #plain: PlainShared
  #isAnswered = false
  #response: PlainResponse | undefined
  #onDisconnect: (() => void) | undefined

  constructor(head: PlainHead, body: Buffer, connection: PlainConnection, socket: Socket, shared: PlainShared) {
    super(head.target, shared)
    this.#head = head
    this.#body = body
    this.#connection = connection
    this.#socket = socket
    this.#plain = shared
  }

  get notes(): HeadNotes {
    return this.#head.notes
  }

  header(name: string): string | undefined {
    const { headers } = this.#head
    return Object.hasOwn(headers, name) ? headers[name] : undefined
  }

  count(name: string): number {
    return Object.hasOwn(this.#head.headers, name) ? 1 : 0
  }

  headers(): Headers {
    return this.#head.headers
  }

  onDisconnect(callback: () => void): void {
    const before = this.#onDisconnect
    this.#onDisconnect =
      before === undefined
        ? callback
        : () => {
            before()
            callback()
          }
  }

  disconnected(): void {
    this.#response?.destroy()
    this.#onDisconnect?.()
  }

  readBody(maxBytes: number, done: (body: Buffer | Unread) => void): void {
    if (this.#body.length <= maxBytes) return done(this.#body)
    this.addHeaders({ Connection: 'close' })
    done('too_large')
  }

  fail(): void {
    if (this.#isAnswered) this.#socket.destroy()
    else this.reply(500, { Connection: 'close' })
  }

  protected get canAnswer(): boolean {
    return !this.#isAnswered && !this.#socket.destroyed
  }

  protected sendWhole(status: number, headers: Headers, body: Parts, length: number): void {
    const isKept = this.#isKept(headers)
    const head = this.#headOf(status, headers, isKept, length)
    this.#isAnswered = true
    this.shared.batch.add(() => {
      // The host has said that it says no more: its connection is about to close.
      if (!this.#socket.writable) return
      this.#plain.room.write(this.#socket, head, body, length)
      this.#connection.answered(isKept)
    })
  }

  protected begin(status: number, headers: Headers, length?: number): Outgoing {
    const isKept = this.#isKept(headers)
    const head = this.#headOf(status, headers, isKept, length)
    this.#isAnswered = true
    const response = new PlainResponse(this.#socket, head, length === undefined)
    response.on('error', ignore)
    response.once('finish', () => this.#connection.answered(isKept))
    this.#response = response
    return response
  }

  #isKept(headers: Headers): boolean {
    return headers.Connection === undefined && !this.#plain.isClosing
  }

  /** Everything up to the body, in the order of node:http; without `length`, the body comes in chunks. */
  #headOf(status: number, headers: Headers, isKept: boolean, length: number | undefined): string {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
    for (const name in headers) {
      const value = headers[name] ?? ''
      if (NO_VALUE.test(value)) throw new TypeError(`a header of an answer cannot say what ${name} would have said`)
      head += `${name}: ${value}\r\n`
    }
    if (length !== undefined) head += `Content-Length: ${length}\r\n`
    const { date, keepAliveTimeoutMs } = this.#plain
    head += `Date: ${date}\r\n`
    if (isKept) head += `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveTimeoutMs / 1_000)}\r\n`
    else if (headers.Connection === undefined) head += 'Connection: close\r\n'
    return length === undefined ? `${head}Transfer-Encoding: chunked\r\n\r\n` : `${head}\r\n`
  }
}
