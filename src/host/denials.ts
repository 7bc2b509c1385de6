/** Reports requests that a listener refuses to the audit log. The caller sends the response. */
import { asError } from '../values/as-error.ts'
import type { Scope } from '../rpc/call.ts'
import type { Denial, DenialReason } from '../rpc/record.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { Failure } from '../wire/message/failure.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import type { ListenerContext } from './listener-context.ts'

type DenialContext = Pick<ListenerContext, 'denied'>

/** A refused HTTP request and its caller. */
interface DeniedRequest {
  readonly request: Pick<HttpRequest, 'header' | 'path' | 'client'>
  readonly principal: string
  readonly scope: Scope
}

/** Audit reasons by HTTP status. */
const REASONS: Readonly<Record<number, DenialReason>> = { 404: 'session', 413: 'too_large', 429: 'overloaded', 503: 'overloaded' }

/** Reports an HTTP request that is refused before its endpoint is known. */
export const reportRefused = (
  { denied }: DenialContext,
  { path, client }: Pick<HttpRequest, 'path' | 'client'>,
  reason: DenialReason,
  status: number,
  more: Pick<Denial, 'principal' | 'detail'> = {},
): void => denied?.({ reason, status, path, client, ...more })

/** Reports an HTTP request that is answered with `status`. */
export const reportDenied = (
  { denied }: DenialContext,
  { request, principal, scope }: DeniedRequest,
  status: number,
  detail: string | undefined,
  message: Pick<Envelope, 'method'> | undefined,
): void =>
  denied?.({
    reason: REASONS[status] ?? 'invalid',
    status,
    principal,
    toolset: scope.toolset,
    path: request.path,
    client: request.client,
    method: message?.method,
    session: request.header('mcp-session-id'),
    detail,
  })

/** Reports a message that was refused before it became a call. */
export const reportDeniedMessage = (
  { denied }: DenialContext,
  error: unknown,
  caller: { readonly principal: string; readonly scope: Scope; readonly session?: { readonly id: string } },
  method?: string,
): void =>
  denied?.({
    reason: error instanceof Failure && error.kind === 'overloaded' ? 'overloaded' : 'invalid',
    principal: caller.principal,
    toolset: caller.scope.toolset,
    method,
    session: caller.session?.id,
    detail: asError(error).message,
  })
