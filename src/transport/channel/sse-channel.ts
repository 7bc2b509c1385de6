/**
 * HTTP+SSE ([2024-11-05 basic/transports]): one GET stream for all messages of the server, one URI for POSTs.
 *
 * The server chooses that URI. Credentials are sent there, so it must have the same origin (BRIDGING 5.2).
 */
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { SseEvent } from '../../wire/framing/sse.ts'
import type { Bearer, Channel, ChannelEvents, ChannelLimits, Outgoing } from './channel.ts'
import type { HttpClient } from '../http1/client/http-client.ts'
import { failureOfStatus } from '../http1/client/http-failure.ts'
import { Reply, tooLarge } from '../http1/client/http-reply.ts'
import { isSingle, readIncoming, readOversized, sampleOf } from './incoming.ts'
import type { Unparsable, Recipient } from './incoming.ts'
import { RequestHeaders } from './request-headers.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'
import { DEFAULT_GATE_MS, SendGate } from './send-gate.ts'

export interface SseOptions {
  readonly maxMessageBytes: number
  /** From the GET to the `endpoint` event. */
  readonly endpointTimeoutMs: number
  /** How long messages wait for the server to accept `notifications/initialized`. */
  readonly gateMs: number
  /** The time left to all pending requests after a response over the limit without a known id. */
  readonly unclaimedMs: number
}

export const DEFAULT_SSE: SseOptions = {
  maxMessageBytes: 16 * 1024 * 1024,
  endpointTimeoutMs: 10_000,
  gateMs: DEFAULT_GATE_MS,
  unclaimedMs: 5_000,
}

interface Pending {
  isSent: boolean
  /** A host's call: its response is sent to that host only. */
  readonly isCall: boolean
}

export class SseChannel implements Channel, Recipient {
  readonly kind = 'sse'
  readonly #client: HttpClient
  readonly #url: URL
  readonly #options: SseOptions
  readonly #limit: { maxMessageBytes: number }
  readonly #gate: SendGate
  readonly #headers: RequestHeaders
  readonly #closed = Promise.withResolvers<Failure | undefined>()
  readonly #opened = Promise.withResolvers<void>()
  /** Requests that have no response yet. */
  readonly #pending = new Map<string, Pending>()
  /** The current event has answered a host's call. */
  #answersCall = false
  readonly #posts = new Set<Reply>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #events: ChannelEvents | undefined
  #stream: Reply | undefined
  #endpoint: URL | undefined
  #timer: NodeJS.Timeout | undefined
  /** The server has accepted a message, so that it knows the session in the URL. */
  #hasSession = false
  #isOver = false

  /** `headers` and `bearer` are sent to the origin of `url` only. */
  constructor(
    client: HttpClient,
    url: URL,
    headers: Readonly<Record<string, string>> = {},
    options: Partial<SseOptions> = {},
    bearer?: Bearer,
  ) {
    this.#client = client
    this.#url = url
    this.#headers = new RequestHeaders(headers, bearer)
    this.#options = { ...DEFAULT_SSE, ...options }
    this.#limit = { maxMessageBytes: this.#options.maxMessageBytes }
    this.#gate = new SendGate(this.#options.gateMs)
  }

  get closed(): Promise<Failure | undefined> {
    return this.#closed.promise
  }

