/**
 * Requests of legacy hosts over Streamable HTTP: sessions, their streams and what is resumed on them. Row numbers are those of
 * BRIDGING 5.1.
 */
import { readInitialize } from '../../../era/host/legacy-host.ts'
import type { Introduction } from '../../../era/host/legacy-host.ts'
import { isSameEndpoint, Refusal } from '../../../rpc/call.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { isBatch } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { resultMessage } from '../../../wire/message/message.ts'
import type { JsonObject } from '../../../wire/message/payload.ts'
import { isLegacyRevision, isRevision, isWithin } from '../../../wire/protocol/revisions.ts'
import { isAnswered, readBatch, serveBatch } from './batch.ts'
import type { BatchOutlet } from './batch.ts'
import { note } from '../../denials.ts'
import { accepts, decidedFirst, EVENTS, refuse, refuseBusy, turnAway } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import { EventBudget } from '../../response/event-budget.ts'
import { EventLog } from '../../response/event-log.ts'
import { StoredEvents } from '../../response/stored-events.ts'
import { JSON_TYPE, PostExchange } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { announceAll, announceChanges, hearLegacy, restoreSettings, serveLegacy } from '../../legacy.ts'
import { errorReply } from '../../response/respond.ts'
import { Session } from '../../session/session.ts'
import { Sessions } from '../../session/sessions.ts'
import { digestOf } from '../../session/session-ids.ts'
import type { HttpSession } from '../../session/sessions.ts'
import { initializeAnswer, whenReady } from '../../welcome.ts'

/** The same for a session that has ended as for one that never was (T-05). */
const GONE = 'Session not found: it has ended (listen.limits.session_idle, session_max), or never was'
const EVENT_LIMITS = 'listen.limits.events, event_bytes, session_event_bytes, event_age, event_log'

/** The way back of a batch to which nothing is said. */
const TAKEN: BatchOutlet = { isStream: false, message: () => undefined, answer: () => undefined, end: () => undefined }

/** Sessions that the store is asked about at one time. */
const YIELD_AT_ONCE = 500

/** Results of this era have no members of the gateway. */
const sameResult = (result: JsonObject): JsonObject => result

export class SessionRequests {
  readonly #context: ListenerContext
  readonly #sessions: Sessions
  /** What can be resumed, of all sessions. */
  readonly #budget: EventBudget
  #nextPost = 0

