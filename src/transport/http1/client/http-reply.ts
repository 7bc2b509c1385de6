/**
 * One HTTP request and its whole reply. Safe redirects are followed, SSE is decoded into events, and any other body is collected up to
 * the limit. The channel interprets the reply.
 */
import { Failure } from '../../../wire/message/failure.ts'
import { cleanLabel } from '../../../wire/protocol/label.ts'
import { SseDecoder } from '../../../wire/framing/sse.ts'
import type { SseEvent } from '../../../wire/framing/sse.ts'
import { BIG_BYTES } from '../../body-pool.ts'
import type { ResultSource, StreamedResult } from '../../../wire/result/streamed-result.ts'
import { ContentDecoder } from './content-decoder.ts'
import type { HttpClient, HttpExchange, HttpHandler, HttpRequest } from './http-client.ts'
import type { ReplyHead } from './reply-head.ts'

/** In this order: head, events, one end or failure. No event follows after `abort()`. */
export interface ReplyEvents {
  onHead?(head: ReplyHead): void
  onEvent(event: SseEvent): void
  /** Whether a big JSON body may be streamed; otherwise it is collected. */
  readonly mayStream?: boolean
  /** The beginning of such a body. */
  stream?(bytes: Buffer, source: ResultSource): StreamedResult | 'more' | undefined
  /** More of a JSON body, or of an event that is not complete, was received. */
  onMore?(): void
  /** `body` is empty for SSE, and for a long body that is not JSON. */
  onEnd(head: ReplyHead, body: Buffer): void
  onError(failure: Failure): void
  /** An event over the limit is skipped: its beginning, and then also its end. Absent: the reply fails with `too_large`. */
  onOversize?(head: Buffer, tail?: Buffer): void
}

const MIB = 1024 * 1024
/** Limit of bodies that are not JSON: error pages. */
const MAX_OTHER_BYTES = 64 * 1024
/**
 * Limit of their duration, and of the body of a 202. Some servers, mostly on `http.server` of Python, send a 202 without a length and keep
 * the connection open: its body has no end.
 */
const MAX_OTHER_MS = 5_000
const MAX_REDIRECTS = 3
/** Smaller bodies are collected. */
const STREAM_FROM_BYTES = 64 * 1024
/** Bodies of this size are streamed at once. Smaller ones are streamed only if their server pauses, since a whole body is cheaper. */
const STREAM_AT_ONCE_BYTES = 4 * MIB
const PAUSE_MS = 5
/** Time after its first byte at which a smaller body is streamed even without a pause. */
const MAX_COLLECT_MS = 25
/**
 * A body without a stated length is collected up to the default of `limits.max_message`; over that limit it fails with `too_large`.
 * Beyond this size, under a raised limit, it is streamed, and the stream fails where it exceeds the limit.
 */
const STREAM_UNKNOWN_ABOVE_BYTES = 16 * MIB
const EMPTY = Buffer.alloc(0)

/** Receives the head of an accepted reply first. */
export interface HeadWatcher {
  onHead(head: ReplyHead): void
}

/** Size of one message, in bytes. It may change while a reply is read. */
export interface MessageLimit {
  readonly maxMessageBytes: number
}

/** Sends `request`. Follows up to three same-origin redirects with 307 or 308. Every other redirect fails. */
export class Reply implements HttpHandler {
  readonly #client: HttpClient
  readonly #events: ReplyEvents
  readonly #watcher: HeadWatcher | undefined
  readonly #limit: MessageLimit
  #request: HttpRequest
  #exchange: HttpExchange
  #redirects = 0
  #head: ReplyHead | undefined
  #decoder: SseDecoder | undefined
  /** Decoder of an encoded body. */
  #content: ContentDecoder | undefined
  /** Buffer for the whole body if its length is known, otherwise for the received part. */
  #body: Buffer = EMPTY
  #size = 0
  /** Bytes of the body that count against `limits.in_flight_bytes`: all of a big body. */
  #reserved = 0
  #mayStream = false
  /** Fires when a body of a known length pauses, or after `MAX_COLLECT_MS`. */
  #pauseTimer: NodeJS.Timeout | undefined
  /** Ends a body that is not JSON, or of a 202, after `MAX_OTHER_MS`. */
  #otherTimer: NodeJS.Timeout | undefined
  #firstMs = 0
  #length = 0
  #streamed: StreamedResult | undefined
  #isOver = false

  constructor(client: HttpClient, request: HttpRequest, limit: MessageLimit, events: ReplyEvents, watcher?: HeadWatcher) {
    this.#client = client
    this.#watcher = watcher
    this.#request = request
    this.#limit = limit
    this.#events = events
    this.#exchange = client.request(request, this)
  }

  /** The URL of the reply, after redirects. */
  get url(): URL {
    return this.#request.url
  }

