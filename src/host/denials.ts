/** Reports requests that a listener refuses to the audit log. The caller sends the response. */
import { asError } from '../values/as-error.ts'
import type { Scope } from '../rpc/call.ts'
import type { DenialReason } from '../rpc/record.ts'
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

/** Reports an HTTP request that is answered with `status`. */
export const reportDenied = (
  { denied }: DenialContext,
  { request, principal, scope }: DeniedRequest,
  status: number,
  detail: string | undefined,
  message: Pick<Envelope, 'method'> | undefined,
): void => {
  if (denied === undefined) return
  const session = request.header('mcp-session-id')
  denied({
    reason: REASONS[status] ?? 'invalid',
    status,
    principal,
    ...toolsetOf(scope),
    path: request.path,
    client: request.client,
    ...(message !== undefined && { method: message.method }),
    ...(session !== undefined && { session }),
    ...(detail !== undefined && { detail }),
  })
}

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
    ...toolsetOf(caller.scope),
    ...(method !== undefined && { method }),
    ...(caller.session !== undefined && { session: caller.session.id }),
    detail: asError(error).message,
  })

const toolsetOf = ({ toolset }: Scope): { readonly toolset?: string } => (toolset === undefined ? {} : { toolset })
