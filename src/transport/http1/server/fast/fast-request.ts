/**
 * A fast-path request, whose body may be incomplete, and its answer.
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import type { Socket } from 'node:net'
import type { Parts } from '../../../../wire/message/payload.ts'
import { hasBody, HttpRequest } from '../request/http-request.ts'
import type { HeadNotes, Headers, AnswerBody, OnBody, Unread } from '../request/http-request.ts'
import type { FastConnection, FastShared } from './fast-connection.ts'
import type { FastHead } from './fast-head.ts'
import { FastResponse } from './fast-response.ts'
import type { RequestBody } from './request-body.ts'
import { STATUS_TEXTS } from '../request/status-texts.ts'

/** Matches characters that are not allowed in a header value (as in node:http). */
const INVALID_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/

export class FastRequest extends HttpRequest {
  readonly #head: FastHead
  readonly #body: Buffer | RequestBody
  readonly #connection: FastConnection
  readonly #socket: Socket
  readonly #fast: FastShared
  #isAnswered = false
  #response: FastResponse | undefined
  #onDisconnect: (() => void) | undefined
  #isDisconnected = false
  /** The body, if it was joined in pooled memory. */
  #joined: Buffer | undefined

  constructor(head: FastHead, body: Buffer | RequestBody, connection: FastConnection, socket: Socket, shared: FastShared) {
    super(head.target, shared.listener)
    this.#head = head
    this.#body = body
    this.#connection = connection
    this.#socket = socket
    this.#fast = shared
  }

  get method(): string {
    return this.#head.method
  }
  get notes(): HeadNotes {
    return this.#head.notes
  }

  get peerAddress(): string | undefined {
    return this.shared.addressOf(this.#socket)
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
    if (this.#isDisconnected) return process.nextTick(callback)
    const before = this.#onDisconnect
    this.#onDisconnect =
      before === undefined
        ? callback
        : () => {
            before()
            callback()
          }
  }

  /** The host disconnected. */
  disconnected(): void {
    this.#isDisconnected = true
    this.#response?.destroy()
    this.#onDisconnect?.()
  }

  readBody(maxBytes: number, done: OnBody): void {
    const body = this.#body
    if (!Buffer.isBuffer(body))
      return body.read(maxBytes, (read, start) => {
        if (!Buffer.isBuffer(read)) return this.#refuseBody(read, done, start)
        this.#joined = read
        done(read)
      })
    if (body.length <= maxBytes) return done(body)
    this.#refuseBody('too_large', done, body)
  }

  admitted(): void {
    this.#connection.proven()
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
      // Our side has ended: the connection is about to close.
      if (!this.#socket.writable) return
      this.#fast.writeBuffer.write(this.#socket, head, body, length)
      this.#releaseBody()
      this.#connection.answered(isKept)
    })
  }

  protected begin(status: number, headers: Headers, length?: number): AnswerBody {
    const isKept = this.#isKept(headers)
    const head = this.#headOf(status, headers, isKept, length)
    this.#isAnswered = true
    const response = new FastResponse(this.#socket, this.#fast.writeBuffer, head, length === undefined)
    response.once('finish', () => {
      this.#releaseBody()
      this.#connection.answered(isKept)
    })
    this.#response = response
    return response
  }

  #releaseBody(): void {
    if (this.isBodyFree && this.#joined !== undefined) this.shared.bodies.releaseRequest(this.#joined)
    this.#joined = undefined
  }

  #refuseBody(reason: Unread, done: OnBody, start: Buffer | undefined): void {
    this.addHeaders({ Connection: 'close' })
    done(reason, start)
  }

  #isKept(headers: Headers): boolean {
    return headers.Connection === undefined && !this.shared.ending.isEnding && this.#connection.mayKeep
  }

  /** Status line and headers, in the order of node:http. Without `length`, the body is sent in chunks. */
  #headOf(status: number, headers: Headers, isKept: boolean, length: number | undefined): string {
    let head = `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\n`
    for (const name in headers) {
      const value = headers[name] ?? ''
      if (INVALID_IN_VALUE.test(value))
        throw new TypeError(`the value of the header ${name} contains a character that is not allowed`)
      head += `${name}: ${value}\r\n`
    }
    if (length !== undefined && hasBody(status)) head += `Content-Length: ${length}\r\n`
    const { date, limits } = this.#fast
    head += `Date: ${date}\r\n`
    if (isKept) head += `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(limits.keepAliveTimeoutMs / 1_000)}\r\n`
    else if (headers.Connection === undefined) head += 'Connection: close\r\n'
    return length === undefined ? `${head}Transfer-Encoding: chunked\r\n\r\n` : `${head}\r\n`
  }
}
