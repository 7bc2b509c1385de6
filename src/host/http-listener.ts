/**
 * `/mcp` and `/servers/<key>/mcp`: both eras on one URL. What is checked, in which order, and which status answers is the
 * ladder of BRIDGING 5.1; row numbers stand beside the checks.
 */
import { initializeResult, readInitialize } from '../era/legacy-host.ts'
import { isModern } from '../era/modern-host.ts'
import { Refusal } from '../rpc/call.ts'
import type { Scope } from '../rpc/call.ts'
import { Cancellation } from '../rpc/cancellation.ts'
import type { Sweeper } from '../rpc/sweeper.ts'
import type { HttpRequest } from '../transport/http-server.ts'
import { EnvelopeError, readHostMessage } from '../wire/envelope.ts'
import type { Envelope } from '../wire/envelope.ts'
import { Failure } from '../wire/failure.ts'
import { IdTable } from '../wire/id-table.ts'
import { errorMessage, errorObject, resultMessage } from '../wire/message.ts'
import type { JsonObject } from '../wire/payload.ts'
import { isLegacyRevision, isModernRevision, isRevision } from '../wire/revisions.ts'
import { isAnswered, readBatch, serveBatch } from './batch.ts'
import type { BatchOutlet } from './batch.ts'
import { EventBudget } from './event-budget.ts'
import { withinRequest } from './boundary.ts'
import { EventLog } from './event-log.ts'
import { JSON_TYPE, PostExchange, RETRY_MS } from './exchange.ts'
import type { Hub } from './hub.ts'
import { announceChanges, hearLegacy, serveLegacy } from './legacy.ts'
import { serveModern } from './modern.ts'
import { errorReply } from './respond.ts'
import { Session } from './session.ts'
import { Sessions } from './sessions.ts'
import type { HttpSession } from './sessions.ts'

/** One request as far as its way in has been settled: path and credential. */
export interface Entrance {
  readonly request: HttpRequest
  readonly principal: string
  readonly scope: Scope
}

const EVENTS = 'text/event-stream'
const JSON_BODY = 'application/json'
const BUSY = { 'Retry-After': '1' }
/** What the SDKs send, letter for letter: taken without being taken apart. */
const USUAL_ACCEPT = 'application/json, text/event-stream'
/** The way back of a batch to which nothing is said. */
const TAKEN: BatchOutlet = { isStream: false, message: () => undefined, answer: () => undefined, end: () => undefined }

export class HttpListener {
  readonly #hub: Hub
  readonly #sessions: Sessions
  /** What can be resumed, of all sessions. */
  readonly #budget: EventBudget
  readonly #sweeper: Sweeper
  /** Modern requests whose answer is not out yet. */
  readonly #posts = new IdTable<PostExchange>()
  #nextPost = 0
  #isDraining = false

  constructor(hub: Hub, sweeper: Sweeper) {
    this.#hub = hub
    this.#sessions = new Sessions(() => hub.options.limits)
    this.#budget = new EventBudget(hub.options.limits.maxTotalEventBytes, hub.log)
    this.#sweeper = sweeper
    sweeper.watch(this)
  }

  get sessionCount(): number {
    return this.#sessions.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    return this.#posts.size + this.#sessions.inFlight
  }

  /** Takes no new work from now on; what is under way goes on. */
  drain(): void {
    this.#isDraining = true
  }

