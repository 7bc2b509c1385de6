/** Requests of modern hosts, for all listeners: checks a request, makes a `Call` of it, and answers in the form of its era. */
import { checkMirrors, checkVersionHeader, mismatch } from '../era/host/check-headers.ts'
import { declaredOnly } from '../era/declared-capabilities.ts'
import { checkRound, checkRange, readModern, encodeModern } from '../era/host/modern-host.ts'
import type { ModernRequest } from '../era/host/modern-host.ts'
import { complete, isBridge, isEndOf, NO_HEADERS, Refusal } from '../rpc/call.ts'
import type { Call, Caller, CallerFacts, InputRequired, Outcome, Scope } from '../rpc/call.ts'
import type { Begun, Recording } from '../observe/capture/recording.ts'
import type { Cancel } from '../rpc/cancellation.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage, resultMessage } from '../wire/message/message.ts'
import { progressTokenOf } from '../wire/message/envelope.ts'
import { isLogLevel, isOfLegacyOnly, isVendorNotification, methodRow, reaches } from '../wire/protocol/methods.ts'
import { META, PER_EXCHANGE } from '../wire/protocol/meta.ts'
import { MODERN } from '../wire/protocol/revisions.ts'
import { checkParamHeaders } from '../wire/headers/param-headers.ts'
import { Failure } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'
import { jsonObject } from '../values/json-object.ts'
import { withHost } from './caller-facts.ts'
import { reportDeniedMessage } from './denials.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import { NOTHING } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { Sighted } from './host-sightings.ts'
import type { ListenerContext } from './listener-context.ts'
import type { HostLimits } from './options.ts'
import { serveSubscriptions } from './subscription-stream.ts'
import type { PipeEnd } from './subscription-stream.ts'
import { ProgressExchange } from './response/progress.ts'
import { errorReply } from './response/respond.ts'
import { discoverAnswer, resultIdentity } from './handshake.ts'

/** The source of a modern request. */
export interface ModernOrigin {
  readonly principal: string
  readonly scope: Scope
  /** `undefined`: no policy reads them. */
  readonly facts: CallerFacts | undefined
  /** HTTP headers to check against the body; `undefined`: a pipe. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Whether the listener has checked the admission of the request; else it is checked here, only for calls. */
  readonly isAdmitted: boolean
  /** The peer of a pipe, which decides how a `subscriptions/listen` stream ends (B126). */
  readonly pipe: PipeEnd | undefined
}

