/**
 * Streamable HTTP toward one server, in both eras: every message is a POST of its own, every request has its own way back.
 * The legacy form adds a session, a standalone GET stream and resumption; the modern one uses none of them, and closing a
 * request's stream is its cancellation.
 */
import type { Envelope } from '../wire/envelope.ts'
import { Failure } from '../wire/failure.ts'
import type { Revision } from '../wire/revisions.ts'
import type { Channel, ChannelEvents, Outgoing } from './channel.ts'
import type { HttpClient } from './http-client.ts'
import { failureOfStatus } from './http-failure.ts'
import { tooLarge } from './http-reply.ts'
import { readIncoming, sampleOf } from './incoming.ts'
import { McpEndpoint } from './mcp-endpoint.ts'
import { rawExchange } from './raw-exchange.ts'
import type { RawAnswer } from './raw-exchange.ts'
import { DEFAULT_RECONNECT } from './reconnect.ts'
import { RequestExchange } from './request-exchange.ts'
import type { ResumeOptions } from './request-exchange.ts'
import { DEFAULT_GATE_MS, SendGate } from './send-gate.ts'
import { StandingStream } from './standing-stream.ts'

export interface StreamableOptions extends ResumeOptions {
  readonly maxMessageBytes: number
  /** For the DELETE that ends the session. */
  readonly closeTimeoutMs: number
  /** How long messages wait for the server to take `notifications/initialized`. */
  readonly gateMs: number
  /** The sweep that closes streams of answered requests comes this often. */
  readonly lingerMs: number
}

export const DEFAULT_STREAMABLE: StreamableOptions = {
  ...DEFAULT_RECONNECT,
  maxResumes: 5,
  maxMessageBytes: 16 * 1024 * 1024,
  closeTimeoutMs: 2_000,
  gateMs: DEFAULT_GATE_MS,
  lingerMs: 1_000,
}

export class StreamableChannel implements Channel {
  readonly kind = 'http'
  readonly #endpoint: McpEndpoint
  readonly #options: StreamableOptions
  readonly #gate: SendGate
  readonly #closed = Promise.withResolvers<Failure | undefined>()
  /** Requests without their response, by id. */
  readonly #pending = new Map<string, RequestExchange>()
  /** Answered requests whose streams have not ended yet. */
  readonly #lingering = new Set<RequestExchange>()
  #lingerTimer: NodeJS.Timeout | undefined
  /** Ends whatever else is open: notifications and raw exchanges. */
  readonly #loose = new Set<() => void>()
  #stream: StandingStream | undefined
  #events: ChannelEvents | undefined
  #closing: Promise<void> | undefined

  /** `headers` go to the origin of `url` and nowhere else. */
  constructor(
    client: HttpClient,
    url: URL,
    headers: Readonly<Record<string, string>> = {},
    options: Partial<StreamableOptions> = {},
  ) {
    this.#options = { ...DEFAULT_STREAMABLE, ...options }
    this.#endpoint = new McpEndpoint(client, url, headers, this.#options.maxMessageBytes)
    this.#gate = new SendGate(this.#options.gateMs)
  }

  get closed(): Promise<Failure | undefined> {
    return this.#closed.promise
  }

  /** Connects nothing: there is no connection to a Streamable HTTP server, only requests. */
  open(events: ChannelEvents): Promise<void> {
    this.#events = events
    return Promise.resolve()
  }

  /** What the handshake agreed on: `MCP-Protocol-Version` of everything from now on. */
  setRevision(revision: Revision): void {
    this.#endpoint.setRevision(revision)
  }

