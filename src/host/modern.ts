/** Requests of modern hosts, for all listeners: checks a request, makes a `Call` of it, and answers in the form of its era. */
import { checkMirrors, checkVersionHeader, mismatch } from '../era/host/check-headers.ts'
import { declaredOnly } from '../era/declared-capabilities.ts'
import { checkRound, checkRange, readModern, encodeModern } from '../era/host/modern-host.ts'
import type { Introduced } from '../era/host/modern-host.ts'
import { complete, isBridge, NO_HEADERS, Refusal } from '../rpc/call.ts'
import type { Caller, CallerFacts, InputRequired, Outcome, Scope } from '../rpc/call.ts'
import type { Begun } from '../observe/capture/recording.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { notificationMessage } from '../wire/message/message.ts'
import { isLogLevel, isOfLegacyOnly, isVendorNotification, methodRow, reaches } from '../wire/protocol/methods.ts'
import { META, PER_EXCHANGE } from '../wire/protocol/meta.ts'
import { MODERN } from '../wire/protocol/revisions.ts'
import { checkParamHeaders } from '../wire/headers/param-headers.ts'
import { Failure } from '../wire/message/failure.ts'
import type { Payload } from '../wire/message/payload.ts'
import { jsonObject } from '../values/json-object.ts'
import { withHost } from './caller-facts.ts'
import { reportDeniedMessage } from './denials.ts'
import { HostRequest } from './host-request.ts'
import { NOTHING } from './limits/admission.ts'
import type { Exchange } from './response/exchange.ts'
import type { Sighted } from './host-sightings.ts'
import type { ListenerContext } from './listener-context.ts'
import type { HostLimits } from './options.ts'
import { serveSubscriptions } from './subscription-stream.ts'
import type { PipeEnd } from './subscription-stream.ts'
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

/** Serves one request; the answer is sent to `listenerExchange`. Nothing is sent after `signal` has fired. */
export const serveModern = (
  message: Envelope,
  origin: ModernOrigin,
  listenerExchange: Exchange,
  signal: CancelSignal,
  context: ListenerContext,
): void => new ModernHostRequest(message, origin, listenerExchange, signal, context).serve()

class ModernHostRequest extends HostRequest {
  readonly era = 'modern'
  readonly signal: CancelSignal
  readonly #origin: ModernOrigin
  /** Bytes that admission counts for this call. */
  #held = NOTHING
  /** Least level of log messages; `undefined`: the host wants none. */
  #logLevel: Introduced['logLevel']

  constructor(
    message: Envelope,
    origin: ModernOrigin,
    listenerExchange: Exchange,
    signal: CancelSignal,
    context: ListenerContext,
  ) {
    super(message, origin.scope, listenerExchange, context)
    this.signal = signal
    this.#origin = origin
  }

  serve(): void {
    const { message, context } = this
    const origin = this.#origin
    try {
      const introduced = checkRequest(message, origin, context)
      const caller = callerOf(introduced, origin)
      if (message.method === 'subscriptions/listen') return serveSubscriptions(this, caller, origin.pipe)
      this.#record(introduced.clientInfo)
      if (message.method === 'server/discover') this.#discover(introduced, caller)
      else this.#call(introduced, caller)
    } catch (error) {
      reportDeniedMessage(context, error, origin, message.method)
      if (this.recording === undefined) this.#record(clientInfoOf(message))
      this.fail(error)
    }
  }

  #record(clientInfo: unknown): void {
    this.recording = this.context.observer?.begin(begunOf(this.message, this.ref, clientInfo, this.#origin))
  }

  #discover(introduced: Introduced, caller: Caller): void {
    const { context } = this
    const origin = this.#origin
    context.sighted?.(sightedOf(introduced, origin), undefined)
    const found = discoverAnswer(caller, context, origin.pipe !== undefined)
    if (!(found instanceof Promise)) return this.answer(complete(found))
    found.then(
      (result) => this.answer(complete(result)),
      (error: unknown) => this.fail(error),
    )
  }

  #call(introduced: Introduced, caller: Caller): void {
    const { message, context } = this
    const { isAdmitted, principal } = this.#origin
    const refusal = isAdmitted ? undefined : context.admission.refuse(principal)
    if (refusal !== undefined) throw refusal
    const { target } = this
    const unknownHeaders = paramHeaders(message, caller, target, this.#origin, context)
    const call = this.makeCall({ target, caller, logLevel: introduced.logLevel, unknownHeaders, ask: undefined })
    this.#logLevel = introduced.logLevel
    this.#held = message.bytes.length
    context.admission.begin(principal, this.#held)
    context.core.handle(call).then(
      (outcome) => {
        if (message.method === 'tools/list') context.sighted?.(sightedOf(introduced, this.#origin), caller)
        this.answer(outcome)
      },
      (error: unknown) => this.fail(error),
    )
  }

  protected override check(outcome: Outcome): void {
    if (outcome.kind === 'input_required') checkRetry(this.message, outcome, this.context.options.limits)
  }

  protected override aborted(): void {
    this.exchange.end()
  }

  protected release(): void {
    if (this.#held !== NOTHING) this.#held = this.context.admission.end(this.#origin.principal, this.#held)
  }

  protected encode(outcome: Outcome): Outcome['result'] {
    return encodeModern(outcome, this.message.method, resultIdentity(this.#origin, this.context))
  }

  /** Relays progress, other notifications, and log messages of the requested level; at a bridge all of its peer (B136, B137, B146, B277). */
  protected notify(method: string, params: Payload, isOfPeer = false): void {
    if (method === 'notifications/progress') this.exchange.progress(params)
    else if (isOfPeer || method !== 'notifications/message' || isSevere(params, this.#logLevel))
      this.exchange.message(notificationMessage(method, params.parts()))
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
  { revision, capabilities, clientInfo }: Pick<Introduced, 'revision' | 'capabilities' | 'clientInfo'>,
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
const checkRequest = (
  message: Envelope,
  { headers, scope }: ModernOrigin,
  { capabilityCache, options }: ListenerContext,
): Introduced => {
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

/** Throws `Failure` if the host's retry would exceed `listen.limits.max_body`: a person would answer in vain. */
const checkRetry = ({ params }: Envelope, { state = '' }: InputRequired, { maxBodyBytes }: HostLimits): void => {
  if (state.length + (params?.raw('arguments')?.length ?? 0) <= maxBodyBytes) return
  const told = `with the state of this call, its next request would be larger than ${maxBodyBytes} bytes`
  throw new Failure('too_large', told, { limit: 'listen.limits.max_body', told })
}

const transportOf = ({ headers }: ModernOrigin): 'stdio' | 'http' => (headers === undefined ? 'stdio' : 'http')

const sightedOf = ({ clientInfo, revision }: Introduced, origin: ModernOrigin): Sighted => ({
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

const isSevere = (params: Payload, minimum: Introduced['logLevel']): boolean => {
  const level = params.text('level')
  return minimum !== undefined && isLogLevel(level) && reaches(level, minimum)
}
