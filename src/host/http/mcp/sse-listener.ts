/**
 * HTTP+SSE for hosts that know nothing newer: one stream is the session, messages come by POST and answers go on the stream
 * ([2024-11-05 basic/transports]; BRIDGING 5.1). The transport belongs to 2024-11-05; hosts negotiate later revisions over it.
 */
import { messagesBeside } from '../../../auth/inbound/server-endpoints.ts'
import { readInitialize } from '../../../era/host/legacy-host.ts'
import type { Introduction } from '../../../era/host/legacy-host.ts'
import { isSameEndpoint, Refusal, SHARED_PRINCIPAL } from '../../../rpc/call.ts'
import type { EventStream } from '../../../transport/http1/server/request/event-stream.ts'
import { EnvelopeError, readHostMessage } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { errorMessage, errorObject, resultMessage } from '../../../wire/message/message.ts'
import { isLegacyRevision, isWithin, latestLegacyWithin, OLDEST_LEGACY } from '../../../wire/protocol/revisions.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import { reached } from '../../limits/admission.ts'
import { readBatch, serveBatch } from './batch.ts'
import { withinMessage, withinRequest } from '../../boundary.ts'
import { sweepStream } from '../../response/exchange.ts'
import type { Exchange } from '../../response/exchange.ts'
import { note } from '../../denials.ts'
import { Elsewhere } from './elsewhere.ts'
import { carriesJson, refuseBody, refuseBusy, turnAway } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { announceAll, announceChanges, hearLegacy, restoreSettings, serveLegacy } from '../../legacy.ts'
import { errorReply } from '../../response/respond.ts'
import { Session } from '../../session/session.ts'
import { sessionOver } from '../../session/sessions.ts'
import { initializeAnswer, whenReady } from '../../welcome.ts'

/** The name that hosts of the Python and TypeScript SDKs and proxies in front of them look for. */
const SESSION = 'sessionId'

interface Connected {
  readonly events: EventStream
  readonly entrance: RoutedRequest
  session: Session | undefined
  /** The session goes on from a stream before, or is taken for one that does: `initialize` may still come. */
  isTakenUp: boolean
  /** Milliseconds of the monotonic clock. */
  startedMs: number
  /** When the longest of its credentials ends, wall clock in milliseconds. */
  untilMs: number
}

export class SseListener {
  readonly #context: ListenerContext
  readonly #connected = new Map<string, Connected>()
  /** What lives at other replicas; `undefined`: there are none. */
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

