/**
 * One HTTP request and its whole reply: redirects followed where that is safe, SSE taken apart into events, any other body
 * collected under the cap. What the reply means is for the channel to say.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Failure } from '../wire/failure.ts'
import { SseDecoder } from '../wire/sse.ts'
import type { SseEvent } from '../wire/sse.ts'
import { BIG_BYTES } from './body-pool.ts'
import type { HttpClient, HttpExchange, HttpHandler, HttpRequest } from './http-client.ts'
import type { HttpHead } from './http-failure.ts'

export interface ReplyHead extends HttpHead {
  readonly form: 'json' | 'sse' | 'other'
  /** Where the reply came from, after redirects. */
  readonly url: URL
}

/** In this order: head, events, one end or failure. Nothing comes after `abort()`. */
export interface ReplyEvents {
  onHead?(head: ReplyHead): void
  onEvent(event: SseEvent): void
  /** `body` is empty for SSE, and for what is neither JSON nor short. */
  onEnd(head: ReplyHead, body: Buffer): void
  onError(failure: Failure): void
  /** An event over the cap was skipped. Absent: the reply fails with `too_large`. */
  onOversize?(): void
}

/** A body that is not JSON is read only as far as an error page goes. */
const MAX_OTHER_BYTES = 64 * 1024
const MAX_REDIRECTS = 3
const MIB = 1024 * 1024
const EMPTY = Buffer.alloc(0)

/** Sends `request`; same-origin 307 and 308 are followed three times, every other redirect fails. */
export class Reply implements HttpHandler {
  readonly #client: HttpClient
  readonly #events: ReplyEvents
  readonly #maxMessageBytes: number
  #request: HttpRequest
  #exchange: HttpExchange
  #redirects = 0
  #head: ReplyHead | undefined
  #decoder: SseDecoder | undefined
  /** Room for all of a body whose length is known, else for what has come. */
  #body: Buffer = EMPTY
  #size = 0
  /** What of it counts as held: all of a big one. */
  #held = 0
  #isOver = false

  constructor(client: HttpClient, request: HttpRequest, maxMessageBytes: number, events: ReplyEvents) {
    this.#client = client
    this.#request = request
    this.#maxMessageBytes = maxMessageBytes
    this.#events = events
    this.#exchange = client.request(request, this)
  }

  abort(): void {
    this.#isOver = true
    this.#release()
    this.#exchange.abort()
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    if (status >= 300 && status < 400) return this.#redirect(status, headers.location)
    const head: ReplyHead = { status, headers, form: formOf(headers['content-type']), url: this.#request.url }
    this.#head = head
    const length = Number(headers['content-length'] ?? 0)
    if (head.form === 'json' && length > this.#maxMessageBytes) return this.#tooLarge()
    if (head.form === 'sse') this.#decoder = this.#decode()
    else if (head.form === 'json' && length > 0) {
      if (!this.#mayHold(length)) return
      this.#body = this.#client.bodies.lease(length)
    }
    this.#events.onHead?.(head)
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#decoder !== undefined) return this.#decoder.push(Buffer.from(chunk))
    this.#keep(chunk)
    if (this.#head?.form === 'json' && this.#size > this.#maxMessageBytes) this.#tooLarge()
    else if (this.#head?.form === 'other' && this.#size > MAX_OTHER_BYTES) {
      this.#exchange.abort()
      this.#size = 0
      this.onEnd()
    }
  }

  onEnd(): void {
    if (this.#isOver || this.#head === undefined) return
    this.#isOver = true
    this.#release()
    this.#events.onEnd(this.#head, this.#body.subarray(0, this.#size))
  }

  onError(failure: Failure): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#release()
    this.#events.onError(failure)
  }

  /** One copy where the length was known; where not, the room doubles. */
  #keep(chunk: Buffer): void {
    const size = this.#size + chunk.length
    if (size > this.#body.length) {
      if (!this.#mayHold(Math.max(2 * this.#body.length, size))) return
      const room = Buffer.allocUnsafe(this.#size === 0 ? size : Math.max(2 * this.#body.length, size))
      this.#body.copy(room, 0, 0, this.#size)
      this.#body = room
    }
    chunk.copy(this.#body, this.#size)
    this.#size = size
  }

  /** Small bodies are not worth counting. False: there is no room for this one, and the reply has failed. */
  #mayHold(bytes: number): boolean {
    const more = bytes - this.#held
    if (bytes < BIG_BYTES || more <= 0) return true
    const { held } = this.#client.bodies
    if (!held.hasRoomFor(more)) {
      this.#exchange.abort()
      this.#body = EMPTY
      const limit = 'limits.in_flight_bytes'
      const words = `an answer of ${bytes} bytes has no room: ${limit} (${held.max}) reached twice over`
      this.onError(new Failure('overloaded', words, { limit }))
      return false
    }
    held.add(more)
    this.#held = bytes
    return true
  }

  #release(): void {
    this.#client.bodies.held.release(this.#held)
    this.#held = 0
  }

  #decode(): SseDecoder {
    return new SseDecoder({
      maxEventBytes: this.#maxMessageBytes,
      onEvent: (event) => {
        if (!this.#isOver) this.#events.onEvent(event)
      },
      onOversize: () => {
        if (this.#events.onOversize === undefined) this.#tooLarge()
        else this.#events.onOversize()
      },
    })
  }

  /** The credentials and the body go nowhere but to the origin they were meant for. */
  #redirect(status: number, location: string | undefined): void {
    this.#exchange.abort()
    const from = this.#request.url
    const to = URL.parse(location ?? '', from.href)
    const isSafe = (status === 307 || status === 308) && location !== undefined && to?.origin === from.origin
    if (!isSafe || ++this.#redirects > MAX_REDIRECTS) {
      const facts = { status, executed: status === 303 ? 'unknown' : 'no' } as const
      const why = isSafe ? 'too many redirects' : 'only 307 and 308 within the same origin are followed'
      return this.onError(new Failure('bad_response', `the server answered HTTP ${status}: ${why}`, facts))
    }
    to.username = from.username
    to.password = from.password
    this.#request = { ...this.#request, url: to }
    this.#exchange = this.#client.request(this.#request, this)
  }

  #tooLarge(): void {
    if (this.#isOver) return
    this.#exchange.abort()
    this.#body = EMPTY
    this.onError(tooLarge(this.#maxMessageBytes))
  }
}

/** A message from the server over the cap. */
export const tooLarge = (maxMessageBytes: number): Failure =>
  new Failure('too_large', `a message exceeds limits.max_message (${maxMessageBytes} bytes)`, {
    amount: maxMessageBytes / MIB,
    limit: 'limits.max_message',
  })

const formOf = (contentType: string | undefined): ReplyHead['form'] => {
  if (contentType === 'application/json') return 'json'
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'text/event-stream') return 'sse'
  return type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json')) ? 'json' : 'other'
}
