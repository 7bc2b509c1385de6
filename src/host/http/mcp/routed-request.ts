/** One HTTP request before its body is parsed: path, credential, content types, and refusals. */
import type { CallerFacts, Scope } from '../../../rpc/call.ts'
import type { HttpRequest, Unread } from '../../../transport/http1/server/request/http-request.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { errorMessage, errorObject } from '../../../wire/message/message.ts'
import { reached } from '../../limits/admission.ts'
import { note } from '../../denials.ts'
import { JSON_TYPE } from '../../response/exchange.ts'
import { errorReply } from '../../response/respond.ts'
import type { Failed } from '../../response/respond.ts'
import type { ScopeChallenge } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'

/** One request with its resolved path and credential. */
export interface RoutedRequest {
  readonly request: HttpRequest
  readonly principal: string
  readonly scope: Scope
  /** Present while a policy asks for it. */
  readonly facts: CallerFacts | undefined
  /** When the credential ends, wall clock in milliseconds; `Infinity`: never. */
  readonly untilMs: number
  /** The challenge for missing scopes. */
  readonly challenge: ScopeChallenge | undefined
}

export const EVENTS = 'text/event-stream'
export const JSON_BODY = 'application/json'
/** The exact header of the SDKs, accepted without parsing. */
const USUAL_ACCEPT = 'application/json, text/event-stream'

/** How long an answer may stay undecided between JSON and SSE: with scopes, until the scopes are checked (BRIDGING 6.1). */
export const decidedFirst = (streamAfterMs: number, { granted }: Scope): number =>
  granted === undefined ? streamAfterMs : Math.max(1, streamAfterMs)

/** Whether the body is JSON, which a web page cannot send to another origin without a preflight (T-02). */
export const carriesJson = (request: HttpRequest): boolean => mediaType(request.header('content-type')) === JSON_BODY

/**
 * Refuses an encoded body before it is read. Bodies are not decoded here, and a body that one parser decodes and another does not would
 * be two different requests. True: it was refused and answered.
 */
export const refuseEncoded = (context: Pick<ListenerContext, 'denied'>, request: HttpRequest): boolean => {
  const encoding = request.method === 'POST' ? request.header('content-encoding') : undefined
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return false
  const text = 'a body with Content-Encoding is not taken: send it as it is'
  context.denied?.({ reason: 'invalid', status: 415, path: request.path, client: request.client, detail: text })
  request.reply(415, { ...JSON_TYPE, 'Accept-Encoding': 'identity' }, errorMessage(undefined, errorObject(-32600, text)))
  return true
}

const mediaType = (header: string | undefined): string =>
  header === JSON_BODY ? header : ((header ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '')

/** Whether `Accept` covers a type, by wildcards, too. A host that sends no such header is refused, as by every official SDK. */
export const accepts = (request: HttpRequest, type: string): boolean => {
  const header = request.header('accept')
  if (header === undefined) return false
  if (header === USUAL_ACCEPT) return true
  const [major] = type.split('/', 1)
  return header.split(',').some((entry) => {
    const range = mediaType(entry)
    return range === type || range === '*/*' || range === `${major}/*`
  })
}

/** Refuses a request over a limit, with the reason and `Retry-After`: 429 for a limit per principal (T-32), else 503. */
export const refuseBusy = (context: Busy, entrance: RoutedRequest, failure: Failure, message?: Envelope): void => {
  const { limit = '', retryAfterMs = 1_000 } = failure.facts
  const id = message?.kind === 'request' ? message.id : undefined
  const status = limit.endsWith('_per_principal') ? 429 : 503
  const failed: Failed = { id, era: 'legacy', method: '', ref: context.nextRef(), encode: (result) => result }
  note(context, entrance, status, failure.message, message)
  const headers = { ...JSON_TYPE, 'Retry-After': String(Math.ceil(retryAfterMs / 1_000)) }
  // It brings back a round of a call that has begun: its server may have acted.
  const hasBegun = message?.params?.text('requestState') !== undefined
  const told = hasBegun ? new Failure(failure.kind, failure.message, { ...failure.facts, executed: 'unknown' }) : failure
  entrance.request.reply(status, headers, errorReply(told, failed, context).message)
}

type Busy = Pick<ListenerContext, 'denied' | 'limits' | 'unexpected' | 'nextRef' | 'hideJson' | 'command'>

/** Why the body of a request was not read. */
export const refuseBody = (context: ListenerContext, entrance: RoutedRequest, why: Unread): void => {
  const { maxBodyBytes } = context.options.limits
  if (why === 'overloaded') return refuseBusy(context, entrance, reached('limits.in_flight_bytes', context.bodies.held.max))
  context.limits.hit('listen.limits.max_body')
  refuse(context, entrance, 413, -32600, `the body exceeds listen.limits.max_body (${maxBodyBytes} bytes)`)
}

/** Answers with a JSON-RPC error and reports the denial. */
export const refuse = (
  context: Pick<ListenerContext, 'denied'>,
  entrance: RoutedRequest,
  status: number,
  code: number,
  text: string,
  message?: Envelope,
): void => {
  const id = message?.kind === 'request' ? message.id : undefined
  note(context, entrance, status, text, message)
  entrance.request.reply(status, JSON_TYPE, errorMessage(id, errorObject(code, text)))
}

/** The same without a body. */
export const turnAway = (
  context: Pick<ListenerContext, 'denied'>,
  entrance: RoutedRequest,
  status: number,
  headers: Readonly<Record<string, string>>,
  message?: Envelope,
): void => {
  note(context, entrance, status, undefined, message)
  entrance.request.reply(status, headers)
}
