/**
 * Streamable HTTP to one server, in both eras: every message is a POST of its own, and every request has its own response stream.
 * The legacy form adds a session, a standalone GET stream and resumption. The modern form has none of them; closing a request's
 * stream cancels it.
 */
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { IdTable } from '../../wire/message/id-table.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { Bearer, Channel, ChannelEvents, ChannelLimits, HttpReply, Outgoing } from './channel.ts'
import type { BodyPool } from '../body-pool.ts'
import type { HttpClient } from '../http1/client/http-client.ts'
import { failureOfStatus } from '../http1/client/http-failure.ts'
import { tooLarge } from '../http1/client/http-reply.ts'
import type { Reply, ReplyEvents } from '../http1/client/http-reply.ts'
import { readIncoming, readOversized, sampleOf } from './incoming.ts'
import type { Unparsable, Recipient } from './incoming.ts'
import { McpEndpoint } from './mcp-endpoint.ts'
import { rawExchange } from './raw-exchange.ts'
import { DEFAULT_RECONNECT } from './reconnect.ts'
import { RequestExchange } from './request-exchange.ts'
import type { ExchangePorts, ResumeOptions } from './request-exchange.ts'
import { DEFAULT_GATE_MS, SendGate } from './send-gate.ts'
import { StandingStream } from './standing-stream.ts'

export interface StreamableOptions extends ResumeOptions {
  readonly maxMessageBytes: number
  /** For the DELETE that ends the session. */
  readonly closeTimeoutMs: number
  /** How long messages wait for the server to accept `notifications/initialized`. */
  readonly gateMs: number
  /** How long pending requests wait for their own responses after the session has ended. */
  readonly expiryMs: number
  /** Period of the sweep that closes streams of answered requests. */
  readonly lingerMs: number
}

export const DEFAULT_STREAMABLE: StreamableOptions = {
  ...DEFAULT_RECONNECT,
  maxResumes: 5,
  maxMessageBytes: 16 * 1024 * 1024,
  closeTimeoutMs: 2_000,
  gateMs: DEFAULT_GATE_MS,
  expiryMs: 5_000,
  lingerMs: 1_000,
}

/** Maximum number of streams of cancelled requests that are still read, see `abandon`. */
const MAX_CANCELLED = 4
/** Maximum length of an id that the gateway assigned. */
const MAX_DIGITS = 15

export class StreamableChannel implements Channel, ExchangePorts {
  readonly kind = 'http'
  readonly #endpoint: McpEndpoint
  readonly #bodies: BodyPool
  readonly #options: StreamableOptions
  readonly #limit: { maxMessageBytes: number }
  readonly #gate: SendGate
  readonly #closed = Promise.withResolvers<Failure | undefined>()
  /** Requests that have no response yet, by id. */
  readonly #pending = new IdTable<RequestExchange>()
  /** Answered requests whose streams have not ended yet. */
  readonly #lingering = new IdTable<RequestExchange>()
  /** Cancelled requests of the legacy era whose streams have not ended yet. */
  readonly #cancelled = new IdTable<RequestExchange>()
  #lingerTimer: NodeJS.Timeout | undefined
  /** Functions that end other open exchanges: notifications and raw exchanges. */
  readonly #stops = new Set<() => void>()
  #stream: StandingStream | undefined
  #events: ChannelEvents | undefined
  #closing: Promise<void> | undefined
  /** The server has ended the session; requests that were sent before still wait for their responses. */
  #expired: Failure | undefined
  #expiryTimer: NodeJS.Timeout | undefined

  /** `headers` and `bearer` are sent to the origin of `url` only. */
  constructor(
    client: HttpClient,
    url: URL,
    headers: Readonly<Record<string, string>> = {},
    options: Partial<StreamableOptions> = {},
    bearer?: Bearer,
  ) {
    this.#options = { ...DEFAULT_STREAMABLE, ...options }
    this.#bodies = client.bodies
    this.#limit = { maxMessageBytes: this.#options.maxMessageBytes }
    this.#endpoint = new McpEndpoint(client, url, headers, this.#limit, bearer)
    this.#gate = new SendGate(this.#options.gateMs)
  }

  get closed(): Promise<Failure | undefined> {
    return this.#closed.promise
  }

  /** Opens no connection: Streamable HTTP has requests only. */
  open(events: ChannelEvents): Promise<void> {
    this.#events = events
    return Promise.resolve()
  }