  /** `GET /sse`: the first event says where to post; `prefix`: what a proxy has before our paths. */
  open(entrance: RoutedRequest, prefix: string): void {
    const { request } = entrance
    const last = request.header('last-event-id')
    if (last === undefined || this.#context.store === undefined) return this.#open(entrance, prefix)
    // Without the store the session goes on with what is known here.
    const open = (): void => withinRequest(request, this.#context, () => this.#open(entrance, prefix))
    this.#context.sessionIds.learn(last).then(open, open)
  }

  #open(entrance: RoutedRequest, prefix: string): void {
    const { request } = entrance
    const refusal = this.#refuse(entrance.principal)
    if (refusal !== undefined) return refuseBusy(this.#context, entrance, refusal)
    const id = this.#context.sessionIds.mintStream()
    const events = request.openEvents({})
    const connected: Connected = {
      events,
      entrance,
      session: undefined,
      isTakenUp: false,
      startedMs: performance.now(),
      untilMs: entrance.untilMs,
    }
    this.#connected.set(id, connected)
    // Beside its own path, so that a toolset keeps to its name.
    events.endpoint(`${prefix}${messagesBeside(entrance.request.path)}?${SESSION}=${id}`)
    events.onClose(() => {
      this.#connected.delete(id)
      connected.session?.end()
    })
    this.#goOn(connected)
  }

  /**
   * EventSource opens a broken stream again by itself, and its host goes on without `initialize` (B275). The id of the event that
   * answered `initialize` comes back as `Last-Event-ID` then: the session goes on with what the host said in it.
   */
  #goOn(connected: Connected): void {
    const { request, principal, scope } = connected.entrance
    const id = request.header('last-event-id')
    if (id === undefined) return
    const reopened = this.#context.sessionIds.reopen(id, principal, scope)
    if (reopened === undefined || !isWithin(reopened.introduction.revision, this.#context.options.revisions)) return
    const session = this.#begin(connected, reopened.introduction)
    connected.startedMs -= Date.now() - reopened.issuedMs
    this.#keepSettings(session, id)
    session.initialized()
    announceAll(session)
    restoreSettings(session, reopened.settings, this.#context)
  }

  /** The same of a host that does not say which session it had: what its header says, and nothing that it could be asked. */
  #goOnUnknown(connected: Connected, version: string | undefined): Session | undefined {
    const { revisions } = this.#context.options
    const said = version !== undefined && isLegacyRevision(version) ? version : OLDEST_LEGACY
    const revision = isWithin(said, revisions) ? said : latestLegacyWithin(revisions)
    if (revision === undefined) return undefined
    const session = this.#begin(connected, { revision, capabilities: {}, clientInfo: undefined, hops: 0 })
    session.initialized()
    return session
  }

  /** `id`: what its host names when it opens its stream again. */
  #keepSettings(session: Session, id: string): void {
    session.onSet = (settings) => this.#context.sessionIds.keep(id, settings)
  }

  #begin(connected: Connected, introduction: Introduction): Session {
    const { events, entrance } = connected
    const session = new Session(introduction, entrance.principal, entrance.scope, this.#context.admission, undefined, 'sse')
    session.see(entrance.scope, entrance.facts)
    connected.session = session
    connected.isTakenUp = true
    session.attach({ send: (parts) => events.message(parts), flow: events })
    announceChanges(session, this.#context)
    return session
  }

  /** `POST /messages?sessionId=…`: 202, and the answer comes on the stream. */
  post(entrance: RoutedRequest): void {
    const { request, principal, scope, facts, untilMs } = entrance
    const id = new URLSearchParams(request.query).get(SESSION) ?? ''
    const connected = this.#connected.get(id)
    if (connected === undefined && this.#elsewhere !== undefined && !this.#elsewhere.isPassedOn(request))
      return this.#passOn(entrance, id, this.#elsewhere)
    if (connected?.entrance.principal !== principal || !isSameEndpoint(connected.entrance.scope, scope))
      return turnAway(this.#context, entrance, 404, {})
    connected.untilMs = Math.max(connected.untilMs, untilMs)
    connected.session?.see(scope, facts)
    if (!carriesJson(request)) return turnAway(this.#context, entrance, 415, {})
    if (this.#isDraining) return turnAway(this.#context, entrance, 503, { 'Retry-After': '1', Connection: 'close' })
    const { limits } = this.#context.options
    request.readBody(limits.maxBodyBytes, (body) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, entrance, body)
      withinRequest(request, this.#context, () => this.#received(body, entrance, connected))
    })
  }

  /** The stream is at another replica, or was lost with it. */
  #passOn(entrance: RoutedRequest, id: string, elsewhere: Elsewhere): void {
    const { request } = entrance
    if (!carriesJson(request)) return turnAway(this.#context, entrance, 415, {})
    request.readBody(this.#context.options.limits.maxBodyBytes, (body) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, entrance, body)
      elsewhere.routeStream(entrance, body, id, () => turnAway(this.#context, entrance, 404, {}))
    })
  }

  /** Every session here is in use, for its stream is open: no other is ended for a new one. */
  #refuse(principal: string): Failure | undefined {
    const { maxSessions, maxSessionsPerPrincipal } = this.#context.options.limits
    if (this.#connected.size >= maxSessions) return reached('listen.limits.sessions', maxSessions)
    if (principal === SHARED_PRINCIPAL) return this.#context.admission.refuseSession()
    const own = [...this.#connected.values()].filter(({ entrance }) => entrance.principal === principal)
    if (own.length < maxSessionsPerPrincipal) return this.#context.admission.refuseSession()
    return reached('listen.limits.sessions_per_principal', maxSessionsPerPrincipal)
  }

  #received(body: Buffer, entrance: RoutedRequest, connected: Connected): void {
    const { request, principal } = entrance
    let message: Envelope
    try {
      if (this.#batch(body, connected)) return request.reply(202, {})
      message = readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      if (error.limit !== undefined) this.#context.limits.hit(error.limit)
      note(this.#context, entrance, 400, error.message, undefined)
      return request.reply(
        400,
        { 'Content-Type': 'application/json' },
        errorMessage(error.id, errorObject(error.code, error.message)),
      )
    }
    const refusal = message.kind === 'request' ? this.#context.admission.refuse(principal) : undefined
    if (refusal !== undefined) return refuseBusy(this.#context, entrance, refusal, message)
    request.reply(202, {})
    withinMessage(
      this.#context,
      message,
      () => this.#message(message, connected, request.header('mcp-protocol-version')),
      (parts) => connected.events.message(parts),
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

  /** Ends what these principals have opened. */
  revoke(isRevoked: (principal: string) => boolean): void {
    for (const { events, entrance, session } of this.#connected.values()) {
      if (!isRevoked(entrance.principal)) continue
      session?.end(sessionOver('its credential is not valid any more'))
      events.breakOff()
    }
  }

  /** Takes no new work from now on; what is under way goes on. */
  drain(): void {
    this.#isDraining = true
  }

  close(): void {
    for (const { events, session } of this.#connected.values()) {
      session?.end(new Failure('shutting_down', 'the gateway stops'))
      events.breakOff()
    }
  }

  /** False: this is no array. */
  #batch(body: Buffer, { events, session }: Connected): boolean {
    const elements = readBatch(body, session, this.#context.options.limits)
    if (elements === undefined || session === undefined) return false
    const send = (parts: Parts): void => events.message(parts)
    serveBatch(
      elements,
      session,
      { isStream: false, message: send, answer: send, end: () => undefined, transport: 'tcp' },
      this.#context,
      true,
    )
    return true
  }

  /** `version`: the header that the message came with. */
  #message(message: Envelope, connected: Connected, version: string | undefined): void {
    const { events } = connected
    let { session } = connected
    const send = (parts: Parts): void => events.message(parts)
    if (message.kind !== 'request') return session === undefined ? undefined : hearLegacy(message, session, this.#context)
    const exchange: Exchange = { message: send, answer: send, end: () => undefined, flow: events, transport: 'tcp' }
    const refuse = (text: string): void => {
      note(this.#context, connected.entrance, 200, text, message)
      send(errorMessage(message.id, errorObject(-32600, text)))
    }
    const isFirst = session === undefined || connected.isTakenUp
    if (isFirst && message.method === 'initialize') this.#initialize(message, connected, send)
    else if ((session ??= this.#goOnUnknown(connected, version)) === undefined) refuse('send initialize first')
    else if (session.isRunning(message.id ?? '')) refuse(`a request with id ${message.id} is under way`)
    else serveLegacy(message, session, exchange, this.#context)
  }

  #initialize(message: Envelope, connected: Connected, send: (parts: Parts) => void): void {
    const id = message.id ?? 'null'
    const { principal, scope, facts } = connected.entrance
    try {
      const introduction = readInitialize(message, this.#context.options.revisions)
      const session = new Session(introduction, principal, scope, this.#context.admission, undefined, 'sse')
      session.see(scope, facts)
      connected.session?.end()
      connected.isTakenUp = false
      connected.session = session
      session.attach({ send, flow: connected.events })
      const sessionId = this.#context.sessionIds.mint(introduction, principal, scope)
      this.#keepSettings(session, sessionId)
      whenReady(initializeAnswer(session.caller, this.#context), (result) => {
        connected.events.message(resultMessage(id, result), sessionId)
        announceChanges(session, this.#context)
      })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      note(this.#context, connected.entrance, 200, error.message, message)
      send(
        errorReply(
          error,
          { id, era: 'legacy', method: message.method, ref: this.#context.nextRef(), encode: (result) => result },
          this.#context,
        ).message,
      )
    }
  }
}