  /** Resolves when the server has sent its endpoint. */
  open(events: ChannelEvents): Promise<void> {
    this.#events = events
    const { endpointTimeoutMs } = this.#options
    const timeout = new Failure('timeout', `no endpoint event within ${endpointTimeoutMs} ms`, {
      executed: 'no',
      retryable: true,
    })
    this.#timer = setTimeout(() => this.#end(timeout), endpointTimeoutMs)
    const stream = new Reply(
      this.#client,
      { method: 'GET', url: this.#url, headers: { ...this.#headers.bodiless, accept: 'text/event-stream' } },
      this.#limit,
      {
        onEvent: (event) => this.#onEvent(event, stream.url),
        onEnd: (head) => this.#end(failureOfEnd(head)),
        onError: (failure) => this.#end(failure),
        // All requests share the stream: a bad message does not end it.
        onOversize: (head, tail) => this.#oversize(head, tail),
      },
    )
    this.#stream = stream
    return this.#opened.promise
  }

  /** The negotiated revision; servers of the first revision ignore it. */
  setRevision(revision: Revision): void {
    this.#headers.set('mcp-protocol-version', revision)
  }

  resize({ maxMessageBytes }: ChannelLimits): void {
    this.#limit.maxMessageBytes = maxMessageBytes
  }

  send(message: Outgoing): boolean {
    const { id } = message
    if (this.#isOver || this.#endpoint === undefined) {
      const failure = new Failure('lost', 'the channel is not open', { executed: 'no' })
      if (id !== undefined) queueMicrotask(() => this.#events?.lost(id, failure))
      return true
    }
    const endpoint = this.#endpoint
    if (id !== undefined) this.#pending.set(String(id), { isSent: false, isCall: message.isRelayed === true })
    if (message.isAnswer === true) this.#post(message, endpoint)
    else this.#gate.pass(id !== undefined, { start: () => this.#post(message, endpoint) })
    return true
  }

  /** The shared stream cannot be paused for one request. */
  pause(id: number | undefined): (() => void) | undefined {
    return id === undefined ? this.#stream?.pause() : undefined
  }

  /** The request waits for the gate. */
  withdraw(id: number): boolean {
    return this.#pending.get(String(id))?.isSent === false && this.#pending.delete(String(id))
  }

  abandon(id: number): void {
    this.#pending.delete(String(id))
  }

  close(): Promise<void> {
    this.#end(undefined)
    return Promise.resolve()
  }

  #end(reason: Failure | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const timer of this.#timers) clearTimeout(timer)
    this.#gate.close()
    this.#stream?.abort()
    for (const post of this.#posts) post.abort()
    const why = reason?.message ?? 'the channel was closed'
    for (const [id, { isSent }] of this.#pending)
      this.#events?.lost(Number(id), new Failure('lost', why, { executed: isSent ? 'unknown' : 'no' }))
    this.#pending.clear()
    if (this.#stream !== undefined) this.#opened.reject(reason ?? new Failure('lost', why, { executed: 'no' }))
    this.#closed.resolve(reason)
  }

  #onEvent({ event, data, ahead }: SseEvent, from: URL): void {
    // Such as `retry` alone: no event [HTML, Server-sent events].
    if (data.length === 0) return
    if (this.#endpoint === undefined) {
      if (event === 'message') return this.#end(new Failure('protocol', 'a message before the endpoint', { executed: 'no' }))
      // Pings, for example. Hosts ignore events of other names, too (BRIDGING 3.22).
      if (event !== 'endpoint') return
      const endpoint = resolveEndpoint(data.toString(), from)
      if (endpoint === undefined) return this.#end(new Failure('protocol', 'the endpoint has another origin', { executed: 'no' }))
      clearTimeout(this.#timer)
      this.#endpoint = endpoint
      this.#opened.resolve()
    } else if (event === 'message') {
      this.#answersCall = false
      readIncoming(data, this, ahead)
      // A batch may hold messages for other requests.
      if (this.#answersCall && isSingle(data)) this.#client.bodies.relayed(data)
    }
  }

  receive(message: Envelope): void {
    if (message.kind === 'response' && message.id !== undefined) {
      this.#answersCall = this.#pending.get(message.id)?.isCall === true
      this.#pending.delete(message.id)
    }
    this.#events?.receive(message)
  }

  refuse({ reason, sample, id, requestId }: Unparsable): void {
    this.#events?.unparsable(reason, sample, requestId)
    if (id !== undefined) this.#lose(id, new Failure('bad_response', `the response is unusable: ${reason}`))
  }

  /** A message over the limit (F-06): only a response whose id is unknown may be that of any request. */
  #oversize(head: Buffer, tail?: Buffer): void {
    const failure = tooLarge(this.#limit.maxMessageBytes)
    const { kind, id, report } = readOversized(failure.message, head, tail)
    if (report !== undefined) this.refuse(report)
    if (id !== undefined) return this.#lose(id, failure)
    if (kind === 'call' || tail === undefined) return
    const ids = [...this.#pending.keys()]
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      for (const id of ids) this.#lose(id, failure)
    }, this.#options.unclaimedMs)
    this.#timers.add(timer)
  }

  #lose(id: string, failure: Failure): void {
    if (this.#pending.delete(id)) this.#events?.lost(Number(id), failure)
  }

  /** An answer whose connection breaks is sent a second time: without it, the server's request would wait until its timeout. */
  #post(message: Outgoing, endpoint: URL, isSecond = false): void {
    const id = message.id === undefined ? undefined : String(message.id)
    // Abandoned while waiting for the gate.
    const pending = id === undefined ? undefined : this.#pending.get(id)
    if (id !== undefined && pending === undefined) return
    if (pending !== undefined) pending.isSent = true
    const headers = this.#headers.post
    const hadSession = this.#hasSession
    const isNotification = id === undefined && message.isAnswer !== true
    const done = (): void => {
      this.#posts.delete(post)
      if (isNotification) this.#gate.open()
    }
    const refused = (failure: Failure, sample: string): void => {
      done()
      if (id === undefined) this.#events?.unparsable(`a message without an id was not accepted: ${failure.message}`, sample)
      else this.#lose(id, failure)
    }
    const post = new Reply(this.#client, { method: 'POST', url: endpoint, headers, body: message.parts }, this.#limit, {
      onHead: (head) => {
        if (head.status >= 300) return
        this.#hasSession = true
        if (isNotification) this.#gate.open()
      },
      onEvent: () => undefined,
      onEnd: (head, body) =>
        head.status < 300 ? done() : refused(failureOfStatus(head, hadSession, Date.now(), body), sampleOf(body)),
      onError: (failure) => {
        if (message.isAnswer !== true || isSecond || failure.kind !== 'lost') return refused(failure, '')
        this.#posts.delete(post)
        this.#post(message, endpoint, true)
      },
    })
    this.#posts.add(post)
  }
}

/** The URL for POSTs; `undefined` unless it has the origin of `from` and no user information (T-10). */
const resolveEndpoint = (text: string, from: URL): URL | undefined => {
  const base = new URL(from.href)
  base.username = ''
  base.password = ''
  const endpoint = URL.parse(text, base.href)
  const isSafe = endpoint?.origin === base.origin && endpoint.username === '' && endpoint.password === ''
  return isSafe ? endpoint : undefined
}

const failureOfEnd = (head: ReplyHead): Failure => {
  if (head.status >= 300) return failureOfStatus(head, false, Date.now())
  if (head.form !== 'sse')
    return new Failure('bad_response', 'the server did not open an event stream', { executed: 'no', status: head.status })
  return new Failure('lost', 'the server closed the event stream', { retryable: true })
}
