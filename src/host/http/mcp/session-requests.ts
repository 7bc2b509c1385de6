/** Requests of legacy hosts over Streamable HTTP: sessions, streams, resumption. Row numbers are of BRIDGING 5.1. */
import { randomInt } from 'node:crypto'
import { readInitialize } from '../../../era/host/legacy-host.ts'
import type { Introduction } from '../../../era/host/legacy-host.ts'
import { isSameEndpoint, Refusal } from '../../../rpc/call.ts'
import type { EventStream } from '../../../transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { isBatch } from '../../../wire/message/envelope.ts'
import type { Envelope, EnvelopeError } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { IdTable } from '../../../wire/message/id-table.ts'
import { refusalMessage, resultMessage } from '../../../wire/message/message.ts'
import { isLegacyRevision, isRevision, isWithin, latestLegacyWithin } from '../../../wire/protocol/revisions.ts'
import { needsAnswer, readBatch, serveBatch } from './batch.ts'
import type { BatchOutlet } from './batch.ts'
import { reportDenied } from '../../denials.ts'
import { accepts, EVENTS, refuse, refuseBusy, refuseWithoutBody, streamDelayMs } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import { EventBudget } from '../../response/event-budget.ts'
import { EventLog } from '../../response/event-log.ts'
import type { ResumedStream } from '../../response/event-log.ts'
import { StoredEvents } from '../../response/stored-events.ts'
import { JSON_TYPE, PostExchange } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import type { HostLimits } from '../../options.ts'
import { announceChanges, receiveLegacy, restoreSettings, serveLegacy } from '../../legacy.ts'
import { errorReply } from '../../response/respond.ts'
import { Session } from '../../session/session.ts'
import { Sessions } from '../../session/sessions.ts'
import { digestOf } from '../../../values/digest.ts'
import type { HttpSession } from '../../session/sessions.ts'
import { howToBegin, initializeAnswer, whenReady } from '../../handshake.ts'

/** The names of a session's streams begin at a random number below this. */
const MAX_FIRST_STREAM = 2 ** 40

/** One text for ended and unknown sessions (T-05). */
const GONE = 'Session not found: it has ended (listen.limits.session_idle, session_max), or never was'
/**
 * The body of the official SDKs of TypeScript: the code and no id. Hosts look for it before they initialize again, since a 404 may also come
 * from a proxy. An error with an id would count as the response of the server.
 */
const GONE_BODY = refusalMessage(undefined, -32001, GONE)
const EVENT_LIMITS = 'listen.limits.events, event_bytes, session_event_bytes, event_age, event_log'

/** Standalone streams of a session that its host can resume. */
const MAX_STANDALONE = 16

/** The response channel of a batch without requests. */
const NO_ANSWER: BatchOutlet = { isStream: false, message: () => undefined, answer: () => undefined, end: () => undefined }

/** Sessions per query to the store. */
const TAKEOVER_BATCH = 500

export class SessionRequests {
  readonly sessions: Sessions
  readonly #context: ListenerContext
  /** One for all sessions, which may be ten thousand. */
  readonly #keepSettings: NonNullable<Session['onSet']> = (settings, { id }) => this.#context.sessionIds.keep(id, settings)
  /** Limit of the event logs of all sessions. */
  readonly #budget: EventBudget
  /** Read each time, since a reload changes them for open sessions, too. */
  readonly #limits: () => HostLimits
  #nextPost = 0

