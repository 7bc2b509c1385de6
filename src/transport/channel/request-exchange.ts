/**
 * One request over Streamable HTTP: its POST, and the GETs that resume its stream after a break.
 *
 *   POST ─▶ JSON ───────────────────────────────────────▶ answered | lost
 *       └─▶ SSE ─ response ─────────────────────────────▶ answered
 *            └─ ends or breaks ─ no event id ───────────▶ lost
 *                              └─ event id: wait, GET ─▶ SSE (as above)
 */
import { Failure } from '../../wire/message/failure.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import type { SseEvent } from '../../wire/framing/sse.ts'
import { StreamedResult } from '../../wire/result/streamed-result.ts'
import type { ResultSource } from '../../wire/result/streamed-result.ts'
import type { Outgoing } from './channel.ts'
import { bodyMayAnswer, failureOfStatus, statusDecides } from '../http1/client/http-failure.ts'
import type { Reply, ReplyEvents } from '../http1/client/http-reply.ts'
import { isSingle, readIncoming, readOversized } from './incoming.ts'
import type { Unparsable, Recipient } from './incoming.ts'
import { asEventId, waitBefore, wasSteady } from './reconnect.ts'
import type { ReconnectOptions } from './reconnect.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'

/** The channel as its exchanges use it. */
export interface ExchangePorts {
  /** True if a POST carries a session id at present. */
  readonly hasSession: boolean
  /** The revision has resumption. */
  readonly mayResume: boolean
  /** The failure of a message over the limit. */
  tooLarge(): Failure
  post(message: Outgoing, events: ReplyEvents): Reply
  /** GET with `Last-Event-ID`. */
  resume(lastEventId: string, events: ReplyEvents): Reply
  receive(message: Envelope, exchange: RequestExchange): void
  /** A further part of a message was received. */
  more(exchange: RequestExchange): void
  /** This body was only the response to a host's call. */
  relayed(body: Buffer): void
  unparsable(message: Unparsable): void
  /** The exchange is over; `failure`: the reason, if it is unanswered. Called once, and not after `abort()`. */
  ended(exchange: RequestExchange, failure: Failure | undefined): void
}

export interface ResumeOptions extends ReconnectOptions {
  /** Attempts in a row without a new event and without a steady stream. */
  readonly maxResumes: number
}

export class RequestExchange implements ReplyEvents, Recipient {
  /** The id that the gateway assigned. */
  readonly id: number
  readonly #message: Outgoing
  readonly #ports: ExchangePorts
  readonly #options: ResumeOptions
  #reply: Reply | undefined
  #timer: NodeJS.Timeout | undefined
  #state: 'new' | 'sent' | 'answered' | 'cancelled' | 'over' = 'new'
  #isSent = false
  #hadSession = false
  /** The current reply is an event stream. */
  #isStream = false
  /** A result that is relayed during its reception; `#idleTimer` ends it. */
  #streamed: StreamedResult | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #lastEventId: string | undefined
  #retryMs: number | undefined
  #tries = 0
  /** When the present stream was opened; `Infinity`: it is not open. */
  #openedMs = Infinity

  constructor(id: number, message: Outgoing, ports: ExchangePorts, options: ResumeOptions) {
    this.id = id
    this.#message = message
    this.#ports = ports
    this.#options = options
  }

  /** Whether the server may have received it. */
  get isSent(): boolean {
    return this.#isSent
  }
  /** Answered with a result that is still being received. */
  get isStreaming(): boolean {
    return this.#streamed !== undefined && this.#state === 'answered'
  }

