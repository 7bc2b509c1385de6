/** Messages of legacy hosts within a session, for all listeners (BRIDGING 2.1, 2.4, 5.1). */
import { encodeBridged, encodeLegacy } from '../era/host/legacy-host.ts'
import { complete, isBridge, NO_HEADERS, Refusal } from '../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../rpc/call.ts'
import type { Begun } from '../observe/capture/recording.ts'
import { Cancellation } from '../rpc/cancellation.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, PONG, resultMessage } from '../wire/message/message.ts'
import { META } from '../wire/protocol/meta.ts'
import { isLogLevel, isOfModernOnly, methodRow } from '../wire/protocol/methods.ts'
import { Payload } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import { reportDeniedMessage } from './denials.ts'
import { HostRequest } from './host-request.ts'
import { reached } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { ListenerContext } from './listener-context.ts'
import { SETTINGS } from './session/session-settings.ts'
import type { SessionSettings } from './session/session-settings.ts'
import type { Running, Session } from './session/session.ts'

/** Serves one request of a session; the answer is sent to `listenerExchange`. */
export const serveLegacy = (message: Envelope, session: Session, listenerExchange: Exchange, context: ListenerContext): void => {
  if (message.method !== 'ping') return new LegacyHostRequest(message, session, listenerExchange, context).serve()
  const id = message.id ?? 'null'
  session.pinged(id)
  listenerExchange.answer(resultMessage(id, pong(message, context)), 200)
}

class LegacyHostRequest extends HostRequest implements Running {
  readonly era = 'legacy'
  readonly listenerExchange: Exchange
  readonly abort = new Cancellation()
  readonly bytes: number
  isOver = false
  questions: Running['questions'] = undefined
  readonly #session: Session

  constructor(message: Envelope, session: Session, listenerExchange: Exchange, context: ListenerContext) {
    super(message, session.scope, listenerExchange, context)
    this.listenerExchange = listenerExchange
    this.bytes = message.bytes.length
    this.#session = session
    this.recording = context.observer?.begin(begunOf(message, session, this.ref))
  }

  get signal(): CancelSignal {
    return this.abort.signal
  }

  serve(): void {
    const { message, context } = this
    const session = this.#session
    const refusal = context.admission.refuse(session.principal)
    session.begin(this)
    try {
      if (refusal !== undefined) throw refusal
      this.#checkRequest()
      if (message.method === 'logging/setLevel' && !this.isAtBridge) return this.answer(setLevel(message, session, context))
      context.core.handle(this.#callOf(session)).then(
        (outcome) => this.#returned(outcome),
        (error: unknown) => this.fail(error),
      )
    } catch (error) {
      reportDeniedMessage(context, error, { ...session.caller, session }, message.method)
      this.fail(error)
    }
  }

  #checkRequest(): void {
    const { method } = this.message
    const session = this.#session
    if (method === 'initialize') throw new Refusal(-32600, 'initialize was already answered on this connection')
    // Methods of 2026-07-28 do not exist, not even at a bridge. A bridge relays methods of no revision (B277).
    if (this.isAtBridge ? isOfModernOnly(method) : methodRow(method, 'legacy') === undefined)
      throw new Refusal(-32601, `Method not found: ${method}`)
    const { maxInFlightPerSession } = this.context.options.limits
    if (session.inFlight > maxInFlightPerSession) throw reached('listen.limits.in_flight_per_session', maxInFlightPerSession)
  }

  #callOf({ caller, logLevel }: Session): Call {
    const { recording, target } = this
    const ask = (question: Question): Promise<Answer> => {
      const answer = (): Promise<Answer> => this.#session.askDuring(this, question)
      return recording === undefined ? answer() : recording.timed(question, answer)
    }
    return this.makeCall({ target, caller, logLevel, unknownHeaders: NO_HEADERS, ask })
  }

  /** Relays progress, and log messages of the session's level. A task sends them after the answer, too. */
  protected notify(method: string, params: Payload): void {
    const session = this.#session
    if (method === 'notifications/progress') {
      if (this.isOver) this.exchange.late(params, session.outletOf(this))
      else this.exchange.progress(params)
    } else if (method !== 'notifications/message' || session.wantsLogLevel(params.text('level'))) {
      const parts = notificationMessage(method, params.parts())
      if (this.isOver) session.outletOf(this)?.send(parts)
      else this.exchange.message(parts)
    }
  }

  #returned(outcome: Outcome): void {
    const { method, params } = this.message
    const session = this.#session
    if (method === 'tools/list') this.context.sighted?.(session, session.caller)
    else if (SETTINGS.has(method)) session.accepted(method, params)
    this.answer(outcome)
  }

  protected release(): void {
    this.#session.finish(this)
  }

  protected encode(outcome: Outcome): Outcome['result'] {
    return this.isAtBridge ? encodeBridged(outcome) : encodeLegacy(outcome)
  }
}

/** Handles a notification or a response of a session. */
export const receiveLegacy = (message: Envelope, session: Session, context: ListenerContext): void => {
  session.activeMs = performance.now()
  if (message.kind === 'response') session.settle(message)
  else if (message.method === 'notifications/initialized') session.initialized()
  else if (message.method === 'notifications/cancelled') session.cancel(message.params)
  else if (message.method === 'notifications/progress') session.progress(message.params)
  else if (isBridge(session.scope)) context.core.notified(session.caller, message.method, message.params)
  else if (message.method === 'notifications/roots/list_changed') context.core.rootsChanged(session.caller)
}

/** Notifies a session of changed lists until the session ends. */
export const announceChanges = (session: Session, context: ListenerContext): void => {
  context.sessionOpened?.(session)
  context.sighted?.(session, undefined)
  session.watchLists(context.core)
}

/** Restores the settings of a continued session. Announces its subscribed resources, which may have changed meanwhile. */
export const restoreSettings = (session: Session, settings: SessionSettings, { core }: ListenerContext): void => {
  session.settings = settings
  for (const uri of settings.watched ?? [])
    core.subscribe(session, session.caller, uri).then(
      (isWatched) => {
        if (session.isEnded) core.unsubscribe(session)
        else if (isWatched) session.mayHaveChanged(uri)
      },
      // The resource is announced when the server has reconnected.
      () => undefined,
    )
}

/** Returns the result of a ping. For another gateway it lists the gateways behind this one (T-35). */
const pong = ({ params }: Envelope, { core }: ListenerContext): Parts =>
  params?.object('_meta')?.has(META.hops) === true ? Payload.of({ _meta: { [META.gateways]: core.gateways } }).parts() : PONG

const setLevel = (message: Envelope, session: Session, context: ListenerContext): Outcome => {
  const level = message.params?.text('level')
  if (!isLogLevel(level)) throw new Refusal(-32602, `unknown log level ${JSON.stringify(level)}`)
  session.accepted(message.method, message.params)
  context.core.levelChanged(session.caller, level)
  return complete(Payload.of({}))
}

const begunOf = ({ method, bytes }: Envelope, session: Session, ref: number): Begun => ({
  ref,
  method,
  principal: session.principal,
  scope: session.scope,
  revision: session.revision,
  session,
  clientInfo: session.clientInfo,
  transport: session.transport,
  message: bytes,
})
