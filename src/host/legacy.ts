/** Messages of legacy hosts within a session, for all listeners (BRIDGING 2.1, 2.4, 5.1). */
import { encodeBridged, encodeLegacy } from '../era/host/legacy-host.ts'
import { complete, isBridge, isEndOf, NO_HEADERS, Refusal } from '../rpc/call.ts'
import type { Answer, Call, Outcome } from '../rpc/call.ts'
import type { Begun, Recording } from '../observe/capture/recording.ts'
import { Cancellation } from '../rpc/cancellation.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, PONG, resultMessage } from '../wire/message/message.ts'
import { progressTokenOf } from '../wire/message/envelope.ts'
import { META } from '../wire/protocol/meta.ts'
import { isLogLevel, isOfModernOnly, methodRow } from '../wire/protocol/methods.ts'
import { Payload } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import { reportDeniedMessage } from './denials.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import { reached } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { ListenerContext } from './listener-context.ts'
import { ProgressExchange } from './response/progress.ts'
import { errorReply } from './response/respond.ts'
import { SETTINGS } from './session/session-settings.ts'
import type { SessionSettings } from './session/session-settings.ts'
import type { Running, Session } from './session/session.ts'

/** Serves one request of a session; the answer is sent to `listenerExchange`. */
export const serveLegacy = (message: Envelope, session: Session, listenerExchange: Exchange, context: ListenerContext): void => {
  const id = message.id ?? 'null'
  const ref = context.nextRef()
  const progressToken = progressTokenOf(message.params)
  const exchange = new ProgressExchange(listenerExchange, progressToken, message.id)
  const running: Running = {
    id,
    exchange,
    listenerExchange,
    abort: new Cancellation(),
    fail: (error) => fail(error),
    bytes: message.bytes.length,
    isOver: false,
    questions: undefined,
  }
  const { signal } = running.abort
  const isAtBridge = isBridge(session.scope)
  const recording = message.method === 'ping' ? undefined : context.observer?.begin(begunOf(message, session, ref))
  const answer = (outcome: Outcome): void => {
    session.finish(running)
    try {
      recording?.returned({ method: message.method, signal }, outcome)
      const result = isAtBridge ? encodeBridged(outcome) : encodeLegacy(outcome)
      if (result instanceof StreamedResult) return exchange.stream(result, id, signal, fail)
      if (signal.aborted) return recording?.answered(undefined)
      const parts = resultMessage(id, result.parts())
      recording?.answered(parts)
      if (recording !== undefined) exchange.onTaken(() => recording.written())
      else if (isEndOf(message.method, message.params, outcome)) exchange.freeRequest()
      exchange.answer(parts, 200)
    } catch (error) {
      fail(error)
    }
  }
  const keepSetting = (outcome: Outcome): void => {
    session.accepted(message.method, message.params)
    answer(outcome)
  }
  const fail = (error: unknown): void => {
    session.finish(running)
    recording?.rejected(error, signal.aborted)
    if (signal.aborted) return recording?.answered(undefined)
    const failed = { id, era: 'legacy' as const, method: message.method, ref, isBridge: isAtBridge }
    context.log.debug({ ref, trace_id: exchange.traceId, method: message.method, error: String(error) }, 'request failed')
    const { status, message: parts, scopes } = errorReply(error, failed, context)
    recording?.answered(parts)
    exchange.answer(parts, status, scopes)
  }
  if (message.method === 'ping') {
    session.pinged(id)
    return exchange.answer(resultMessage(id, pong(message, context)), 200)
  }
  const refusal = context.admission.refuse(session.principal)
  session.begin(running)
  try {
    if (refusal !== undefined) throw refusal
    if (message.method === 'initialize') throw new Refusal(-32600, 'initialize was already answered on this connection')
    // Methods of 2026-07-28 do not exist, not even at a bridge. A bridge relays methods of no revision (B277).
    if (isAtBridge ? isOfModernOnly(message.method) : methodRow(message.method, 'legacy') === undefined)
      throw new Refusal(-32601, `Method not found: ${message.method}`)
    const { maxInFlightPerSession } = context.options.limits
    if (session.inFlight > maxInFlightPerSession) throw reached('listen.limits.in_flight_per_session', maxInFlightPerSession)
    if (message.method === 'logging/setLevel' && !isAtBridge) return answer(setLevel(message, session, context))
    const call = makeCall(message, session, exchange, progressToken, running, ref, recording)
    const then =
      message.method === 'tools/list'
        ? (outcome: Outcome): void => {
            context.sighted?.(session, session.caller)
            answer(outcome)
          }
        : SETTINGS.has(message.method)
          ? keepSetting
          : answer
    context.core.handle(call).then(then, fail)
  } catch (error) {
    reportDeniedMessage(context, error, { ...session.caller, session }, message.method)
    fail(error)
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

const makeCall = (
  message: Envelope,
  session: Session,
  exchange: ProgressExchange,
  progressToken: Call['progressToken'],
  running: Running,
  ref: number,
  record: Recording | undefined,
): Call => {
  const params = message.params ?? Payload.of({})
  const row = methodRow(message.method, 'legacy')
  return {
    ref,
    method: message.method,
    target: row?.field === undefined || row.field === 'ref' ? undefined : params.text(row.field),
    params,
    caller: session.caller,
    resume: undefined,
    signal: running.abort.signal,
    progressToken,
    logLevel: session.logLevel,
    paramHeaders: [],
    unknownHeaders: NO_HEADERS,
    takesStreams: exchange.takesStreams,
    responseChannel: exchange,
    notify: (method, notified) => {
      if (method === 'notifications/progress') {
        if (running.isOver) exchange.late(notified, session.outletOf(running))
        else exchange.progress(notified)
      } else if (method !== 'notifications/message' || session.wantsLogLevel(notified.text('level'))) {
        const parts = notificationMessage(method, notified.parts())
        // A task continues after the answer.
        if (running.isOver) session.outletOf(running)?.send(parts)
        else exchange.message(parts)
      }
    },
    ask: (question) => {
      const answer = (): Promise<Answer> => session.askDuring(running, question)
      return record === undefined ? answer() : record.timed(question, answer)
    },
    record,
  }
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