  abort(): void {
    this.#exchange.abort()
    if (this.#isOver) return
    this.#isOver = true
    this.#release()
    this.#streamed?.fail(new Failure('lost', 'the request was aborted'))
  }

  /** Pauses reading until the returned function is called. */
  pause(): () => void {
    const content = this.#content
    this.#exchange.pause()
    content?.pause()
    return () => {
      this.#exchange.resume()
      content?.resume()
    }
  }

  onHead(head: ReplyHead): void {
    const { status, form, length, encoding } = head
    if (status >= 300 && status < 400) return this.#redirect(status, head.headers.location)
    this.#head = head
    if (form === 'json' && length > this.#limit.maxMessageBytes) return this.#tooLarge()
    if (encoding !== undefined) this.#decodeContent(encoding, head)
    if (form === 'sse') this.#decoder = this.#makeDecoder()
    // The length of an encoded body is not the decoded length.
    else if (form === 'json' && encoding === undefined) this.#expect(status, length)
    if (this.#isOver) return
    if (form === 'other' || (form === 'json' && status === 202)) this.#otherTimer = setTimeout(() => this.#cut(), MAX_OTHER_MS)
    this.#watcher?.onHead(head)
    this.#events.onHead?.(head)
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#content === undefined) this.#onContent(chunk)
    else this.#content.push(chunk)
  }

  #onContent(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#decoder !== undefined) return this.#decode(chunk, this.#decoder)
    if (this.#head?.form === 'json') this.#events.onMore?.()
    if (this.#streamed !== undefined) return this.#streamChunk(chunk, this.#streamed)
    if (this.#mayStream && this.#size === 0 && this.#length >= STREAM_AT_ONCE_BYTES && this.#tryStream(chunk)) return
    this.#collect(chunk)
    if (this.#pauseTimer !== undefined) this.#refreshPauseTimer(this.#pauseTimer)
    if (this.#head?.form === 'json' && this.#size > this.#limit.maxMessageBytes) this.#tooLarge()
    else if (this.#mayStream && this.#size > STREAM_UNKNOWN_ABOVE_BYTES) this.#tryStream(this.#body.subarray(0, this.#size))
    else if (this.#head?.form === 'other' && this.#size > MAX_OTHER_BYTES) {
      this.#size = 0
      this.#cut()
    }
  }

  /** Ends the reply with the received part of its body. */
  #cut(): void {
    this.#exchange.abort()
    this.#finish()
  }

  onEnd(): void {
    if (this.#content === undefined) this.#finish()
    else if (!this.#isOver) this.#content.end()
  }

  #finish(): void {
    if (this.#isOver || this.#head === undefined) return
    this.#isOver = true
    this.#release()
    this.#streamed?.finish()
    this.#events.onEnd(this.#head, this.#streamed === undefined ? this.#collected() : EMPTY)
  }

  onError(failure: Failure): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#release()
    this.#streamed?.fail(failure)
    this.#events.onError(failure)
  }

  #expect(status: number, length: number): void {
    this.#mayStream = status === 200 && this.#events.mayStream === true && (length === 0 || length >= STREAM_FROM_BYTES)
    this.#length = length
    if (length === 0 || (this.#mayStream && length >= STREAM_AT_ONCE_BYTES) || !this.#reserve(length)) return
    this.#body = this.#client.bodies.lease(length)
    if (this.#mayStream) this.#pauseTimer = setTimeout(() => this.#paused(), PAUSE_MS)
  }

  /** More was received: restarts the timer, except close to `MAX_COLLECT_MS`. */
  #refreshPauseTimer(timer: NodeJS.Timeout): void {
    const nowMs = performance.now()
    if (this.#firstMs === 0) this.#firstMs = nowMs
    if (nowMs - this.#firstMs < MAX_COLLECT_MS - PAUSE_MS) timer.refresh()
  }

  /** The server paused within the body: the received part is streamed to the host. */
  #paused(): void {
    if (this.#size === 0 || !this.#tryStream(this.#body.subarray(0, this.#size))) this.#pauseTimer?.refresh()
  }

  /** If the encoding is not supported, the reply ends. An error status counts without its body. */
  #decodeContent(encoding: string, head: ReplyHead): void {
    const { status } = head
    const fail = (why: string, cause?: Error): void => {
      this.#exchange.abort()
      if (status < 400) return this.onError(new Failure('bad_response', why, { status }, cause))
      this.#size = 0
      this.#finish()
    }
    this.#content = ContentDecoder.of(encoding, {
      onData: (piece) => this.#onContent(piece),
      onEnd: () => this.#finish(),
      onError: (error) => fail(`the body does not match its Content-Encoding (${encoding}): ${error.message}`, error),
      onFull: (isFull) => (isFull ? this.#exchange.pause() : this.#exchange.resume()),
    })
    if (this.#content !== undefined) return
    if (status >= 400) this.#events.onHead?.(head)
    fail(`the body has an encoding that was not requested and is not supported (${encoding})`)
  }

  /** Starts the stream if the received part allows it. Returns whether the body is streamed. */
  #tryStream(bytes: Buffer): boolean {
    const source = { pause: () => this.#exchange.pause(), resume: () => this.#exchange.resume(), abort: () => this.abort() }
    const streamed = this.#events.stream?.(bytes, source)
    if (streamed === 'more') return false
    this.#mayStream = false
    this.#pauseTimer = undefined
    if (streamed === undefined) {
      if (this.#length > this.#body.length && this.#reserve(this.#length)) this.#moveTo(this.#client.bodies.lease(this.#length))
      return false
    }
    this.#streamed = streamed
    this.#release()
    this.#body = EMPTY
    return true
  }

  #streamChunk(chunk: Buffer, streamed: StreamedResult): void {
    this.#size += chunk.length
    if (this.#size > this.#limit.maxMessageBytes) return this.#tooLarge()
    streamed.push(chunk)
  }

  /** Copies once if the length is known; otherwise the buffer doubles. */
  #collect(chunk: Buffer): void {
    const size = this.#size + chunk.length
    if (size > this.#body.length) {
      const capacity = Math.max(2 * this.#body.length, size)
      if (!this.#reserve(capacity)) return
      const { bodies } = this.#client
      const previous = this.#body
      this.#moveTo(bodies.lease(capacity))
      bodies.giveBack(previous)
    }
    chunk.copy(this.#body, this.#size)
    this.#size = size
  }

  /** Reserves memory for a big body. False: the limit is reached, and the reply has failed. */
  #reserve(bytes: number): boolean {
    if (this.#isOver) return false
    if (bytes < BIG_BYTES) return true
    const more = bytes - this.#reserved
    const { held } = this.#client.bodies
    if (!held.hasRoomFor(more)) {
      this.#exchange.abort()
      this.#body = EMPTY
      const limit = 'limits.in_flight_bytes'
      const text = `no memory for a response of ${bytes} bytes: ${limit} (${held.max}) reached twice over`
      this.onError(new Failure('overloaded', text, { limit }))
      return false
    }
    held.add(more)
    this.#reserved = bytes
    return true
  }

  /** Releases the timers, the decoder and the reserved bytes. */
  #release(): void {
    clearTimeout(this.#pauseTimer)
    clearTimeout(this.#otherTimer)
    this.#content?.destroy()
    this.#client.bodies.held.release(this.#reserved)
    this.#reserved = 0
  }

  #collected(): Buffer {
    return this.#size === this.#body.length ? this.#body : this.#body.subarray(0, this.#size)
  }

  #moveTo(buffer: Buffer): void {
    this.#body.copy(buffer, 0, 0, this.#size)
    this.#body = buffer
  }

  #decode(chunk: Buffer, decoder: SseDecoder): void {
    decoder.push(chunk, true)
    if (decoder.hasBegun) this.#events.onMore?.()
  }

  #makeDecoder(): SseDecoder {
    const limit = this.#limit
    return new SseDecoder({
      get maxEventBytes() {
        return limit.maxMessageBytes
      },
      memory: this.#client.bodies,
      expected: this.#client.bodies.events,
      onEvent: (event) => {
        if (!this.#isOver) this.#events.onEvent(event)
      },
      onOversize: (head, tail) => {
        if (this.#isOver) return
        if (this.#events.onOversize === undefined) this.#tooLarge()
        else this.#events.onOversize(head, tail)
      },
    })
  }

  /** Credentials and body are sent to the original origin only. */
  #redirect(status: number, location: string | undefined): void {
    this.#exchange.abort()
    const from = this.#request.url
    const to = URL.parse(location ?? '', from.href)
    const isSafe = (status === 307 || status === 308) && location !== undefined && to?.origin === from.origin
    if (!isSafe || ++this.#redirects > MAX_REDIRECTS) {
      const facts = { status, executed: status === 303 ? 'unknown' : 'no' } as const
      const why = isSafe ? 'too many redirects' : 'only 307 and 308 within the same origin are followed'
      return this.onError(
        new Failure('bad_response', `the server answered HTTP ${status} to ${shownLocation(location, to)}: ${why}`, facts),
      )
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
    this.onError(tooLarge(this.#limit.maxMessageBytes))
  }
}

/** The target of a redirect, without user information and query, which may contain secrets. */
export const shownLocation = (location: string | undefined, url: URL | null): string => {
  if (location === undefined || location === '') return 'nowhere (no Location)'
  return JSON.stringify(
    url === null ? cleanLabel(location).slice(0, 200) : `${url.protocol}//${url.host}${url.pathname}`.slice(0, 200),
  )
}

/** A message from the server over the limit. */
export const tooLarge = (maxMessageBytes: number): Failure =>
  new Failure('too_large', `a message exceeds limits.max_message (${maxMessageBytes} bytes)`, {
    amount: maxMessageBytes / MIB,
    limit: 'limits.max_message',
  })
