/**
 * One request of a host and the way its answer goes: a pipe, an SSE connection, or an HTTP response that decides late whether
 * it is one JSON body or a stream of events (BRIDGING 5.1, JSON or SSE).
 */
import type { EventStream, HttpRequest } from '../transport/http-server.ts'
import type { Parts } from '../wire/payload.ts'
import type { HostLimits } from './options.ts'

export interface Exchange {
  /** Something that precedes the answer: progress, a log message, a question. */
  message(parts: Parts): void
  /** The answer; `status` counts where the answer is the first thing said over HTTP. */
  answer(parts: Parts, status: number): void
  /** No answer will come: the host has cancelled. */
  end(): void
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** An HTTP response in the making. Sweep it: silence makes it a stream after `streamAfterMs`. */
export class PostExchange implements Exchange {
  readonly #request: HttpRequest
  readonly #headers: Readonly<Record<string, string>>
  readonly #streamAtMs: number
  readonly #onDone: (exchange: PostExchange) => void
  #stream: EventStream | undefined
  #isDone = false

  constructor(
    request: HttpRequest,
    options: { headers?: Readonly<Record<string, string>>; streamAfterMs: number; onDone: (exchange: PostExchange) => void },
  ) {
    this.#request = request
    this.#headers = options.headers ?? {}
    this.#streamAtMs = performance.now() + options.streamAfterMs
    this.#onDone = options.onDone
    request.onDisconnect(() => this.#done())
  }

  message(parts: Parts): void {
    if (!this.#isDone) this.#open().send(parts)
  }

  answer(parts: Parts, status: number): void {
    if (this.#isDone) return
    if (this.#stream === undefined) this.#request.reply(status, { ...JSON_TYPE, ...this.#headers }, parts)
    else {
      this.#stream.send(parts)
      this.#stream.end()
    }
    this.#done()
  }

  end(): void {
    if (this.#isDone) return
    this.#open().end()
    this.#done()
  }

  /** Opens the stream now: this answer may have to carry questions. */
  openStream(): EventStream {
    return this.#open()
  }

  sweep(nowMs: number, limits: HostLimits): void {
    if (this.#stream === undefined && nowMs >= this.#streamAtMs) this.#open()
    this.#stream?.sweep({ keepAliveMs: limits.sseKeepAliveMs, stallMs: limits.writeStallMs, maxQueuedBytes: limits.maxQueuedBytes })
  }

  #open(): EventStream {
    this.#stream ??= this.#request.openEvents(this.#headers)
    return this.#stream
  }

  #done(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#onDone(this)
  }
}
