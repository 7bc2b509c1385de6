/** The one place where the failure of a request becomes a wire error (BRIDGING 7). Other messages are refused where they are read. */
import { Refusal, ServerError } from '../../rpc/call.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { UnexpectedErrors } from '../../rpc/unexpected-errors.ts'
import type { Id } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import { errorMessage, errorObject, resultMessage } from '../../wire/message/message.ts'
import { META } from '../../wire/protocol/meta.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import type { JsonObject, Parts } from '../../wire/message/payload.ts'
import type { Era } from '../../wire/protocol/revisions.ts'
import { ScanError } from '../../wire/json/scan-error.ts'

export interface Reply {
  /** HTTP status, if the response has not begun. */
  readonly status: number
  readonly message: Parts
  /** OAuth scopes required by the request, for the challenge. */
  readonly scopes?: readonly string[]
}

/** The failed request: what its error depends on. */
export interface Failed {
  readonly id: Id | undefined
  readonly era: Era
  readonly method: string
  readonly ref: number
  /** The host is at a bridge: errors of a server of the same era are relayed unchanged (B277). */
  readonly isBridge?: boolean
  /** Adds the members of every modern result to a result of the gateway. Absent: a legacy host. */
  readonly encode?: (result: JsonObject) => JsonObject
}

/** Texts of BRIDGING 7.2. `<D>`: display name of the server; `<n>`: `Failure.facts.amount`. */
const TEXTS: Readonly<Record<FailureKind, string>> = {
  unknown: 'unknown name',
  starting: '<D> is still starting; try again in a moment',
  spawn_failed: '<D> could not be started; ask the operator',
  exited: '<D> stopped while working; the action may or may not have happened',
  unreachable: '<D> is not reachable',
  timeout: '<D> did not answer within <n> s; the action may still complete',
  lost: 'connection to <D> was lost; outcome unknown',
  bad_response: '<D> sent an unreadable answer',
  auth_required: 'sign-in to <D> is needed',
  scope_required: '<D> needs more permission',
  forbidden: '<D> denied access',
  session_expired: '<D> forgot the session twice; try again',
  not_found: '<D> has no MCP endpoint at its address',
  too_large: 'the answer of <D> exceeds <n> MiB (limits.max_message)',
  rate_limited: '<D> is rate limiting; retry later',
  downstream_error: '<D> failed',
  version: '<D> speaks no common protocol version',
  loop: 'the way to <D> leads in a circle of gateways',
  protocol: '<D> violated the protocol',
  overloaded: 'gateway is busy',
  denied: 'unknown name',
  policy_denied: 'denied by policy',
  state: 'invalid or expired requestState / cursor / task',
  shutting_down: 'the gateway is shutting down',
  store_unavailable: 'the shared store is not available',
  cancelled: 'the request was cancelled',
}

/** Failures caused by the host's own message: JSON-RPC errors for every method. */
const HOST_FAULTS: ReadonlySet<FailureKind> = new Set(['unknown', 'denied', 'state'])

interface ReplyContext {
  readonly limits: Pick<LimitCounts, 'hit'>
  readonly unexpected: Pick<UnexpectedErrors, 'report'>
  /** Removes secrets, which a server's error may repeat (T-14). */
  readonly hideJson: (json: string) => string
  /** Formats a command as the operator types it. */
  readonly command: CommandPrinter
}

export const errorReply = (error: unknown, failed: Failed, { limits, unexpected, hideJson, command }: ReplyContext): Reply => {
  const { limit, server } = error instanceof Failure ? error.facts : {}
  if (limit !== undefined) limits.hit(limit, server?.key)
  const reply = replyTo(error, failed, command, unexpected)
  if (error instanceof Refusal) return reply
  const json = join(reply.message).toString()
  const shown = hideJson(json)
  return shown === json ? reply : { ...reply, message: [Buffer.from(shown)] }
}

const replyTo = (error: unknown, failed: Failed, command: CommandPrinter, unexpected: ReplyContext['unexpected']): Reply => {
  if (error instanceof Refusal) return refusal(error, failed)
  if (error instanceof ServerError) {
    try {
      return serverError(error, failed)
    } catch (unreadable) {
      // Its data, which the scan of the message does not read (B271, F-31).
      return replyTo(unreadable, failed, command, unexpected)
    }
  }
  if (error instanceof Failure) return failure(error, failed, command)
  // Messages of hosts are checked on receipt, so an unreadable value is from a server's answer.
  if (error instanceof ScanError) return failure(new Failure('bad_response', error.message, {}, error), failed, command)
  unexpected.report(error, { ref: failed.ref, method: failed.method }, 'a request failed with an unexpected error')
  return { status: 200, message: errorMessage(failed.id, errorObject(-32603, 'internal error', gatewayData(undefined, failed))) }
}