/** Serves one request; the answer is sent to `listenerExchange`. Nothing is sent after `abort` has fired. */
export const serveModern = (
  message: Envelope,
  origin: ModernOrigin,
  listenerExchange: Exchange,
  abort: Cancel,
  context: ListenerContext,
): void => {
  const id = message.id ?? 'null'
  const ref = context.nextRef()
  const exchange = new ProgressExchange(listenerExchange, progressTokenOf(message.params), message.id)
  /** `undefined`: calls are not recorded. */
  let recording: Recording | undefined
  /** Bytes that admission counts for this call. */
  let held = NOTHING
  const encode = (outcome: Outcome): Outcome['result'] => encodeModern(outcome, message.method, resultIdentity(origin, context))
  const fail = (error: unknown): void => {
    if (held !== NOTHING) held = context.admission.end(origin.principal, held)
    recording?.rejected(error, abort.signal.aborted)
    if (abort.signal.aborted) {
      recording?.answered(undefined)
      return exchange.end()
    }
    const failed = {
      id,
      era: 'modern' as const,
      method: message.method,
      ref,
      isBridge: isBridge(origin.scope),
      encode: (result: Outcome['result']) => encode(complete(result)),
    }
    const { status, message: parts, scopes } = errorReply(error, failed, context)
    recording?.answered(parts)
    context.log.debug({ ref, trace_id: exchange.traceId, method: message.method, error: String(error) }, 'request failed')
    exchange.answer(parts, status, scopes)
  }
  try {
    const request = check(message, origin, context)
    const caller = callerOf(request, origin)
    if (message.method === 'subscriptions/listen')
      return serveSubscriptions(message, caller, exchange, abort.signal, origin.pipe, context)
    const answer = (outcome: Outcome): void => {
      if (held !== NOTHING) held = context.admission.end(origin.principal, held)
      try {
        if (outcome.kind === 'input_required') checkRetry(message, outcome, context.options.limits)
        recording?.returned({ method: message.method, signal: abort.signal }, outcome)
        const result = encode(outcome)
        if (result instanceof StreamedResult) return exchange.stream(result, id, abort.signal, fail)
        if (abort.signal.aborted) return recording?.answered(undefined)
        const parts = resultMessage(id, result.parts())
        recording?.answered(parts)
        if (recording !== undefined) exchange.onTaken(() => recording?.written())
        else if (isEndOf(message.method, message.params, outcome)) exchange.freeRequest()
        exchange.answer(parts, 200)
      } catch (error) {
        fail(error)
      }
    }
    recording = context.observer?.begin(begunOf(message, ref, request.clientInfo, origin))
    if (message.method === 'server/discover') {
      context.sighted?.(sightedOf(request, origin), undefined)
      const found = discoverAnswer(caller, context, origin.pipe !== undefined)
      return found instanceof Promise ? void found.then((result) => answer(complete(result)), fail) : answer(complete(found))
    }
    const refusal = origin.isAdmitted ? undefined : context.admission.refuse(origin.principal)
    if (refusal !== undefined) throw refusal
    const call = makeCall(message, request, caller, origin, exchange, abort, ref, recording, context)
    held = message.bytes.length
    context.admission.begin(origin.principal, held)
    const then =
      message.method === 'tools/list'
        ? (outcome: Outcome): void => {
            context.sighted?.(sightedOf(request, origin), caller)
            answer(outcome)
          }
        : answer
    context.core.handle(call).then(then, fail)
  } catch (error) {
    reportDeniedMessage(context, error, origin, message.method)
    recording ??= context.observer?.begin(begunOf(message, ref, clientInfoOf(message), origin))
    fail(error)
  }
}

/** Relays a notification that no revision defines to the server of a bridge (B277). No others of this era concern a server. */
export const receiveModern = ({ kind, method, params }: Envelope, origin: ModernOrigin, { core }: ListenerContext): void => {
  if (kind !== 'notification' || !isVendorNotification(method) || !isBridge(origin.scope)) return
  const meta = params?.object('_meta')
  // A notification need not describe its host.
  const capabilities = declaredOnly(jsonObject(meta?.value(META.capabilities)) ?? {})
  const caller = callerOf({ revision: MODERN, capabilities, clientInfo: meta?.value(META.clientInfo) }, origin)
  for (const key of PER_EXCHANGE) meta?.delete(key)
  core.notified(caller, method, params)
}

const callerOf = (
  { revision, capabilities, clientInfo }: Pick<ModernRequest, 'revision' | 'capabilities' | 'clientInfo'>,
  { principal, scope, facts }: ModernOrigin,
): Caller => ({
  principal,
  revision,
  capabilities,
  scope,
  session: undefined,
  ...(isBridge(scope) && { clientInfo }),
  ...(facts && { facts: withHost(facts, clientInfo) }),
})

/** Makes the checks of BRIDGING 5.1 for a modern body, in the order of its rows. */
const check = (
  message: Envelope,
  { headers, scope }: ModernOrigin,
  { capabilityCache, options }: ListenerContext,
): ModernRequest => {
  checkRange(message, options.revisions)
  if (headers !== undefined) checkVersionHeader(message, headers['mcp-protocol-version'])
  const request = readModern(message, capabilityCache)
  if (headers !== undefined) checkMirrors(message, (name) => headers[name])
  const row = methodRow(message.method, 'modern')
  // Methods of legacy revisions do not exist, not even at a bridge. A bridge relays methods of no revision (B277).
  if (row === undefined && (!isBridge(scope) || isOfLegacyOnly(message.method)))
    throw new Refusal(-32601, `Method not found: ${message.method}`, { status: 404 })
  if (row?.mayAskInput === true) checkRound(message)
  return request
}