  /** The negotiated revision: `MCP-Protocol-Version` of all later requests. */
  setRevision(revision: Revision): void {
    this.#endpoint.setRevision(revision)
  }

  resize({ maxMessageBytes }: ChannelLimits): void {
    this.#limit.maxMessageBytes = maxMessageBytes
  }

  send(message: Outgoing): boolean {
    const { id } = message
    const refusal = this.#closing === undefined ? this.#expired : notOpen()
    if (refusal !== undefined) {
      if (id !== undefined) queueMicrotask(() => this.#events?.lost(id, refusal))
    } else if (message.isAnswer === true) this.#notify(message)
    else if (id === undefined) this.#gate.pass(false, { start: () => this.#notify(message) })
    else {
      const exchange = new RequestExchange(id, message, this, this.#options)
      this.#pending.set(id, exchange)
      this.#gate.pass(true, exchange)
    }
    return true
  }

  pause(id: number | undefined): (() => void) | undefined {
    return id === undefined ? this.#stream?.pause() : this.#pending.get(id)?.pause()
  }

  /** The request waits for the gate. */
  withdraw(id: number): boolean {
    const exchange = this.#pending.get(id)
    if (exchange?.isSent !== false) return false
    this.#pending.delete(id)
    exchange.abort()
    this.#endIfExpired()
    return true
  }

  /**
   * Abandons a request. In the legacy era a message has cancelled it, and the streams of a few such requests are still read: some servers
   * (supergateway) send every message that belongs to no other request on the stream of the oldest unanswered request, indefinitely.
   */
  abandon(id: number): void {
    const exchange = this.#pending.delete(id)
    if (exchange === undefined) return
    if (!this.hasSession || this.#cancelled.size >= MAX_CANCELLED || !exchange.keepReading()) exchange.abort()
    else this.#cancelled.set(id, exchange)
    this.#endIfExpired()
  }

  /** Opens and keeps the standalone GET stream; false: the server offers none. A lost session ends the channel. */
  openStream(): Promise<boolean> {
    if (this.#closing !== undefined) return Promise.resolve(false)
    if (this.#stream === undefined) {
      const recipient: Recipient = {
        receive: (message) => this.#receive(message),
        refuse: (unparsable) => this.unparsable(unparsable),
      }
      const ports = {
        get: this.#endpoint.get.bind(this.#endpoint),
        message: (bytes: Buffer) => readIncoming(bytes, recipient),
        oversize: (head: Buffer, tail?: Buffer) => this.#oversize(head, tail),
        expired: (failure: Failure) => this.#expire(failure),
      }
      this.#stream = new StandingStream(ports, this.#options)
      this.#stream.open()
    }
    return this.#stream.isOffered
  }

  /** One POST outside of the channel's pending requests, for the era probe and the handshake. It adopts the session. */
  exchange(message: Outgoing, timeoutMs: number): Promise<HttpReply> {
    if (this.#closing !== undefined) return Promise.reject(notOpen())
    const raw = rawExchange(this.#endpoint, message, timeoutMs)
    const stop = (): void => raw.stop()
    this.#stops.add(stop)
    return raw.answer.finally(() => this.#stops.delete(stop))
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#shut(undefined))
  }

  /** A message over the limit on the standalone stream (F-06). */
  #oversize(head: Buffer, tail?: Buffer): void {
    const failure = this.tooLarge()
    const { id, report } = readOversized(failure.message, head, tail)
    if (report !== undefined) this.unparsable(report)
    if (id !== undefined) this.#pending.get(Number(id))?.lose(failure)
  }

  /**
   * The standalone stream has detected that the session has ended. The server mostly refuses pending requests for the same reason a moment
   * later, without executing them. If they ended here, they would count as possibly executed.
   */
  #expire(reason: Failure): void {
    this.#expired = reason
    this.#expiryTimer = setTimeout(() => void (this.#closing ??= this.#shut(reason)), this.#options.expiryMs).unref()
    this.#endIfExpired()
  }

  #endIfExpired(): void {
    if (this.#expired !== undefined && this.#pending.size === 0) this.#closing ??= this.#shut(this.#expired)
  }

  async #shut(reason: Failure | undefined): Promise<void> {
    this.#stream?.stop()
    clearTimeout(this.#lingerTimer)
    clearTimeout(this.#expiryTimer)
    const unanswered = this.#pending.values()
    this.#pending.clear()
    for (const exchange of [...unanswered, ...this.#lingering.values(), ...this.#cancelled.values()]) exchange.abort()
    this.#gate.close()
    for (const stop of this.#stops) stop()
    for (const { id, isSent } of unanswered)
      this.#events?.lost(id, new Failure('lost', 'the channel was closed', { executed: isSent ? 'unknown' : 'no' }))
    if (reason === undefined) await this.#endpoint.endSession(this.#options.closeTimeoutMs)
    this.#closed.resolve(reason)
  }

  /** The members below are for the exchanges of this channel. */
  get hasSession(): boolean {
    return this.#endpoint.hasSession
  }

  get mayResume(): boolean {
    return !this.#endpoint.isModern
  }

  tooLarge(): Failure {
    return tooLarge(this.#limit.maxMessageBytes)
  }

  post(message: Outgoing, events: ReplyEvents): Reply {
    return this.#endpoint.post(message, events)
  }

  resume(lastEventId: string, events: ReplyEvents): Reply {
    return this.#endpoint.get(lastEventId, events)
  }

  receive(message: Envelope, exchange: RequestExchange): void {
    this.#receive(message, exchange.isCancelled ? undefined : exchange.id)
  }

  more({ id }: RequestExchange): void {
    this.#events?.more?.(id)
  }

  relayed(body: Buffer): void {
    this.#bodies.relayed(body)
  }

  unparsable({ reason, sample, requestId }: Unparsable): void {
    this.#events?.unparsable(reason, sample, requestId)
  }

  ended(exchange: RequestExchange, failure: Failure | undefined): void {
    const { id } = exchange
    this.#lingering.delete(id)
    this.#cancelled.delete(id)
    const wasPending = this.#pending.delete(id) !== undefined
    if (failure !== undefined && wasPending) this.#events?.lost(id, failure)
    this.#endIfExpired()
  }

  #receive(message: Envelope, during?: number): void {
    const answered = message.kind === 'response' ? this.#pending.delete(numberOf(message.id)) : undefined
    if (answered !== undefined) {
      this.#linger(answered)
      answered.answered()
    } else if (message.kind === 'response') this.#cancelled.delete(numberOf(message.id))?.abort()
    this.#events?.receive(message, during)
    this.#endIfExpired()
  }

  /** Most streams end with the response; the sweep closes those that would keep a connection open. */
  #linger(exchange: RequestExchange): void {
    this.#lingering.set(exchange.id, exchange)
    this.#lingerTimer ??= setTimeout(() => this.#endLingering(), this.#options.lingerMs).unref()
  }

  #endLingering(): void {
    this.#lingerTimer = undefined
    const ended = this.#lingering.values()
    this.#lingering.clear()
    for (const exchange of ended) {
      if (exchange.isStreaming) this.#linger(exchange)
      else exchange.abort()
    }
  }

  /**
   * Sends a notification or a response; the server may answer it with a status only. A response whose connection breaks is sent a second
   * time: without it, the server's request would wait until its timeout.
   */
  #notify(message: Outgoing, isSecond = false): void {
    const done = (): void => {
      this.#stops.delete(stop)
      if (message.isAnswer !== true) this.#gate.open()
    }
    const refused = (failure: Failure, sample: string): void => {
      done()
      this.#events?.unparsable(`a message without an id was not accepted: ${failure.message}`, sample)
    }
    const reply = this.#endpoint.post(message, {
      onHead: (head) => {
        if (head.status >= 300) return
        if (head.form === 'sse') reply.abort()
        done()
      },
      onEvent: () => undefined,
      onEnd: (head, body) => {
        if (head.status >= 300) refused(failureOfStatus(head, false, Date.now(), body), sampleOf(body))
      },
      onError: (failure) => {
        if (message.isAnswer !== true || isSecond || failure.kind !== 'lost' || this.#closing !== undefined)
          return refused(failure, '')
        this.#stops.delete(stop)
        this.#notify(message, true)
      },
    })
    const stop = (): void => reply.abort()
    this.#stops.add(stop)
  }
}

/** The number of an id in the gateway's own form; NaN for any other text, such as `"1"`. */
const numberOf = (id: Id | undefined): number => {
  if (id === undefined || id.length === 0 || id.length > MAX_DIGITS) return NaN
  let number = 0
  for (let at = 0; at < id.length; at++) {
    const digit = id.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return NaN
    number = number * 10 + digit
  }
  return number
}

const notOpen = (): Failure => new Failure('lost', 'the channel is closed', { executed: 'no' })