const refusal = (error: Refusal, { id, era }: Failed): Reply => ({
  status: era === 'modern' || error.scopes !== undefined ? error.status : 200,
  message: errorMessage(id, errorObject(error.code, error.message, error.data)),
  ...(error.scopes !== undefined && { scopes: error.scopes }),
})

const failure = (error: Failure, failed: Failed, command: CommandPrinter): Reply => {
  const text = injected(named(textOf(error, command), error.facts.limit), error.facts.injected)
  if (HOST_FAULTS.has(error.kind)) return { status: 200, message: errorMessage(failed.id, errorObject(-32602, text)) }
  const data = gatewayData(error, failed)
  if (failed.method !== 'tools/call') return { status: 200, message: errorMessage(failed.id, errorObject(-32603, text, data)) }
  return resultReply(Payload.of({ content: [{ type: 'text', text }], isError: true, _meta: data }), failed)
}

const resultReply = (result: JsonObject, { id, encode }: Failed): Reply => ({
  status: 200,
  message: resultMessage(id ?? 'null', (encode?.(result) ?? result).parts()),
})

/** Appends the option that set the limit (RELIABILITY 7). */
const named = (text: string, limit: string | undefined): string =>
  limit === undefined || text.includes(limit) ? text : `${text} (${limit})`

/** Appends the rule of an injected failure. */
const injected = (text: string, rule: string | undefined): string =>
  rule === undefined ? text : `${text} (injected on purpose: ${rule})`

/** Returns the error text; for an unreachable server with the next attempt and the operator's commands. */
const textOf = (error: Failure, command: CommandPrinter): string => {
  const { state, retryAfterMs = 0, server } = error.facts
  if (state === undefined || error.facts.signIn === true) return reasonOf(error)
  const next =
    state === 'failed' ? 'it is not tried again by itself' : `the next attempt is in ${Math.ceil(retryAfterMs / 1000)} s`
  // The part after the semicolon is about a call in flight; this call was never sent.
  const [reason] = reasonOf(error).split(';')
  return `${reason}; ${next} (operator: ${command('ps')}, ${command('restart', server?.key ?? 'SERVER')})`
}

const reasonOf = (error: Failure): string => {
  const { server, amount, retryAfterMs, limit, state } = error.facts
  // The limit is the gateway's own, and the message names it.
  if (limit !== undefined && (error.kind === 'rate_limited' || error.kind === 'store_unavailable'))
    return retryAfterMs === undefined ? error.message : `${error.message}; retry after ${Math.ceil(retryAfterMs / 1000)} s`
  if (error.facts.told !== undefined) return error.facts.told
  const name = server?.displayName ?? 'the server'
  if (error.kind === 'shutting_down' && server !== undefined)
    return error.executed === 'no'
      ? `${name} is being stopped; try again in a moment`
      : `${name} was stopped; the action may or may not have happened`
  if (error.kind === 'exited' && state !== undefined) return `${name} is not running`
  if (error.kind === 'exited' && error.executed === 'no') return `${name} is not running; it is being restarted`
  if (error.kind === 'rate_limited' && retryAfterMs !== undefined)
    return `${name} is rate limiting; retry after ${Math.ceil(retryAfterMs / 1000)} s`
  if (error.kind === 'downstream_error' && error.facts.status !== undefined) return `${name} failed (HTTP ${error.facts.status})`
  if (error.kind === 'overloaded') return `gateway is busy: ${error.message}`
  const { status = 200 } = error.facts
  if (error.kind === 'bad_response' && status >= 300) return `${name} refused the request`
  if (error.kind === 'too_large' && status >= 400) return `the request is too large for ${name}`
  return TEXTS[error.kind].replace('<D>', name).replace('<n>', String(amount ?? '?'))
}

/** Facts of an error of the gateway; never hosts, paths or bodies of other requests (BRIDGING 7.1 rule 3). */
const gatewayData = (error: Failure | undefined, failed: Failed): Record<string, object> => {
  const { server, retryAfterMs } = error?.facts ?? {}
  return {
    [META.gateway]: {
      ...(server !== undefined && { downstream: server.key }),
      kind: error?.kind ?? 'protocol',
      executed: error?.executed ?? 'unknown',
      retryable: error?.retryable ?? false,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(error?.facts.injected !== undefined && { injected: error.facts.injected }),
      ref: String(failed.ref),
    },
  }
}