const makeCall = (
  message: Envelope,
  request: ModernRequest,
  caller: Caller,
  origin: ModernOrigin,
  exchange: ProgressExchange,
  abort: Cancel,
  ref: number,
  record: Recording | undefined,
  context: ListenerContext,
): Call => {
  const params = message.params ?? Payload.of({})
  const row = methodRow(message.method, 'modern')
  const target = row?.field === undefined || row.field === 'ref' ? undefined : params.text(row.field)
  return {
    ref,
    method: message.method,
    target,
    params,
    caller,
    resume: undefined,
    signal: abort.signal,
    progressToken: request.progressToken,
    logLevel: request.logLevel,
    paramHeaders: [],
    unknownHeaders: paramHeaders(message, caller, target, origin, context),
    takesStreams: exchange.takesStreams,
    responseChannel: exchange,
    notify: relay(request, exchange),
    ask: undefined,
    record,
  }
}

/** Throws `Failure` if the host's retry would exceed `listen.limits.max_body`: a person would answer in vain. */
const checkRetry = ({ params }: Envelope, { state = '' }: InputRequired, { maxBodyBytes }: HostLimits): void => {
  if (state.length + (params?.raw('arguments')?.length ?? 0) <= maxBodyBytes) return
  const told = `with the state of this call, its next request would be larger than ${maxBodyBytes} bytes`
  throw new Failure('too_large', told, { limit: 'listen.limits.max_body', told })
}

const transportOf = ({ headers }: ModernOrigin): 'stdio' | 'http' => (headers === undefined ? 'stdio' : 'http')

const sightedOf = ({ clientInfo, revision }: ModernRequest, origin: ModernOrigin): Sighted => ({
  clientInfo,
  revision,
  scope: origin.scope,
  transport: transportOf(origin),
})

/** What a host says about itself in a request, which may be refused. */
const clientInfoOf = ({ params }: Envelope): unknown => params?.object('_meta')?.value(META.clientInfo)

const begunOf = ({ method, bytes }: Envelope, ref: number, clientInfo: unknown, origin: ModernOrigin): Begun => ({
  ref,
  method,
  principal: origin.principal,
  scope: origin.scope,
  revision: MODERN,
  session: undefined,
  clientInfo,
  transport: transportOf(origin),
  message: bytes,
})

/** Row 15: checks known `Mcp-Param-*` headers against the arguments, and returns unknown ones to relay (BRIDGING 5.4). */
const paramHeaders = (
  message: Envelope,
  caller: Caller,
  target: string | undefined,
  { headers }: ModernOrigin,
  context: ListenerContext,
): Readonly<Record<string, string>> => {
  if (headers === undefined || message.method !== 'tools/call' || target === undefined) return NO_HEADERS
  const known = context.core.paramHeaders(caller, target)
  const problem = checkParamHeaders(known, message.params?.raw('arguments'), headers)
  if (problem !== undefined) throw mismatch(problem)
  let unknown: Record<string, string> | undefined
  for (const name in headers) {
    if (!name.startsWith('mcp-param-') || known.some((param) => `mcp-param-${param.name.toLowerCase()}` === name)) continue
    unknown ??= {}
    unknown[name] = headers[name] ?? ''
  }
  return unknown ?? NO_HEADERS
}

/** Relays progress, other notifications, and log messages of the requested level; at a bridge all of its peer (B136, B137, B146, B277). */
const relay =
  (request: ModernRequest, exchange: ProgressExchange): Call['notify'] =>
  (method, params, isOfPeer = false) => {
    if (method === 'notifications/progress') exchange.progress(params)
    else if (
      isOfPeer ||
      method !== 'notifications/message' ||
      (request.logLevel !== undefined && isSevere(params, request.logLevel))
    )
      exchange.message(notificationMessage(method, params.parts()))
  }

const isSevere = (params: Payload, minimum: NonNullable<ModernRequest['logLevel']>): boolean => {
  const level = params.text('level')
  return isLogLevel(level) && reaches(level, minimum)
}