  constructor(context: ListenerContext) {
    this.#context = context
    this.#limits = () => context.options.limits
    this.sessions = new Sessions(this.#limits, context.limits, ({ id }) => context.sessionIds.end(id))
    this.#budget = new EventBudget(() => this.#limits().maxTotalEventBytes, context.limits)
  }

  /** Closes sessions that another replica took over while this one could not be reached. Rejects with `StoreDown`. */
  async releaseTakenOver(): Promise<void> {
    const { ids } = this.sessions
    for (let at = 0; at < ids.length; at += TAKEOVER_BATCH) {
      const some = ids.slice(at, at + TAKEOVER_BATCH)
      const taken = await this.#context.replicas?.areTakenOver(some)
      for (const [index, id] of some.entries()) if (taken?.[index] === true) this.sessions.release(id)
    }
  }

  /** Without the lease no session ends: another replica may have taken it over, and get its requests. */
  sweep(nowMs: number): void {
    this.sessions.sweep(nowMs, this.#isLeased)
  }

  get #isLeased(): boolean {
    return this.#context.replicas?.isLeased ?? true
  }

  /** Opens a session. */
  initialize(message: Envelope, routed: RoutedRequest): void {
    const { request, principal, scope } = routed
    const id = message.id ?? 'null'
    const refusal = this.#context.admission.refuseSession()
    if (refusal !== undefined) return refuseBusy(this.#context, routed, refusal, message)
    try {
      const introduction = readInitialize(message, this.#context.options.revisions)
      const { session } = this.#add(introduction, routed, this.#context.sessionIds.mint(introduction, principal, scope))
      whenReady(initializeAnswer(session.caller, this.#context), (result) =>
        request.reply(200, { ...JSON_TYPE, 'Mcp-Session-Id': session.id }, resultMessage(id, result)),
      )
    } catch (error) {
      if (error instanceof Failure) return refuseBusy(this.#context, routed, error, message)
      const ref = this.#context.nextRef()
      const reply = errorReply(error, { id, era: 'legacy', method: 'initialize', ref }, this.#context)
      const status = error instanceof Refusal ? error.status : 503
      reportDenied(this.#context, routed, status, String(error), message)
      request.reply(status, JSON_TYPE, reply.message)
    }
  }

  /** Serves any other message. */
  message(message: Envelope, routed: RoutedRequest): void {
    const { request } = routed
    const entry = this.#session(routed, message)
    if (entry === undefined) return
    if (message.kind !== 'request') {
      receiveLegacy(message, entry.session, this.#context)
      return request.reply(202, {})
    }
    // A ping is answered also while calls are refused (B100).
    const refusal = message.method === 'ping' ? undefined : this.#context.admission.refuse(entry.session.principal)
    if (refusal !== undefined) return refuseBusy(this.#context, routed, refusal, message)
    serveLegacy(message, entry.session, this.#exchange(entry, routed, message), this.#context)
  }

  /** Handles a message that was refused, in the session that it names. */
  refused(routed: RoutedRequest, error: EnvelopeError): void {
    this.sessionOf(routed)?.refused(error)
  }

  /** The open session that a request names. */
  sessionOf({ request, principal }: RoutedRequest): Session | undefined {
    const id = request.header('mcp-session-id')
    return id === undefined ? undefined : this.sessions.find(id, principal)?.session
  }

  /** Serves a batch (rows 8 to 10). False: not an array. Throws `EnvelopeError` for a batch that is refused as a whole. */
  batch(routed: RoutedRequest, body: Buffer): boolean {
    if (!isBatch(body)) return false
    const { request } = routed
    const allowsLegacy = latestLegacyWithin(this.#context.options.revisions) !== undefined
    const isNamed = allowsLegacy && request.header('mcp-session-id') !== undefined
    const entry = isNamed ? this.#session(routed) : undefined
    if (isNamed && entry === undefined) return true
    const elements = readBatch(body, entry?.session, this.#context.options.limits)
    if (elements === undefined || entry === undefined) return false
    const exchange = elements.some(needsAnswer) ? this.#exchange(entry, routed) : NO_ANSWER
    serveBatch(elements, entry.session, exchange, this.#context, false)
    if (exchange === NO_ANSWER) request.reply(202, {})
    return true
  }

  /** Opens the standalone stream, or resumes one. */
  get(routed: RoutedRequest): void {
    const { request } = routed
    if (!accepts(request, EVENTS)) return refuse(this.#context, routed, 406, 'Accept must list text/event-stream')
    if (request.header('mcp-session-id') === undefined && isModernVersion(request))
      return refuseWithoutBody(this.#context, routed, 405, { Allow: 'POST' })
    const entry = this.#session(routed)
    if (entry === undefined) return
    // Empty, it names no event ([HTML, Server-sent events]).
    const lastEventId = request.header('last-event-id') || undefined
    if (lastEventId === undefined) this.#openStandalone(entry, request)
    else if (entry.isReopened && entry.session.log?.after(lastEventId) === undefined) this.#continue(entry, routed, lastEventId)
    else this.#resume(entry, routed, lastEventId)
  }

  /** Ends a session. */
  delete(routed: RoutedRequest): void {
    if (routed.request.header('mcp-session-id') === undefined && isModernVersion(routed.request))
      return refuseWithoutBody(this.#context, routed, 405, { Allow: 'POST' })
    const entry = this.#session(routed)
    if (entry === undefined) return
    this.sessions.end(entry)
    routed.request.reply(200, {})
  }

  #exchange(entry: HttpSession, { request, challenge }: RoutedRequest, message?: Envelope): PostExchange {
    const { options, store } = this.#context
    const { elicitation, sampling, roots } = entry.session.capabilities
    const mayBeAsked = elicitation !== undefined || sampling !== undefined || roots !== undefined
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs: streamDelayMs(mayBeAsked ? options.streamAfterLegacyMs : options.streamAfterMs, entry.session.scope),
      pollAfterMs: options.pollAfterMs,
      log: entry.session.log,
      of: store === undefined || message?.id === undefined ? undefined : { id: message.id, method: message.method },
      primes: isPrimed(entry.session),
      principal: entry.session.principal,
      challenge,
      untilMs: Infinity,
      onDone: (post) => entry.posts?.delete(post.number),
      onOrphaned: (post) => entry.session.abandon(post),
    })
    entry.posts ??= new IdTable()
    entry.posts.set(exchange.number, exchange)
    return exchange
  }

  /** Returns the session of a request (rows 9 and 10); `undefined`: the request was refused. */
  #session(routed: RoutedRequest, message?: Envelope): HttpSession | undefined {
    const { request } = routed
    if (request.header('mcp-session-id') === undefined) {
      const text = `Mcp-Session-Id is missing: ${howToBegin(this.#context.options.revisions)}`
      refuse(this.#context, routed, 400, text, message)
      return undefined
    }
    const entry = this.#find(routed)
    const version = request.header('mcp-protocol-version')
    const isSupported = version === undefined || (isRevision(version) && isWithin(version, this.#context.options.revisions))
    if (entry === undefined) {
      reportDenied(this.#context, routed, 404, GONE, message)
      request.reply(404, JSON_TYPE, GONE_BODY)
    } else if (!isSupported) refuse(this.#context, routed, 400, `unsupported MCP-Protocol-Version "${version}"`, message)
    else return entry
    return undefined
  }

  /** Returns the session a request names if principal and endpoint match, and updates its scope and credential. */
  #find(routed: RoutedRequest): HttpSession | undefined {
    const { request, principal, scope, facts, untilMs } = routed
    const id = request.header('mcp-session-id')
    const entry = id === undefined ? undefined : (this.sessions.find(id, principal) ?? this.#reopen(id, routed))
    if (entry === undefined || !isSameEndpoint(entry.session.scope, scope)) return undefined
    entry.untilMs = Math.max(entry.untilMs, untilMs)
    entry.session.setAccess(scope, facts)
    return entry
  }

  #add(introduction: Introduction, { principal, scope, facts, untilMs }: RoutedRequest, id: string): HttpSession {
    const session = new Session({ introduction, principal, scope, admission: this.#context.admission, id, transport: 'http' })
    session.setAccess(scope, facts)
    const { store } = this.#context
    const mayWrite = (): boolean => this.#isLeased
    const stored = store && new StoredEvents(store, digestOf(id), { limits: this.#limits, mayWrite })
    session.log = new EventLog(this.#limits, this.#budget, this.#context.limits, stored, randomInt(MAX_FIRST_STREAM))
    const entry = this.sessions.add(session, untilMs)
    session.onSet = this.#keepSettings
    announceChanges(session, this.#context)
    return entry
  }

  /** Continues a session of an earlier process (B276). Its links are opened by its next call. */
  #reopen(id: string, routed: RoutedRequest): HttpSession | undefined {
    const { sessionIds, options, log } = this.#context
    const reopened = sessionIds.reopen(id, routed.principal, routed.scope)
    if (reopened === undefined || !isWithin(reopened.introduction.revision, options.revisions)) return undefined
    let entry: HttpSession
    try {
      entry = this.#add(reopened.introduction, routed, id)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      log.warn({ kind: error.kind }, `a session of an earlier process is not taken up: ${error.message}`)
      return undefined
    }
    const { session } = entry
    session.startedMs -= Date.now() - reopened.issuedMs
    session.initialized()
    entry.isReopened = true
    this.#restore(session, id)
    session.mayAllHaveChanged()
    restoreSettings(session, reopened.settings, this.#context)
    return entry
  }

  /** Restores the streams of a session that another replica had. A request without an answer gets an error: its server may have acted. */
  #restore(session: Session, id: string): void {
    const streams = this.#context.sessionIds.restored(id)
    for (const { name, of } of (streams && session.log?.restore(streams)) ?? []) {
      const failure = new Failure('lost', 'the replica that ran the call has ended')
      const failed = { ...of, era: 'legacy', ref: this.#context.nextRef() } as const
      session.log?.append(name, errorReply(failure, failed, this.#context).message)
      session.log?.end(name)
    }
  }

  /** Continues a stream of an earlier process without its events. One only: several would replace each other. */
  #continue(entry: HttpSession, routed: RoutedRequest, lastEventId: string): void {
    const [name = ''] = lastEventId.split('-', 1)
    const { stream } = entry
    if (stream !== undefined && stream.continues !== name) return this.#refuseResumption(routed)
    this.#openStandalone(entry, routed.request, undefined, name)
  }

  #refuseResumption(routed: RoutedRequest): void {
    const text = `that event is no longer stored (${EVENT_LIMITS}): the stream cannot be resumed`
    refuse(this.#context, routed, 400, text)
  }

  /** Opens the standalone stream, for messages that belong to no request. It replaces an earlier one. `resumed`: what the log has of it. */
  #openStandalone(entry: HttpSession, request: HttpRequest, resumed?: ResumedStream, continues?: string): void {
    const { session } = entry
    const { log } = session
    if (log === undefined) return
    const events = request.openEvents({})
    const name = resumed?.stream ?? log.open()
    const names = (entry.streamNames ??= [])
    if (resumed === undefined) names.push(name)
    // A host that never resumes would leave one more with each stream.
    if (names.length > MAX_STANDALONE) log.forget(names.shift() ?? '')
    const before = entry.stream
    entry.stream = { events, name, continues }
    before?.events.end()
    if (resumed !== undefined) replay(resumed, session, events)
    else if (isPrimed(session)) events.prime(log.append(name, []))
    // Sends what has waited, which is newer.
    const detach = session.attach({ send: (parts) => events.message(parts, log.append(name, parts)), flow: events })
    events.onClose(() => {
      detach()
      if (entry.stream?.events === events) entry.stream = undefined
    })
  }

  /** Replays the events after `lastEventId` on its stream, and continues the stream (B202). */
  #resume(entry: HttpSession, routed: RoutedRequest, lastEventId: string): void {
    const { request } = routed
    const { log } = entry.session
    const missed = log?.after(lastEventId)
    if (log === undefined || missed === undefined) return this.#refuseResumption(routed)
    const post = entry.posts?.values().find((candidate) => candidate.name === missed.stream)
    if (post === undefined && !missed.isEnded) return this.#openStandalone(entry, request, missed)
    const events = request.openEvents({})
    replay(missed, entry.session, events)
    if (post === undefined) events.end()
    else post.resume(events)
  }
}

/** Sends what the host missed, after the id that it has: SDKs forget that one if the resumed stream breaks before its first event (B204). */
const replay = ({ events, lastEventId }: ResumedStream, session: Session, stream: EventStream): void => {
  if (events.length === 0 && isPrimed(session)) stream.prime(lastEventId)
  for (const event of events) stream.answer(event.parts, event.id)
}

const isPrimed = ({ revision }: Session): boolean => revision >= '2025-11-25'

const isModernVersion = (request: HttpRequest): boolean => {
  const version = request.header('mcp-protocol-version')
  return version !== undefined && !isLegacyRevision(version)
}
