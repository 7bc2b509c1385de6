/**
 * The standalone GET stream of a legacy Streamable HTTP server, kept open: messages that belong to no request of the gateway
 * ([2025-11-25 basic/transports], Listening for Messages from the Server).
 */
import type { Failure } from '../../wire/message/failure.ts'
import type { SseEvent } from '../../wire/framing/sse.ts'
import { failureOfStatus } from '../http1/client/http-failure.ts'
import type { Reply, ReplyEvents } from '../http1/client/http-reply.ts'
import { asEventId, waitBefore, wasSteady } from './reconnect.ts'
import type { ReconnectOptions } from './reconnect.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'

export interface StreamPorts {
  get(lastEventId: string | undefined, events: ReplyEvents): Reply
  message(bytes: Buffer): void
  /** A message over the limit is skipped: its beginning, and then also its end. A new stream would send it again. */
  oversize(head: Buffer, tail?: Buffer): void
  /** The server no longer knows the session, after it had a stream. */
  expired(failure: Failure): void
}

export class StandingStream {
  readonly #ports: StreamPorts
  readonly #options: ReconnectOptions
  readonly #offered = Promise.withResolvers<boolean>()
  /** The present stream. An ended one is released: most servers refuse it, and a link may live for days. */
  #reply: Reply | undefined
  #timer: NodeJS.Timeout | undefined
  #lastEventId: string | undefined
  #retryMs: number | undefined
  #tries = 0
  /** When the present stream was opened; `Infinity`: it is not open. */
  #openedMs = Infinity
  #wasOpen = false
  #isOver = false

  constructor(ports: StreamPorts, options: ReconnectOptions) {
    this.#ports = ports
    this.#options = options
  }

  /** Settles once the server has opened or refused the stream; false also if the stream was stopped before that. */
  get isOffered(): Promise<boolean> {
    return this.#offered.promise
  }

  open(): void {
    if (this.#isOver) return
    this.#reply = this.#ports.get(this.#lastEventId, {
      onHead: (head) => {
        if (!isStream(head)) return
        this.#wasOpen = true
        this.#openedMs = performance.now()
        this.#offered.resolve(true)
      },
      onEvent: (event) => this.#onEvent(event),
      onEnd: (head, body) => this.#onEnd(head, body),
      onError: (failure) => this.#onError(failure),
      onOversize: (head, tail) => this.#ports.oversize(head, tail),
    })
  }

  /** Pauses the stream until the returned function is called. */
  pause(): (() => void) | undefined {
    return this.#reply?.pause()
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#reply?.abort()
    this.#reply = undefined
    this.#offered.resolve(false)
  }

  #onEvent(event: SseEvent): void {
    this.#tries = 0
    this.#lastEventId = asEventId(event.id) ?? this.#lastEventId
    this.#retryMs = event.retry ?? this.#retryMs
    if (event.event === 'message' && event.data.length > 0) this.#ports.message(event.data)
  }

  #onEnd(head: ReplyHead, body: Buffer): void {
    this.#reply = undefined
    if (this.#isOver) return
    if (isStream(head)) return this.#reopenLater(this.#retryMs)
    // Many servers route POST only: a first 404 does not mean a lost session. The next POST would detect a lost session.
    const failure = failureOfStatus(head, this.#wasOpen, Date.now(), body)
    // After any other status of a server that had a stream, calls continue, but its messages would be lost: the stream is retried.
    // The server may no longer know the last event id.
    if (!failure.retryable && head.status < 500) this.#lastEventId = undefined
    const isRetried = failure.retryable || head.status >= 500 || (this.#wasOpen && failure.kind !== 'session_expired')
    if (isRetried) return this.#reopenLater(failure.facts.retryAfterMs ?? this.#retryMs)
    this.stop()
    if (failure.kind === 'session_expired') this.#ports.expired(failure)
  }

  /** A server that redirects the first GET, to a page for example, or encodes its answer, has no stream for us. */
  #onError({ kind, facts }: Failure): void {
    this.#reply = undefined
    if (!this.#wasOpen && kind === 'bad_response' && facts.status !== undefined) this.stop()
    else this.#reopenLater(this.#retryMs)
  }

  #reopenLater(retryMs: number | undefined): void {
    if (this.#isOver) return
    if (wasSteady(this.#openedMs, this.#options)) this.#tries = 0
    this.#openedMs = Infinity
    this.#timer = setTimeout(() => this.open(), waitBefore(this.#tries++, retryMs, this.#options))
  }
}

const isStream = (head: ReplyHead): boolean => head.form === 'sse' && head.status < 300
