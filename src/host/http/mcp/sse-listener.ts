/**
 * HTTP+SSE for hosts without Streamable HTTP: one stream is the session; the host sends messages by POST and receives answers on the
 * stream ([2024-11-05 basic/transports]; BRIDGING 5.1). The transport is of 2024-11-05, but hosts negotiate later revisions over it.
 */
import { messagesBeside } from '../../../auth/inbound/server-endpoints.ts'
import { readInitialize } from '../../../era/host/legacy-host.ts'
import type { Introduction } from '../../../era/host/legacy-host.ts'
import { isSameEndpoint, Refusal, SHARED_PRINCIPAL } from '../../../rpc/call.ts'
import type { EventStream } from '../../../transport/http1/server/request/event-stream.ts'
import { EnvelopeError, readHostMessage } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { refusalMessage, resultMessage } from '../../../wire/message/message.ts'
import { isLegacyRevision, isWithin, latestLegacyWithin, OLDEST_LEGACY } from '../../../wire/protocol/revisions.ts'
import { reached } from '../../limits/admission.ts'
import { readBatch, serveBatch } from './batch.ts'
import { withinMessage, withinRequest } from '../../boundary.ts'
import { sweepStream } from '../../response/exchange.ts'
import type { Exchange } from '../../response/exchange.ts'
import { reportDenied } from '../../denials.ts'
import { Elsewhere } from './elsewhere.ts'
import { carriesJson, refuseBody, refuseBusy, refuseMessage, refuseWithoutBody } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { announceChanges, receiveLegacy, restoreSettings, serveLegacy } from '../../legacy.ts'
import { errorReply } from '../../response/respond.ts'
import { Session } from '../../session/session.ts'
import { sessionOver } from '../../session/sessions.ts'
import { initializeAnswer, whenReady } from '../../handshake.ts'

/** Query parameter that the Python and TypeScript SDKs and proxies in front of them expect. */
const SESSION = 'sessionId'

interface Connected {
  readonly events: EventStream
  readonly routed: RoutedRequest
  session: Session | undefined
  /** The session was continued from an earlier stream without `initialize`, which may still follow. */
  isResumed: boolean
  /** Monotonic. */
  startedMs: number
  /** Latest end of its credentials, wall clock in milliseconds. */
  untilMs: number
}

export class SseListener {
  readonly #context: ListenerContext
  readonly #connected = new Map<string, Connected>()
  /** Routing to other replicas; `undefined`: none are configured. */
  readonly #elsewhere: Elsewhere | undefined
  #isDraining = false

  constructor(context: ListenerContext) {
    this.#context = context
    this.#elsewhere = context.replicas && new Elsewhere(context, context.replicas)
  }