  constructor(context: ListenerContext) {
    this.#context = context
    this.#sessions = new Sessions(
      () => context.options.limits,
      context.limits,
      ({ id }) => context.sessionIds.end(id),
    )
    this.#budget = new EventBudget(() => context.options.limits.maxTotalEventBytes, context.limits)
  }

  get size(): number {
    return this.#sessions.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    return this.#sessions.inFlight
  }

  /** Whether the session is at this process. */
  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** Lets go of sessions that another replica has taken over while this one could not be reached. Rejects with `StoreDown`. */
  async yieldTaken(): Promise<void> {
    const ids = this.#sessions.ids
    for (let at = 0; at < ids.length; at += YIELD_AT_ONCE) {
      const some = ids.slice(at, at + YIELD_AT_ONCE)
      const taken = await this.#context.replicas?.areTakenOver(some)
      for (const [index, id] of some.entries()) if (taken?.[index] === true) this.#sessions.yield(id)
    }
  }

  /** A session that another replica may have taken over does not end because its host does not come here. */
  sweep(nowMs: number): void {
    this.#sessions.sweep(nowMs, this.#isLeased)
  }

  get #isLeased(): boolean {
    return this.#context.replicas?.isLeased ?? true
  }

  endAll(): void {
    this.#sessions.endAll()
  }

  /** Ends the sessions of these principals. */
  revoke(isRevoked: (principal: string) => boolean): void {
    this.#sessions.revoke(isRevoked)
  }

  /** Opens a session. */
  initialize(message: Envelope, entrance: RoutedRequest): void {
    const { request, principal, scope } = entrance
    const id = message.id ?? 'null'
    const refusal = this.#context.admission.refuseSession()
    if (refusal !== undefined) return refuseBusy(this.#context, entrance, refusal, message)
    try {
      const introduction = readInitialize(message, this.#context.options.revisions)
      const { session } = this.#add(introduction, entrance, this.#context.sessionIds.mint(introduction, principal, scope))
      whenReady(initializeAnswer(session.caller, this.#context), (result) =>
        request.reply(200, { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, resultMessage(id, result)),
      )
    } catch (error) {
      if (error instanceof Failure) return refuseBusy(this.#context, entrance, error, message)
      const ref = this.#context.nextRef()
      const reply = errorReply(error, { id, era: 'legacy', method: 'initialize', ref, encode: (result) => result }, this.#context)
      const status = error instanceof Refusal ? error.status : 503
      note(this.#context, entrance, status, String(error), message)
      request.reply(status, JSON_TYPE, reply.message)
    }
  }

  /** Any other message; `version`: the header. */
  message(message: Envelope, entrance: RoutedRequest, version: string | undefined): void {
    const { request } = entrance
    const held = this.#session(entrance, message)
    if (held === undefined) return
    if (version !== undefined && !(isRevision(version) && isWithin(version, this.#context.options.revisions)))
      return refuse(this.#context, entrance, 400, -32600, `unsupported MCP-Protocol-Version "${version}"`, message)
    if (message.kind !== 'request') {
      hearLegacy(message, held.session, this.#context)
      return request.reply(202, {})
    }
    const refusal = this.#context.admission.refuse(held.session.principal)
    if (refusal !== undefined) return refuseBusy(this.#context, entrance, refusal, message)
    serveLegacy(message, held.session, this.#exchange(held, entrance, message), this.#context)
  }

  /** Row 8. False: this is no array. Throws what refuses the whole of it. */
  batch(entrance: RoutedRequest, body: Buffer): boolean {
    if (!isBatch(body)) return false
    const { request } = entrance
    const held = this.#find(entrance)
    const elements = readBatch(body, held?.session, this.#context.options.limits)
    if (elements === undefined || held === undefined) return false
    const exchange = isAnswered(elements) ? this.#exchange(held, entrance) : TAKEN
    serveBatch(elements, held.session, exchange, this.#context, false)
    if (exchange === TAKEN) request.reply(202, {})
    return true
  }

  /** Opens the standalone stream, or resumes one. */
  get(entrance: RoutedRequest): void {
    const { request } = entrance
    if (!accepts(request, EVENTS)) return refuse(this.#context, entrance, 406, -32600, 'Accept must list text/event-stream')
    if (request.header('mcp-session-id') === undefined && isModernVersion(request))
      return turnAway(this.#context, entrance, 405, { Allow: 'POST' })
    const held = this.#session(entrance)
    if (held === undefined) return
    const lastEventId = request.header('last-event-id')
    if (lastEventId === undefined) this.#openStandalone(held, request)
    // What an earlier process sent is kept by none: the stream goes on with what comes.
    else if (held.isReopened && held.session.log?.after(lastEventId) === undefined) this.#openStandalone(held, request)
    else this.#resume(held, entrance, lastEventId)
  }

  /** Ends a session. */
  delete(entrance: RoutedRequest): void {
    if (entrance.request.header('mcp-session-id') === undefined && isModernVersion(entrance.request))
      return turnAway(this.#context, entrance, 405, { Allow: 'POST' })
    const held = this.#session(entrance)
    if (held === undefined) return
    this.#sessions.end(held)
    entrance.request.reply(200, {})
  }

  #exchange(held: HttpSession, { request, challenge }: RoutedRequest, message?: Envelope): PostExchange {
    const { options, store } = this.#context
    const { elicitation, sampling, roots } = held.session.capabilities
    const mayBeAsked = elicitation !== undefined || sampling !== undefined || roots !== undefined
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs: decidedFirst(mayBeAsked ? options.streamAfterLegacyMs : options.streamAfterMs, held.session.scope),
      pollAfterMs: options.pollAfterMs,
      log: held.session.log,
      of: store === undefined || message?.id === undefined ? undefined : { id: message.id, method: message.method },
      primes: held.session.revision >= '2025-11-25',
      principal: held.session.principal,
      challenge,
      untilMs: Infinity,
      onDone: (post) => held.posts.delete(post.number),
      onOrphaned: (post) => held.session.abandon(post),
    })
    held.posts.set(exchange.number, exchange)
    return exchange
  }

  /** Row 9. Answers itself, and returns nothing, where there is no such session. */
  #session(entrance: RoutedRequest, message?: Envelope): HttpSession | undefined {
    const { request } = entrance
    if (request.header('mcp-session-id') === undefined) {
      refuse(
        this.#context,
        entrance,
        400,
        -32600,
        'Mcp-Session-Id is missing: send initialize first, or describe the request by params._meta',
        message,
      )
      return undefined
    }
    const held = this.#find(entrance)
    if (held === undefined) refuse(this.#context, entrance, 404, -32600, GONE, message)
    return held
  }

  /** The session a request names, if it is its principal's and of this endpoint; it sees from now on what this credential may see. */
  #find(entrance: RoutedRequest): HttpSession | undefined {
    const { request, principal, scope, facts, untilMs } = entrance
    const id = request.header('mcp-session-id')
    const held = id === undefined ? undefined : (this.#sessions.find(id, principal) ?? this.#reopen(id, entrance))
    if (held === undefined || !isSameEndpoint(held.session.scope, scope)) return undefined
    held.untilMs = Math.max(held.untilMs, untilMs)
    held.session.see(scope, facts)
    return held
  }

  #add(introduction: Introduction, { principal, scope, facts, untilMs }: RoutedRequest, id: string): HttpSession {
    const session = new Session(introduction, principal, scope, this.#context.admission, id, 'http')
    session.see(scope, facts)
    const { store, options } = this.#context
    const { limits } = options
    const mayWrite = (): boolean => this.#isLeased
    const stored =
      store && new StoredEvents(store, digestOf(id), { maxEvents: limits.maxEvents, ttlMs: limits.maxEventAgeMs, mayWrite })
    session.log = new EventLog(limits, this.#budget, this.#context.limits, stored)
    const held = this.#sessions.add(session, untilMs)
    session.onSet = (settings) => this.#context.sessionIds.keep(id, settings)
    announceChanges(session, this.#context)
    return held
  }

  /** Takes up a session of an earlier process (B276). Its links are opened when it calls; what is listed may be another. */
  #reopen(id: string, entrance: RoutedRequest): HttpSession | undefined {
    const { sessionIds, options, log } = this.#context
    const reopened = sessionIds.reopen(id, entrance.principal, entrance.scope)
    if (reopened === undefined || !isWithin(reopened.introduction.revision, options.revisions)) return undefined
    let held: HttpSession
    try {
      held = this.#add(reopened.introduction, entrance, id)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      log.warn({ kind: error.kind }, `a session of an earlier process is not taken up: ${error.message}`)
      return undefined
    }
    const { session } = held
    session.startedMs -= Date.now() - reopened.issuedMs
    session.initialized()
    held.isReopened = true
    this.#restore(session, id)
    announceAll(session)
    restoreSettings(session, reopened.settings, this.#context)
    return held
  }

  /** Streams that its replica had: a request without an answer ends here, since its server may have acted. */
  #restore(session: Session, id: string): void {
    const streams = this.#context.sessionIds.restored(id)
    for (const { name, of } of (streams && session.log?.restore(streams)) ?? []) {
      const failure = new Failure('lost', 'the replica that ran the call has ended')
      const failed = { ...of, era: 'legacy', ref: this.#context.nextRef(), encode: sameResult } as const
      session.log?.append(name, errorReply(failure, failed, this.#context).message)
      session.log?.end(name)
    }
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
    if (resumed === undefined && session.revision >= '2025-11-25') events.prime(log.append(name, []))
    const detach = session.attach({ send: (parts) => events.message(parts, log.append(name, parts)), flow: events })
    events.onClose(() => {
      detach()
      if (held.stream?.events === events) held.stream = undefined
    })
  }

  /** What followed on the stream of that event, then the rest of it (B202). */
  #resume(held: HttpSession, entrance: RoutedRequest, lastEventId: string): void {
    const { request } = entrance
    const { log } = held.session
    const missed = log?.after(lastEventId)
    if (log === undefined || missed === undefined)
      return refuse(
        this.#context,
        entrance,
        400,
        -32600,
        `that event is not kept any more (${EVENT_LIMITS}): the stream cannot be resumed`,
      )
    const post = held.posts.values().find((candidate) => candidate.name === missed.stream)
    if (post === undefined && !missed.isEnded) {
      this.#openStandalone(held, request, missed.stream)
      for (const event of missed.events) held.stream?.events.message(event.parts, event.id)
      return
    }
    const events = request.openEvents({})
    for (const event of missed.events) events.message(event.parts, event.id)
    if (post === undefined) events.end()
    else post.resume(events)
  }
}

const isModernVersion = (request: HttpRequest): boolean => {
  const version = request.header('mcp-protocol-version')
  return version !== undefined && !isLegacyRevision(version)
}