  close(): void {
    this.#sweeper.unwatch(this)
    this.#sessions.endAll()
    for (const post of this.#posts.values()) post.end()
  }

  sweep(): void {
    const nowMs = performance.now()
    for (const post of this.#posts.values()) post.sweep(nowMs, this.#hub.options.limits)
    this.#sessions.sweep(nowMs)
  }

  handle(entrance: Entrance): void {
    const { request } = entrance
    if (request.method === 'POST') this.#post(entrance)
    else if (request.method === 'GET') this.#get(entrance)
    else if (request.method === 'DELETE') this.#delete(entrance)
    else request.reply(405, { Allow: 'GET, POST, DELETE' })
  }

  #post(entrance: Entrance): void {
    const { request } = entrance
    const { limits } = this.#hub.options
    if (!carriesJson(request)) return refuse(request, 415, -32600, 'Content-Type must be application/json')
    if (!accepts(request, JSON_BODY) || !accepts(request, EVENTS))
      return refuse(request, 406, -32600, 'Accept must list application/json and text/event-stream')
    if (this.#isDraining) return request.reply(503, { 'Retry-After': '1', Connection: 'close' })
    request.readBody(limits.maxBodyBytes, (body) => {
      if (body === undefined)
        return refuse(request, 413, -32600, `the body exceeds listen.limits.max_body (${limits.maxBodyBytes} bytes)`)
      withinRequest(request, this.#hub, () => this.#message(entrance, body))
    })
  }

  #message(entrance: Entrance, body: Buffer): void {
    const { request } = entrance
    let message: Envelope
    try {
      if (this.#batch(entrance, body)) return
      message = readHostMessage(body, this.#hub.options.limits)
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      return request.reply(400, JSON_TYPE, errorMessage(error.id, errorObject(error.code, error.message)))
    }
    const version = request.header('mcp-protocol-version')
    const namesModern = version !== undefined && isModernRevision(version)
    // Row 9 stands before row 10: whoever brings a session or opens one is legacy, whatever the header says.
    const isLegacy = message.method === 'initialize' || request.header('mcp-session-id') !== undefined
    if (isModern(message) || (namesModern && !isLegacy)) this.#modern(message, entrance)
    else if (message.method === 'initialize' && message.kind === 'request') this.#initialize(message, entrance)
    else this.#legacy(message, entrance, version)
  }

  #modern(message: Envelope, { request, principal, scope }: Entrance): void {
    if (message.kind === 'response') return refuse(request, 400, -32600, 'a modern host sends no responses')
    if (message.kind === 'notification') return request.reply(202, {})
    const { limits, streamAfterMs } = this.#hub.options
    if (this.#posts.size >= limits.maxInFlight)
      return this.#refuseAsBusy(message, request, `listen.limits.in_flight (${limits.maxInFlight}) reached`)
    if (this.#hub.overload.shedding === 2) return request.reply(503, BUSY)
    const abort = new Cancellation()
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs,
      pollAfterMs: Infinity,
      log: undefined,
      primes: false,
      onDone: (post) => this.#posts.delete(post.number),
      // Closing the connection before the answer is how a modern host cancels (B138).
      onDisconnect: () => abort.abort(),
      onOrphaned: () => undefined,
    })
    this.#posts.set(exchange.number, exchange)
    serveModern(message, { principal, scope, headers: request.headers(), isPipe: false }, exchange, abort, this.#hub)
  }

  /** Before anything was done: the status says it, too. */
  #refuseAsBusy({ id }: Envelope, request: HttpRequest, limit: string): void {
    const failure = new Failure('overloaded', limit, { executed: 'no', retryable: true, retryAfterMs: 1_000 })
    const failed = { id, era: 'modern', method: '', ref: this.#hub.nextRef(), word: (result: JsonObject) => result } as const
    request.reply(503, { ...JSON_TYPE, ...BUSY }, errorReply(failure, failed).message)
  }

  #initialize(message: Envelope, { request, principal, scope }: Entrance): void {
    const id = message.id ?? 'null'
    if (this.#hub.overload.shedding > 0) return request.reply(503, BUSY)
    try {
      const session = new Session(readInitialize(message), principal, scope)
      const { maxEvents, maxEventBytes, maxSessionEventBytes, maxEventAgeMs } = this.#hub.options.limits
      const limits = { maxEvents, maxStreamBytes: maxEventBytes, maxSessionBytes: maxSessionEventBytes, maxAgeMs: maxEventAgeMs }
      session.log = new EventLog(limits, this.#budget)
      this.#sessions.add(session)
      announceChanges(session, this.#hub)
      const result = initializeResult(
        session.revision,
        this.#hub.identity,
        this.#hub.core.instructions(scope),
        this.#hub.core.offers(scope),
      )
      const parts = resultMessage(id, [Buffer.from(JSON.stringify(result))])
      request.reply(200, { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, parts)
    } catch (error) {
      const ref = this.#hub.nextRef()
      const reply = errorReply(error, { id, era: 'legacy', method: 'initialize', ref, word: (result) => result })
      if (error instanceof Refusal) request.reply(200, JSON_TYPE, reply.message)
      else request.reply(503, { ...JSON_TYPE, 'Retry-After': '1' }, reply.message)
    }
  }

  #legacy(message: Envelope, entrance: Entrance, version: string | undefined): void {
    const { request } = entrance
    const held = this.#session(entrance, message)
    if (held === undefined) return
    if (version !== undefined && !isRevision(version))
      return refuse(request, 400, -32600, `unsupported MCP-Protocol-Version "${version}"`, message)
    if (message.kind !== 'request') {
      hearLegacy(message, held.session, this.#hub)
      return request.reply(202, {})
    }
    if (this.#hub.overload.shedding === 2) return request.reply(503, BUSY)
    serveLegacy(message, held.session, this.#exchange(held, request), this.#hub)
  }

  /** Row 8. False: this is no array. Throws what refuses the whole of it. */
  #batch({ request, principal, scope }: Entrance, body: Buffer): boolean {
    const id = request.header('mcp-session-id')
    const held =
      id === undefined ? undefined : this.#sessions.find(id, principal, (session) => session.scope.server === scope.server)
    const elements = readBatch(body, held?.session, this.#hub.options.limits)
    if (elements === undefined || held === undefined) return false
    const exchange = isAnswered(elements) ? this.#exchange(held, request) : TAKEN
    serveBatch(elements, held.session, exchange, this.#hub, false)
    if (exchange === TAKEN) request.reply(202, {})
    return true
  }

  #exchange(held: HttpSession, request: HttpRequest): PostExchange {
    const { options } = this.#hub
    const { elicitation, sampling, roots } = held.session.capabilities
    const mayBeAsked = elicitation !== undefined || sampling !== undefined || roots !== undefined
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs: mayBeAsked ? options.streamAfterLegacyMs : options.streamAfterMs,
      pollAfterMs: options.pollAfterMs,
      log: held.session.log,
      primes: held.session.revision >= '2025-11-25',
      onDone: (post) => held.posts.delete(post.number),
      onOrphaned: (post) => held.session.abandon(post),
    })
    held.posts.set(exchange.number, exchange)
    return exchange
  }

  /** Row 9. Answers itself, and returns nothing, where there is no such session. */
  #session({ request, principal, scope }: Entrance, message?: Envelope): HttpSession | undefined {
    const id = request.header('mcp-session-id')
    if (id === undefined) {
      refuse(
        request,
        400,
        -32600,
        'Mcp-Session-Id is missing: send initialize first, or describe the request by params._meta',
        message,
      )
      return undefined
    }
    const held = this.#sessions.find(id, principal, (session) => session.scope.server === scope.server)
    if (held === undefined) refuse(request, 404, -32600, 'Session not found', message)
    return held
  }

  #get(entrance: Entrance): void {
    const { request } = entrance
    if (!accepts(request, EVENTS)) return refuse(request, 406, -32600, 'Accept must list text/event-stream')
    if (request.header('mcp-session-id') === undefined && isModernVersion(request)) return request.reply(405, { Allow: 'POST' })
    const held = this.#session(entrance)
    if (held === undefined) return
    const lastEventId = request.header('last-event-id')
    if (lastEventId === undefined) this.#openStandalone(held, request)
    else this.#resume(held, request, lastEventId)
  }

  /** The standalone stream: list changes, updates, what belongs to no request. A second one replaces the first. */
  #openStandalone(held: HttpSession, request: HttpRequest, resumed?: string): void {
    const { session } = held
    const { log } = session
    if (log === undefined) return
    const events = request.openEvents({})
    const name = resumed ?? log.open()
    const before = held.stream
    held.stream = { events, name }
    before?.events.end()
    if (resumed === undefined && session.revision >= '2025-11-25')
      events.send([], { id: log.append(name, []), retryMs: RETRY_MS })
    const detach = session.attach({ send: (parts) => events.send(parts, { id: log.append(name, parts) }) })
    events.onClose(() => {
      detach()
      if (held.stream?.events === events) held.stream = undefined
    })
  }

  /** What followed on the stream of that event, then the rest of it (B202). */
  #resume(held: HttpSession, request: HttpRequest, lastEventId: string): void {
    const { log } = held.session
    const missed = log?.after(lastEventId)
    if (log === undefined || missed === undefined)
      return refuse(
        request,
        400,
        -32600,
        'that event is not kept any more (listen.limits.event_log): the stream cannot be resumed',
      )
    const post = held.posts.values().find((candidate) => candidate.name === missed.stream)
    if (post === undefined && !missed.isEnded) {
      this.#openStandalone(held, request, missed.stream)
      for (const event of missed.events) held.stream?.events.send(event.parts, { id: event.id })
      return
    }
    const events = request.openEvents({})
    for (const event of missed.events) events.send(event.parts, { id: event.id })
    if (post === undefined) events.end()
    else post.resume(events)
  }

  #delete(entrance: Entrance): void {
    if (entrance.request.header('mcp-session-id') === undefined && isModernVersion(entrance.request))
      return entrance.request.reply(405, { Allow: 'POST' })
    const held = this.#session(entrance)
    if (held === undefined) return
    this.#sessions.end(held)
    entrance.request.reply(200, {})
  }
}

const isModernVersion = (request: HttpRequest): boolean => {
  const version = request.header('mcp-protocol-version')
  return version !== undefined && !isLegacyRevision(version)
}

/** The one form of body a web page cannot send elsewhere without being allowed to (T-02). */
export const carriesJson = (request: HttpRequest): boolean => mediaType(request.header('content-type')) === JSON_BODY

const mediaType = (header: string | undefined): string =>
  header === JSON_BODY ? header : ((header ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '')

/** Whether `Accept` covers a type; lenient with wildcards, and with hosts that send none. */
const accepts = (request: HttpRequest, type: string): boolean => {
  const header = request.header('accept')
  if (header === undefined) return false
  if (header === USUAL_ACCEPT) return true
  const [major] = type.split('/', 1)
  return header.split(',').some((entry) => {
    const range = mediaType(entry)
    return range === type || range === '*/*' || range === `${major}/*`
  })
}

const refuse = (request: HttpRequest, status: number, code: number, text: string, message?: Envelope): void => {
  const id = message?.kind === 'request' ? message.id : undefined
  request.reply(status, JSON_TYPE, errorMessage(id, errorObject(code, text)))
}
