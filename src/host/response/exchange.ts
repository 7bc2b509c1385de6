/**
 * One host request and its response channel: a pipe, an SSE connection, or an HTTP response that starts as one JSON body or as a stream
 * of events, whichever is needed first (BRIDGING 5.1, JSON or SSE).
 */
import type { Flow } from '../../rpc/call.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import { Failure } from '../../wire/message/failure.ts'
import { CLOSE } from '../../wire/message/message.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { StreamedResult } from '../../wire/result/streamed-result.ts'
import type { EventLog } from './event-log.ts'
import type { StreamOf } from './stored-events.ts'
import type { HostLimits } from '../options.ts'

export interface Exchange {
  /** Sends a message before the answer: progress, a log message, a server request. A later message with the same `key` replaces it. */
  message(parts: Parts, key?: string): void
  /** Sends the answer. `status`, and a challenge for `scopes`, are used if the HTTP response has not begun. */
  answer(parts: Parts, status: number, scopes?: readonly string[]): void
  /** Calls back when the system has accepted the whole answer, where that is known. Must be called before `answer`. */
  onTaken?(callback: () => void): void
  /** Lets the memory of the request be reused once the answer is sent. Must be called before `answer`. */
  freeRequest?(): void
  /** Backpressure of the host's connection; `undefined`: there is no stream yet. */
  readonly flow?: Flow | undefined
  /** Absent: `pipe`. */
  readonly transport?: 'pipe' | 'tcp' | undefined
  /** `traceparent` of the HTTP request. */
  readonly ambient?: string | undefined
  /** The host has disconnected and cannot resume: nothing sent here reaches it. */
  readonly isGone?: boolean
  /** The exchange of the whole batch; absent: the request is not part of one. */
  readonly batch?: Exchange | undefined
  /** Ends the exchange without an answer, because the host has cancelled. */
  end(): void
  /** Sends a streamed answer, followed by `CLOSE`. Absent: the channel does not support it. `onBroken`: the result broke off. */
  pass?(head: Buffer, result: StreamedResult, onBroken: (failure: Failure) => void): void
}

/** Returns the value of `WWW-Authenticate` for a path and all required scopes. */
export type ScopeChallenge = (path: string, scopes: readonly string[]) => string

export const JSON_TYPE = { 'Content-Type': 'application/json' }
/** `retry` of a stream that is closed for polling ([2025-11-25 basic/transports], `retry`; B205). */
const RETRY_MS = 1_000

export interface PostOptions {
  readonly request: HttpRequest
  /** 0: every answer is a stream. */
  readonly streamAfterMs: number
  /** A resumable stream is closed after this time, so that its host polls (SEP-1699); `Infinity`: kept open. */
  readonly pollAfterMs: number
  /** Event log of a legacy session, for resumption. */
  readonly log: EventLog | undefined
  /** The request, for replicas that may have to answer it. */
  readonly of?: StreamOf | undefined
  /** Streams begin with an event that has an id and no data (2025-11-25). */
  readonly primes: boolean
  /** Called when the answer was sent, or the host has disconnected. */
  readonly onDone: (exchange: PostExchange) => void
  /** Called when the host disconnects before the answer was sent. */
  readonly onDisconnect?: () => void
  /** Challenge for missing scopes; `undefined`: no authentication is configured. */
  readonly challenge: ScopeChallenge | undefined
  readonly principal: string
  /** End of the stream, wall clock in milliseconds; `Infinity`: none. */
  readonly untilMs: number
  /** Called when the host has not resumed its stream within `orphanMs`. */
  readonly onOrphaned: (exchange: PostExchange) => void
}

/** Sends keep-alive comments, or ends the stream of a host that does not read, and counts the limit. */
export const sweepStream = (stream: EventStream, limits: HostLimits, counts: LimitCounts): void => {
  const { sseKeepAliveMs: keepAliveMs, writeStallMs: stallMs, maxQueuedBytes } = limits
  const limit = stream.sweep({ keepAliveMs, stallMs, maxQueuedBytes })
  if (limit !== undefined) counts.hit(limit)
}

/** A pending HTTP response. Needs to be swept: without a message it becomes a stream after `streamAfterMs`. */
export class PostExchange implements Exchange {
  readonly number: number
  readonly #options: PostOptions
  readonly #streamAtMs: number
  #stream: EventStream | undefined
  /** Name of the stream in the event log; `undefined`: not a stream yet, or no log. */
  #name: string | undefined
  #pollAtMs = Infinity
  #detachedMs = Infinity
  /** The host has another connection now: the end of the first one means nothing. */
  #isResumed = false
  /** The streamed answer. */
  #passing: StreamedResult | undefined
  #isDone = false