  get sessionCount(): number {
    return this.#connected.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    let total = 0
    for (const { session } of this.#connected.values()) total += session?.inFlight ?? 0
    return total
  }
  /** Whether a call waits for an answer of its host. */
  get isAsking(): boolean {
    return [...this.#connected.values()].some(({ session }) => session?.isAsking === true)
  }

  /** `GET /sse`: opens a stream, whose first event names the URL for POST. `prefix`: path prefix of a proxy. */
  open(routed: RoutedRequest, prefix: string): void {
    const { request } = routed
    const last = request.header('last-event-id')
    if (last === undefined || this.#context.store === undefined) return this.#open(routed, prefix)
    // If the store is unavailable, the session continues with what this process knows.
    const open = (): void => withinRequest(request, this.#context, () => this.#open(routed, prefix))
    this.#context.sessionIds.learn(last).then(open, open)
  }

  #open(routed: RoutedRequest, prefix: string): void {
    const { request } = routed
    const refusal = this.#refuse(routed.principal)
    if (refusal !== undefined) return refuseBusy(this.#context, routed, refusal)
    const id = this.#context.sessionIds.mintStream()
    const events = request.openEvents({})
    const connected: Connected = {
      events,
      routed,
      session: undefined,
      isResumed: false,
      startedMs: performance.now(),
      untilMs: routed.untilMs,
    }
    this.#connected.set(id, connected)
    // Derived from the request's path, so that the URL names the same toolset or server.
    events.endpoint(`${prefix}${messagesBeside(routed.request.path)}?${SESSION}=${id}`)
    events.onClose(() => {
      this.#connected.delete(id)
      connected.session?.end()
    })
    this.#resume(connected)
  }

  /**
   * Continues the session of a broken stream: EventSource reconnects by itself, and its host does not send `initialize` again (B275). Its
   * `Last-Event-ID` is the id of the event that answered `initialize`, which seals the host's `initialize`.
   */
  #resume(connected: Connected): void {
    const { request, principal, scope } = connected.routed
    const id = request.header('last-event-id')
    if (id === undefined) return
    const reopened = this.#context.sessionIds.reopen(id, principal, scope)
    if (reopened === undefined || !isWithin(reopened.introduction.revision, this.#context.options.revisions)) return
    const session = this.#begin(connected, reopened.introduction)
    connected.startedMs -= Date.now() - reopened.issuedMs
    this.#keepSettings(session, id)
    session.initialized()
    session.mayAllHaveChanged()
    restoreSettings(session, reopened.settings, this.#context)
  }

  /** Continues an unknown session, with the revision of the header and without capabilities. */
  #resumeUnknown(connected: Connected, version: string | undefined): Session | undefined {
    const { revisions } = this.#context.options
    const named = version !== undefined && isLegacyRevision(version) ? version : OLDEST_LEGACY
    const revision = isWithin(named, revisions) ? named : latestLegacyWithin(revisions)
    if (revision === undefined) return undefined
    const session = this.#begin(connected, { revision, capabilities: {}, clientInfo: undefined, hops: 0 })
    session.initialized()
    return session
  }

  /** Stores the session's settings. `id`: the host's `Last-Event-ID` when it reconnects. */
  #keepSettings(session: Session, id: string): void {
    session.onSet = (settings) => this.#context.sessionIds.keep(id, settings)
  }

  #begin(connected: Connected, introduction: Introduction): Session {
    const session = this.#addSession(connected, introduction)
    connected.isResumed = true
    announceChanges(session, this.#context)
    return session
  }

  #addSession(connected: Connected, introduction: Introduction): Session {
    const { events, routed } = connected
    const { principal, scope, facts } = routed
    const session = new Session({ introduction, principal, scope, admission: this.#context.admission, transport: 'sse' })
    session.setAccess(scope, facts)
    connected.session?.end()
    connected.session = session
    session.attach({ send: (parts) => events.message(parts), flow: events })
    return session
  }

  /** `POST /messages?sessionId=…`: answers 202, and sends the message's answer on the stream. */
  post(routed: RoutedRequest): void {
    const { request, principal, scope, facts, untilMs } = routed
    const id = new URLSearchParams(request.query).get(SESSION) ?? ''
    const connected = this.#connected.get(id)
    if (connected === undefined && this.#elsewhere !== undefined && this.#context.replicas?.isForwarded(request) !== true)
      return this.#forward(routed, id, this.#elsewhere)
    if (connected?.routed.principal !== principal || !isSameEndpoint(connected.routed.scope, scope))
      return refuseWithoutBody(this.#context, routed, 404, {})
    connected.untilMs = Math.max(connected.untilMs, untilMs)
    connected.session?.setAccess(scope, facts)
    if (!carriesJson(request)) return refuseWithoutBody(this.#context, routed, 415, {})
    if (this.#isDraining) return refuseWithoutBody(this.#context, routed, 503, { 'Retry-After': '1', Connection: 'close' })
    const { limits } = this.#context.options
    request.readBody(limits.maxBodyBytes, (body, start) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, routed, body, start, connected.session)
      // The stream has ended meanwhile: nothing would end a session that begins now.
      if (this.#connected.get(id) !== connected) return refuseWithoutBody(this.#context, routed, 404, {})
      withinRequest(request, this.#context, () => this.#received(body, routed, connected))
    })
  }

  /** Handles a message to a stream that is at another replica, or was lost with it. */
  #forward(routed: RoutedRequest, id: string, elsewhere: Elsewhere): void {
    const { request } = routed
    if (!carriesJson(request)) return refuseWithoutBody(this.#context, routed, 415, {})
    request.readBody(this.#context.options.limits.maxBodyBytes, (body) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, routed, body)
      elsewhere.routeStream(routed, body, id, () => refuseWithoutBody(this.#context, routed, 404, {}))
    })
  }

  /** Returns why a new stream is refused. No session is ended for a new one, since each has an open stream. */
  #refuse(principal: string): Failure | undefined {
    const { maxSessions, maxSessionsPerPrincipal } = this.#context.options.limits
    if (this.#connected.size >= maxSessions) return reached('listen.limits.sessions', maxSessions)
    if (principal === SHARED_PRINCIPAL) return this.#context.admission.refuseSession()
    const own = [...this.#connected.values()].filter(({ routed }) => routed.principal === principal)
    if (own.length < maxSessionsPerPrincipal) return this.#context.admission.refuseSession()
    return reached('listen.limits.sessions_per_principal', maxSessionsPerPrincipal)
  }

  #received(body: Buffer, routed: RoutedRequest, connected: Connected): void {
    const { request, principal } = routed
    let message: Envelope
    try {
      if (this.#batch(body, connected)) return request.reply(202, {})
      message = readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (error instanceof EnvelopeError) connected.session?.refused(error)
      return refuseMessage(this.#context, routed, error)
    }
    const isCall = message.kind === 'request' && message.method !== 'ping'
    const refusal = isCall ? this.#context.admission.refuse(principal) : undefined
    if (refusal !== undefined) return refuseBusy(this.#context, routed, refusal, message)
    request.reply(202, {})
    withinMessage(
      this.#context,
      message,
      () => this.#message(message, connected, request.header('mcp-protocol-version')),
      (parts) => connected.events.answer(parts),
    )
  }

  sweep(): void {
    const wallMs = Date.now()
    const nowMs = performance.now()
    const { sessionMaxMs } = this.#context.options.limits
    for (const { events, session, startedMs, untilMs } of this.#connected.values()) {
      const isTooOld = nowMs - startedMs >= sessionMaxMs
      if (isTooOld) {
        this.#context.limits.passed('listen.limits.session_max')
        session?.end(sessionOver('listen.limits.session_max'))
      }
      if (isTooOld || wallMs >= untilMs) events.breakOff()
      sweepStream(events, this.#context.options.limits, this.#context.limits)
    }
  }

  /** Ends the streams of revoked principals. */
  revoke(isRevoked: (principal: string) => boolean): void {
    for (const { events, routed, session } of this.#connected.values()) {
      if (!isRevoked(routed.principal)) continue
      session?.end(sessionOver('its credential is no longer valid'))
      events.breakOff()
    }
  }

  /** Refuses new requests; requests in flight continue. */
  drain(): void {
    this.#isDraining = true
  }

  close(): void {
    for (const { events, session } of this.#connected.values()) {
      session?.end(new Failure('shutting_down', 'the gateway stops'))
      events.breakOff()
    }
  }

  /** Serves a batch. False: the body is not an array. */
  #batch(body: Buffer, { events, session }: Connected): boolean {
    const elements = readBatch(body, session, this.#context.options.limits)
    if (elements === undefined || session === undefined) return false
    serveBatch(elements, session, { ...exchangeOf(events), isStream: false }, this.#context, true)
    return true
  }

  /** `version`: `MCP-Protocol-Version` of the request. */
  #message(message: Envelope, connected: Connected, version: string | undefined): void {
    const { events } = connected
    let { session } = connected
    if (message.kind !== 'request') return session === undefined ? undefined : receiveLegacy(message, session, this.#context)
    const refuse = (text: string): void => {
      reportDenied(this.#context, connected.routed, 200, text, message)
      events.answer(refusalMessage(message.id, -32600, text))
    }
    const isFirst = session === undefined || connected.isResumed
    if (isFirst && message.method === 'initialize') this.#initialize(message, connected)
    else if ((session ??= this.#resumeUnknown(connected, version)) === undefined) refuse('send initialize first')
    else if (session.isRunning(message.id ?? '')) refuse(`a request with id ${message.id} is in progress`)
    else serveLegacy(message, session, exchangeOf(events), this.#context)
  }

  #initialize(message: Envelope, connected: Connected): void {
    const id = message.id ?? 'null'
    const { principal, scope } = connected.routed
    try {
      const introduction = readInitialize(message, this.#context.options.revisions)
      const session = this.#addSession(connected, introduction)
      connected.isResumed = false
      const sessionId = this.#context.sessionIds.mint(introduction, principal, scope)
      this.#keepSettings(session, sessionId)
      whenReady(initializeAnswer(session.caller, this.#context), (result) => {
        connected.events.answer(resultMessage(id, result), sessionId)
        announceChanges(session, this.#context)
      })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      reportDenied(this.#context, connected.routed, 200, error.message, message)
      const failed = { id, era: 'legacy', method: message.method, ref: this.#context.nextRef() } as const
      connected.events.answer(errorReply(error, failed, this.#context).message)
    }
  }
}

const exchangeOf = (events: EventStream): Exchange => ({
  message: (parts) => events.message(parts),
  answer: (parts) => events.answer(parts),
  end: () => undefined,
  flow: events,
  transport: 'tcp',
})
