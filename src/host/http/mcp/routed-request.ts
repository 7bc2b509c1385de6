/** An HTTP request before its body is parsed: its path, credential and content types, and the ways to refuse it. */
import type { CallerFacts, Scope } from '../../../rpc/call.ts'
import type { HttpRequest, Unread } from '../../../transport/http1/server/request/http-request.ts'
import { EnvelopeError } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { readEnds } from '../../../wire/message/message-ends.ts'
import { refusalMessage } from '../../../wire/message/message.ts'
import { reached } from '../../limits/admission.ts'
import { reportDenied, reportRefused } from '../../denials.ts'
import { JSON_TYPE } from '../../response/exchange.ts'
import { errorReply } from '../../response/respond.ts'
import type { Failed } from '../../response/respond.ts'
import type { ScopeChallenge } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import type { Session } from '../../session/session.ts'

/** A request with its resolved endpoint and credential. */
export interface RoutedRequest {
  readonly request: HttpRequest
  readonly principal: string
  readonly scope: Scope
  /** `undefined`: no policy reads them. */
  readonly facts: CallerFacts | undefined
  /** End of the credential, wall clock in milliseconds; `Infinity`: never. */
  readonly untilMs: number
  /** The challenge for missing scopes. */
  readonly challenge: ScopeChallenge | undefined
}

export const EVENTS = 'text/event-stream'
export const JSON_BODY = 'application/json'
/** The exact header of the SDKs, which needs no parsing. */
const SDK_ACCEPT = 'application/json, text/event-stream'

/** Returns when a response becomes a stream. Not at once with OAuth scopes: their check may need another status (BRIDGING 6.1). */
export const streamDelayMs = (streamAfterMs: number, { granted }: Scope): number =>
  granted === undefined ? streamAfterMs : Math.max(1, streamAfterMs)

/** Whether the body is JSON. A web page cannot send JSON to another origin without a preflight (T-02). */
export const carriesJson = (request: HttpRequest): boolean => mediaType(request.header('content-type')) === JSON_BODY

/** Refuses an encoded body, which not all parsers on the path may decode. True: the request was answered. */
export const refuseEncoded = (context: Pick<ListenerContext, 'denied'>, request: HttpRequest): boolean => {
  const encoding = request.method === 'POST' ? request.header('content-encoding') : undefined
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return false
  const text = 'a body with Content-Encoding is not taken: send it as it is'
  reportRefused(context, request, 'invalid', 415, { detail: text })
  request.reply(415, { ...JSON_TYPE, 'Accept-Encoding': 'identity' }, refusalMessage(undefined, -32600, text))
  return true
}

const mediaType = (header: string | undefined): string =>
  header === JSON_BODY ? header : ((header ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '')

/** Whether `Accept` covers a type, also by a wildcard. False without the header, as in every official SDK. */
export const accepts = (request: HttpRequest, type: string): boolean => {
  const header = request.header('accept')
  if (header === undefined) return false
  if (header === SDK_ACCEPT) return true
  const [major] = type.split('/', 1)
  return header.split(',').some((entry) => {
    const range = mediaType(entry)
    return range === type || range === '*/*' || range === `${major}/*`
  })
}

/** Refuses a request over a limit, with the reason and `Retry-After`: 429 for a limit per principal (T-32), else 503. */
export const refuseBusy = (context: BusyContext, routed: RoutedRequest, failure: Failure, message?: Envelope): void => {
  const { limit = '', retryAfterMs = 1_000 } = failure.facts
  const id = message?.kind === 'request' ? message.id : undefined
  const status = limit.endsWith('_per_principal') ? 429 : 503
  const failed: Failed = { id, era: 'legacy', method: '', ref: context.nextRef() }
  reportDenied(context, routed, status, failure.message, message)
  const headers = { ...JSON_TYPE, 'Retry-After': String(Math.ceil(retryAfterMs / 1_000)) }
  // The retry of a call that has begun: its server may have acted.
  const hasBegun = message?.params?.text('requestState') !== undefined
  const reported = hasBegun ? new Failure(failure.kind, failure.message, { ...failure.facts, executed: 'unknown' }) : failure
  routed.request.reply(status, headers, errorReply(reported, failed, context).message)
}

type BusyContext = Pick<ListenerContext, 'denied' | 'limits' | 'unexpected' | 'nextRef' | 'hideJson' | 'command'>

/** Refuses a request whose body was not read. A body that begins as an answer ends the question of its session. */
export const refuseBody = (
  context: ListenerContext,
  routed: RoutedRequest,
  why: Unread,
  start?: Buffer,
  session?: Session,
): void => {
  const { maxBodyBytes } = context.options.limits
  if (why === 'overloaded') return refuseBusy(context, routed, reached('limits.in_flight_bytes', context.bodies.held.max))
  context.limits.hit('listen.limits.max_body')
  const text = `the body exceeds listen.limits.max_body (${maxBodyBytes} bytes)`
  if (start !== undefined) session?.refusedPart(readEnds(start), text)
  refuse(context, routed, 413, text)
}

/** Refuses a body that is not a valid message with 400. Rethrows errors other than `EnvelopeError`. */
export const refuseMessage = (
  context: Pick<ListenerContext, 'denied' | 'limits'>,
  routed: RoutedRequest,
  error: unknown,
): void => {
  if (!(error instanceof EnvelopeError)) throw error
  if (error.limit !== undefined) context.limits.hit(error.limit)
  reportDenied(context, routed, 400, error.message, undefined)
  routed.request.reply(400, JSON_TYPE, refusalMessage(error.id, error.code, error.message))
}

/** Answers with the JSON-RPC error of an invalid request, and reports the denial. */
export const refuse = (
  context: Pick<ListenerContext, 'denied'>,
  routed: RoutedRequest,
  status: number,
  text: string,
  message?: Envelope,
): void => {
  const id = message?.kind === 'request' ? message.id : undefined
  reportDenied(context, routed, status, text, message)
  routed.request.reply(status, JSON_TYPE, refusalMessage(id, -32600, text))
}

/** Answers without a body, and reports the denial. */
export const refuseWithoutBody = (
  context: Pick<ListenerContext, 'denied'>,
  routed: RoutedRequest,
  status: number,
  headers: Readonly<Record<string, string>>,
): void => {
  reportDenied(context, routed, status, undefined, undefined)
  routed.request.reply(status, headers)
}