  send(message: Outgoing): boolean {
    const { id } = message
    if (this.#closing !== undefined) {
      if (id !== undefined) queueMicrotask(() => this.#events?.lost(id, notOpen()))
    } else if (id === undefined) this.#gate.pass(false, () => this.#notify(message))
    else {
      const exchange = this.#exchangeFor(message, id)
      this.#pending.set(exchange.id, exchange)
      this.#gate.pass(true, () => exchange.start())
    }
    return true
  }

  abandon(id: number): void {
    const exchange = this.#pending.get(String(id))
    this.#pending.delete(String(id))
    exchange?.abort()
  }

  /**
   * Opens the standalone GET stream and keeps it open; resolves with whether the server offers one. A session that turns out
   * to be gone ends the channel with `session_expired`.
   */
  openStream(): Promise<boolean> {
    if (this.#closing !== undefined) return Promise.resolve(false)
    if (this.#stream === undefined) {
      const ports = {
        get: this.#endpoint.get.bind(this.#endpoint),
        message: (bytes: Buffer) => this.#read(bytes),
        oversize: () => this.#events?.garbage(tooLarge(this.#options.maxMessageBytes).message, ''),
        expired: (failure: Failure) => void (this.#closing ??= this.#shut(failure)),
      }
      this.#stream = new StandingStream(ports, this.#options)
      this.#stream.open()
    }
    return this.#stream.isOffered
  }

  /** One POST outside of the channel's bookkeeping, for the era probe and the handshake; it does take up the session. */
  exchange(message: Outgoing, timeoutMs: number): Promise<RawAnswer> {
    if (this.#closing !== undefined) return Promise.reject(notOpen())
    const raw = rawExchange(this.#endpoint, message, timeoutMs)
    const stop = (): void => raw.stop()
    this.#loose.add(stop)
    return raw.answer.finally(() => this.#loose.delete(stop))
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#shut(undefined))
  }

  async #shut(reason: Failure | undefined): Promise<void> {
    this.#stream?.stop()
    clearTimeout(this.#lingerTimer)
    const unanswered = [...this.#pending.values()]
    this.#pending.clear()
    for (const exchange of [...unanswered, ...this.#lingering]) exchange.abort()
    this.#gate.close()
    for (const stop of this.#loose) stop()
    for (const { id, isSent } of unanswered)
      this.#events?.lost(Number(id), new Failure('lost', 'the channel was closed', { executed: isSent ? 'unknown' : 'no' }))
    if (reason === undefined) await this.#endpoint.leave(this.#options.closeTimeoutMs)
    this.#closed.resolve(reason)
  }

  #exchangeFor(message: Outgoing, id: number): RequestExchange {
    const endpoint = this.#endpoint
    let hadSession = false
    const exchange: RequestExchange = new RequestExchange(
      id,
      {
        post: (events) => {
          hadSession = endpoint.hasSession
          return endpoint.post(message, events)
        },
        resume: (lastEventId, events) => (endpoint.isModern ? undefined : endpoint.get(lastEventId, events)),
        hadSession: () => hadSession,
        receive: (message) => this.#receive(message, id),
        garbage: ({ reason, sample }) => this.#events?.garbage(reason, sample),
        ended: (failure) => {
          this.#lingering.delete(exchange)
          const wasPending = this.#pending.delete(exchange.id)
          if (failure !== undefined && wasPending) this.#events?.lost(id, failure)
        },
      },
      this.#options,
    )
    return exchange
  }

  #read(bytes: Buffer): void {
    const refuse = ({ reason, sample }: { reason: string; sample: string }): void => this.#events?.garbage(reason, sample)
    readIncoming(bytes, (message) => this.#receive(message), refuse)
  }

  #receive(message: Envelope, during?: number): void {
    const answered = message.kind === 'response' && message.id !== undefined ? this.#pending.get(message.id) : undefined
    if (answered !== undefined) {
      this.#pending.delete(answered.id)
      this.#linger(answered)
      answered.answered()
    }
    this.#events?.receive(message, during)
  }

  /** Most streams end together with the response; the sweep closes those that would go on holding a connection. */
  #linger(exchange: RequestExchange): void {
    this.#lingering.add(exchange)
    this.#lingerTimer ??= setTimeout(() => {
      this.#lingerTimer = undefined
      for (const exchange of this.#lingering) exchange.abort()
      this.#lingering.clear()
    }, this.#options.lingerMs).unref()
  }

  /** A notification or a response: taken with a 2xx, and that is all the server may say. */
  #notify(message: Outgoing): void {
    const done = (): void => {
      this.#loose.delete(stop)
      this.#gate.open()
    }
    const refused = (failure: Failure, sample: string): void => {
      done()
      this.#events?.garbage(`a message without an id was not taken: ${failure.message}`, sample)
    }
    const reply = this.#endpoint.post(message, {
      onHead: (head) => {
        if (head.status >= 300) return
        if (head.form === 'sse') reply.abort()
        done()
      },
      onEvent: () => undefined,
      onEnd: (head, body) => {
        if (head.status >= 300) refused(failureOfStatus(head, false, Date.now()), sampleOf(body))
      },
      onError: (failure) => refused(failure, ''),
    })
    const stop = (): void => reply.abort()
    this.#loose.add(stop)
  }
}

const notOpen = (): Failure => new Failure('lost', 'the channel is closed', { executed: 'no' })
