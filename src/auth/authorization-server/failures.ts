/** Failures of obtaining a credential, before anything was sent to the MCP server. */
import { asError } from '../../values/as-error.ts'
import { Failure } from '../../wire/message/failure.ts'
import { GrantRefused, Unavailable } from './token-endpoint.ts'

/** The authorization server refused, or a person or the operator must act. `status`: of the authorization server. */
export const authRequired = (message: string, cause?: unknown, status?: number): Failure =>
  new Failure('auth_required', message, { executed: 'no', ...(status !== undefined && { status }) }, cause)

/** An authorization server could not be reached, or gave no usable answer. */
export const unreachable = (what: string, cause: unknown): Failure =>
  new Failure('unreachable', `${what}: ${asError(cause).message}`, { executed: 'no', retryable: true }, cause)

/** Returns the failure for an error of `requestTokens`. */
export const noToken = (error: unknown, what = 'no token'): Failure => {
  const kind = error instanceof GrantRefused ? 'auth_required' : 'unreachable'
  const isPaused = error instanceof Unavailable && error.retryAfterMs !== undefined
  const pause = isPaused ? { status: error.status, retryAfterMs: error.retryAfterMs } : {}
  return new Failure(kind, `${what}: ${asError(error).message}`, { executed: 'no', retryable: true, ...pause }, error)
}