/** Codes that would make a false statement about the gateway or about the host's message. */
const NOT_OURS: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32020, -32022])

/** A server's own error is relayed unchanged unless its code would make a false statement about the gateway (BRIDGING 7.3). */
const serverError = (error: ServerError, failed: Failed): Reply => {
  const { code } = error
  if (failed.isBridge === true && (error.era === failed.era || lacksMethod(error))) return unchanged(error, failed)
  if (code === -32021) return missingCapability(error, failed)
  const isModern = failed.era === 'modern'
  const isUnreadableRange = isModern && code <= -32000 && code >= -32019 && code !== -32002
  const isUndefined = code <= -32023 && code >= -32099 && (isModern || code !== -32042)
  if (NOT_OURS.has(code) || isUnreadableRange || isUndefined)
    return { status: 200, message: errorMessage(failed.id, wrapped(error, failed)) }
  return relayed(error, failed)
}

/** HTTP statuses other than 200 of a modern server's errors ([2026-07-28 basic/transports/streamable-http]). */
const MODERN_STATUS: Readonly<Record<number, number>> = { [-32601]: 404, [-32020]: 400, [-32021]: 400, [-32022]: 400 }

/** Statuses that are relayed if the server chose them. Any other status is about its HTTP server. */
const PASSING: ReadonlySet<number | undefined> = new Set([200, 400, 404])

/** Whether the server does not know the method. With status 200 the code is about a name in the request. */
const lacksMethod = ({ code, status }: ServerError): boolean => code === -32601 && status !== 200

const unchanged = ({ code, error, status }: ServerError, { id, era }: Failed): Reply => ({
  status: era === 'legacy' ? 200 : ((PASSING.has(status) ? status : MODERN_STATUS[code]) ?? 200),
  message: errorMessage(id, error.parts()),
})

/** A modern host can declare a missing capability and try again. A legacy host cannot, so its model gets a text. */
const missingCapability = (error: ServerError, failed: Failed): Reply => {
  const required = error.error.object('data')?.object('requiredCapabilities')
  if (failed.era === 'modern') {
    if (required !== undefined) return { ...relayed(error, failed), status: 400 }
    // Without `requiredCapabilities` a host cannot act on the code (B196).
    return { status: 200, message: errorMessage(failed.id, wrapped(error, failed)) }
  }
  const names = (required?.members ?? []).map(({ key }) => key).join(', ')
  const text = `this action needs a client with ${names === '' ? 'more capabilities' : names}`
  if (failed.method !== 'tools/call') return { status: 200, message: errorMessage(failed.id, wrapped(error, failed, text)) }
  const result = Payload.of({ content: [{ type: 'text', text }], isError: true })
  result.set('_meta', originalData(error, failed).parts())
  return resultReply(result, failed)
}

/** Relays an error. The code of a missing resource is translated between the eras (B103). */
const relayed = (server: ServerError, failed: Failed): Reply => {
  const { code, error } = server
  const isNotFound = failed.method === 'resources/read'
  const isForModern = failed.era === 'modern' && code === -32002
  const isForLegacy = failed.era === 'legacy' && code === -32602 && isNotFound && error.object('data')?.has('uri') === true
  if (isForModern || isForLegacy) {
    error.set('code', isForModern ? '-32602' : '-32002')
    error.setIn('data', 'original', join(error.fresh().parts()))
  }
  return { status: 200, message: errorMessage(failed.id, error.parts()) }
}

/** Returns an error -32603 with the server's message or `message`; `data` has the server's whole error (B272). */
const wrapped = (server: ServerError, failed: Failed, message?: string): Parts => {
  const error = new Draft()
  error.set('code', '-32603')
  error.set('message', message === undefined ? (server.error.raw('message') ?? '""') : JSON.stringify(message))
  error.set('data', originalData(server, failed).parts())
  return error.parts()
}

/** Returns the server's error object byte for byte, and the server's key (B272). */
const originalData = ({ error, server }: ServerError, failed: Failed): Draft => {
  const facts = server === undefined ? {} : { server: { key: server, displayName: server } }
  const gateway = gatewayData(new Failure('protocol', 'a code that is not relayed', facts), failed)
  const data = new Draft()
  for (const [key, value] of Object.entries(gateway)) data.set(key, JSON.stringify(value))
  data.set('original', error.fresh().parts())
  return data
}