  /** Cancelled; its stream is still read for other messages. */
  get isCancelled(): boolean {
    return this.#state === 'cancelled'
  }

  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'sent'
    this.#isSent = true
    this.#hadSession = this.#ports.hasSession
    this.#reply = this.#ports.post(this.#message, this)
  }

  /** Its response was received, on any stream. It can no longer be lost. */
  answered(): void {
    if (this.#state !== 'sent') return
    this.#state = 'answered'
    if (this.#timer !== undefined) this.#end(undefined)
  }

  /** It was cancelled. Its response is no longer expected, but its stream is read until the server ends it. False: there is no stream. */
  keepReading(): boolean {
    if (!this.#isStream) return false
    this.#state = 'cancelled'
    return true
  }

  abort(): void {
    this.#state = 'over'
    clearTimeout(this.#timer)
    clearTimeout(this.#idleTimer)
    this.#reply?.abort()
  }

  /** Pauses its stream until the returned function is called. */
  pause(): (() => void) | undefined {
    return this.#reply?.pause()
  }

  #end(failure: Failure | undefined): void {
    if (this.#state === 'over') return
    this.abort()
    this.#ports.ended(this, failure)
  }

  /** The head of the reply to the POST. */
  onHead(head: ReplyHead): void {
    this.#isStream = head.form === 'sse' && head.status < 300
    if (this.#isStream) this.#openedMs = performance.now()
  }

  onEvent(event: SseEvent): void {
    const id = asEventId(event.id)
    if (id !== undefined && id !== this.#lastEventId) {
      this.#lastEventId = id
      this.#tries = 0
    }
    this.#retryMs = event.retry ?? this.#retryMs
    if (event.event !== 'message' || event.data.length === 0) return
    const wasSent = this.#state === 'sent'
    readIncoming(event.data, this, event.ahead)
    // This event was the response.
    if (wasSent && this.#state === 'answered') this.#relayed(event.data)
  }

  /** `bytes` contained the response, and possibly other messages of a batch. */
  #relayed(bytes: Buffer): void {
    if (this.#message.isRelayed === true && isSingle(bytes)) this.#ports.relayed(bytes)
  }

  onEnd(head: ReplyHead, body: Buffer): void {
    if (head.form === 'sse') this.#streamEnded(head)
    else this.#endWithBody(head, body)
  }

  onError(failure: Failure): void {
    if (failure.kind === 'lost') this.#resumeLater(failure)
    else this.#end(failure)
  }

  /** A message over the limit on its stream (F-06). Only a call of the server cannot be the response. */
  onOversize(head: Buffer, tail?: Buffer): void {
    const failure = this.#ports.tooLarge()
    const { kind, report } = readOversized(failure.message, head, tail)
    if (kind !== 'call') return this.#end(failure)
    if (report !== undefined) this.#ports.unparsable(report)
  }

  /** Its response cannot be read. */
  lose(failure: Failure): void {
    this.#end(failure)
  }

  get mayStream(): boolean {
    return this.#message.stream !== undefined
  }

  stream(bytes: Buffer, source: ResultSource): StreamedResult | 'more' | undefined {
    const { idleMs, after } = this.#message.stream ?? { idleMs: 0 }
    let isPaused = false
    const paced: ResultSource = {
      pause: () => {
        isPaused = true
        source.pause()
      },
      resume: () => {
        isPaused = false
        this.#idleTimer?.refresh()
        source.resume()
      },
      abort: () => this.#end(undefined),
    }
    const streamed = StreamedResult.begin(bytes, String(this.id), paced, after)
    if (streamed === undefined || streamed === 'more') return streamed
    this.#streamed = streamed
    this.#idleTimer = setTimeout(() => {
      // While the reader is slow, nothing is read: the server is not idle.
      if (isPaused) return void this.#idleTimer?.refresh()
      streamed.fail(new Failure('timeout', `no further byte within ${idleMs} ms`, { amount: Math.round(idleMs / 1000) }))
      this.#end(undefined)
    }, idleMs)
    // Reading is paused until the result has a sink.
    source.pause()
    this.#ports.receive(streamed.envelope, this)
    return streamed
  }

  /** Its server is sending the answer, or a message before it: it is not idle (F-02). */
  onMore(): void {
    this.#idleTimer?.refresh()
    this.#ports.more(this)
  }

  /** A message in the reply to this request. */
  receive(message: Envelope): void {
    if (this.#state === 'over') return
    // An error without an id in the reply to a request can only refer to this request.
    const isOurs = message.kind === 'response' && message.id === undefined
    this.#ports.receive(isOurs ? this.#withOurId(message) : message, this)
  }

  refuse(unparsable: Unparsable): void {
    this.#ports.unparsable(unparsable)
    if (unparsable.id === String(this.id))
      this.#end(new Failure('bad_response', `the response is unusable: ${unparsable.reason}`))
  }

  #withOurId(message: Envelope): Envelope {
    return { ...message, id: String(this.id) }
  }

  /** The end of a reply that is not a stream. */
  #endWithBody(head: ReplyHead, body: Buffer): void {
    const { status, form } = head
    const hadSession = this.#hadSession
    if (status >= 400) {
      const answer = statusDecides(head, hadSession, body) ? undefined : this.#responseIn(body, bodyMayAnswer(head))
      if (answer !== undefined) this.#ports.receive({ ...answer, status }, this)
      return this.#end(failureOfStatus(head, hadSession, Date.now(), body))
    }
    if (form === 'json' && body.length > 0) readIncoming(body, this)
    if (this.#state === 'answered') this.#relayed(body)
    // The usual case: no `Failure` is created, since its stack trace was 7 % of a call.
    if (this.#state !== 'sent') return this.#end(undefined)
    const what = form === 'json' ? 'without the response' : `with content type ${head.headers['content-type'] ?? '(none)'}`
    this.#end(new Failure('bad_response', `the server answered HTTP ${status} ${what}`, { status }))
  }

  /** The response in the body of an error status; `acceptsOtherId`: an error with another id or without one counts as ours. */
  #responseIn(body: Buffer, acceptsOtherId: boolean): Envelope | undefined {
    let answer: Envelope | undefined
    const receive = (message: Envelope): void => {
      const isOurs = message.id === String(this.id) || (acceptsOtherId && message.error !== undefined)
      if (message.kind === 'response' && isOurs) answer = this.#withOurId(message)
    }
    readIncoming(body, { receive, refuse: () => undefined })
    return answer
  }

  #streamEnded(head: ReplyHead): void {
    // The usual case: no `Failure` is created, since its stack trace was 12 % of a call.
    if (this.#state !== 'sent') return this.#end(undefined)
    if (head.status >= 400) return this.#end(failureOfStatus(head, this.#hadSession, Date.now()))
    const failure = new Failure('lost', 'the stream ended without the response')
    // A server that sends `retry` and closes the stream expects polling: this is not a failed attempt.
    if (this.#retryMs !== undefined) this.#tries = 0
    this.#resumeLater(failure)
  }

  #resumeLater(failure: Failure): void {
    const lastEventId = this.#lastEventId
    if (wasSteady(this.#openedMs, this.#options)) this.#tries = 0
    this.#openedMs = Infinity
    const mayResume = this.#state === 'sent' && this.#ports.mayResume && this.#tries < this.#options.maxResumes
    if (!mayResume || lastEventId === undefined) return this.#end(failure)
    this.#reply = undefined
    this.#isStream = false
    this.#timer = setTimeout(() => this.#resume(lastEventId, failure), waitBefore(this.#tries++, this.#retryMs, this.#options))
  }

  #resume(lastEventId: string, failure: Failure): void {
    this.#timer = undefined
    this.#reply = this.#ports.resume(lastEventId, {
      onHead: (head) => this.onHead(head),
      onEvent: (event) => this.onEvent(event),
      onMore: () => this.onMore(),
      onEnd: (head) => {
        if (head.form === 'sse' && head.status < 300) return this.#streamEnded(head)
        const isRetryable = failureOfStatus(head, this.#hadSession, Date.now()).retryable
        const refused = new Failure('lost', `the stream broke and the server refused to resume it: HTTP ${head.status}`, {
          status: head.status,
        })
        return isRetryable ? this.#resumeLater(refused) : this.#end(refused)
      },
      onOversize: (head, tail) => this.onOversize(head, tail),
      onError: (broken) => (broken.kind === 'too_large' ? this.#end(broken) : this.#resumeLater(failure)),
    })
  }
}