  /** `number`: unique among the open exchanges of a listener. */
  constructor(number: number, options: PostOptions) {
    this.number = number
    this.#options = options
    this.#streamAtMs = performance.now() + options.streamAfterMs
    options.request.onDisconnect(() => {
      if (this.#isResumed) return
      this.#passing?.abort()
      options.onDisconnect?.()
      if (options.log === undefined || this.#name === undefined) this.#done()
      else this.#detach()
    })
    if (options.streamAfterMs <= 0) this.#open()
  }

  /** The stream's name in the session's event log, for resumption. */
  get name(): string | undefined {
    return this.#name
  }

  get principal(): string {
    return this.#options.principal
  }

  get transport(): 'tcp' {
    return 'tcp'
  }

  get ambient(): string | undefined {
    return this.#options.request.header('traceparent')
  }

  get isStream(): boolean {
    return this.#stream !== undefined || this.#name !== undefined
  }

  get isGone(): boolean {
    return this.#isDone
  }

  get flow(): Flow | undefined {
    return this.#stream
  }

  message(parts: Parts, key?: string): void {
    if (this.#isDone) return
    this.#open()
    const id = this.#logged(parts, key)
    this.#stream?.message(parts, id)
  }

  onTaken(callback: () => void): void {
    this.#options.request.onTaken = callback
  }

  freeRequest(): void {
    this.#options.request.isBodyFree = true
  }

  answer(parts: Parts, status: number, scopes?: readonly string[]): void {
    if (this.#isDone) return
    if (this.isStream) {
      const id = this.#logged(parts)
      this.#stream?.answer(parts, id)
      this.#stream?.end()
    } else if (scopes === undefined) this.#options.request.reply(status, JSON_TYPE, parts)
    else {
      const challenge = this.#options.challenge?.(this.#options.request.path, scopes)
      this.#options.request.reply(
        status,
        { ...JSON_TYPE, ...(challenge !== undefined && { 'WWW-Authenticate': challenge }) },
        parts,
      )
    }
    this.#done()
  }

  pass(head: Buffer, result: StreamedResult, onBroken: (failure: Failure) => void): void {
    if (this.#isDone) return result.abort()
    if (this.isStream) {
      // An event is a whole message, and the event log keeps it for resumption.
      result.collect().then((parts) => this.answer([head, ...parts, CLOSE], 200), onBroken)
      return
    }
    this.#passing = result
    const body = this.#options.request.replyInPieces(
      200,
      JSON_TYPE,
      () => result.pause(),
      () => result.resume(),
    )
    body.write(head)
    result.pipe({
      write: (bytes) => body.write(bytes),
      end: () => {
        body.write(CLOSE)
        body.end()
        this.#done()
      },
      fail: (failure) => {
        body.break()
        this.#done()
        onBroken(failure)
      },
    })
  }

  end(): void {
    if (this.#isDone) return
    if (this.#passing !== undefined) {
      this.#passing.fail(new Failure('lost', 'the answer was given up'))
      return this.#passing.abort()
    }
    this.#open()
    this.#stream?.end()
    this.#done()
  }

  /** Ends the exchange after its credential was revoked, as after a disconnect. A stream is broken off (BRIDGING 3.22). */
  revoke(): void {
    this.#options.onDisconnect?.()
    if (this.#passing === undefined) this.#stream?.breakOff()
    this.end()
  }

  /** Sends further messages to `stream`, by which the host has resumed. */
  resume(stream: EventStream): void {
    this.#isResumed = true
    this.#stream?.end()
    this.#attach(stream)
    stream.onClose(() => {
      if (this.#stream === stream) this.#detach()
    })
  }

  /** Excludes time in which the process was stopped. */
  excludePause(ms: number): void {
    this.#detachedMs += ms
  }

  sweep(nowMs: number, limits: HostLimits, counts: LimitCounts): void {
    const { log, onOrphaned, untilMs } = this.#options
    if (this.#passing !== undefined) return
    if (untilMs !== Infinity && Date.now() >= untilMs) return this.revoke()
    if (!this.isStream && nowMs >= this.#streamAtMs) this.#open()
    if (nowMs - this.#detachedMs >= limits.orphanMs) {
      counts.passed('listen.orphan')
      return onOrphaned(this)
    }
    if (log !== undefined && nowMs >= this.#pollAtMs) this.#poll()
    if (this.#stream !== undefined) sweepStream(this.#stream, limits, counts)
  }

  #open(): void {
    if (this.isStream) return
    const { request, log, primes, pollAfterMs } = this.#options
    const stream = request.openEvents({})
    this.#attach(stream)
    // A stream is closed for polling once; a resumed stream stays open.
    this.#pollAtMs = performance.now() + pollAfterMs
    this.#name = log?.open(this.#options.of)
    if (primes && log !== undefined && this.#name !== undefined) stream.prime(log.append(this.#name, []))
  }

  #attach(stream: EventStream): void {
    this.#stream = stream
    this.#detachedMs = Infinity
  }

  #detach(): void {
    this.#stream = undefined
    this.#detachedMs = performance.now()
  }

  /** Closes the stream, so that the host polls with the last event id after `retry`. */
  #poll(): void {
    if (this.#stream === undefined || !this.#options.primes) return
    this.#pollAtMs = Infinity
    this.#stream.endForPolling(RETRY_MS)
    this.#detach()
  }

  /** Adds an event to the event log; returns its id, if there is a log. */
  #logged(parts: Parts, key?: string): string | undefined {
    const { log } = this.#options
    return log === undefined || this.#name === undefined ? undefined : log.append(this.#name, parts, key)
  }

  #done(): void {
    if (this.#isDone) return
    this.#isDone = true
    if (this.#name !== undefined) this.#options.log?.end(this.#name)
    this.#options.onDone(this)
  }
}
