/**
 * The kinds of failures of Trunkline itself. Their names are stable (BRIDGING 7.2, RELIABILITY 4): hosts get them as
 * `data["dev.trunkline/gateway"].kind`. Only `host/response/respond.ts` decides the text and the form on the wire.
 */

export type FailureKind =
  | 'unknown'
  | 'starting'
  | 'spawn_failed'
  | 'exited'
  | 'unreachable'
  | 'timeout'
  | 'lost'
  | 'bad_response'
  | 'auth_required'
  | 'scope_required'
  | 'forbidden'
  | 'session_expired'
  | 'not_found'
  | 'too_large'
  | 'rate_limited'
  | 'downstream_error'
  | 'version'
  | 'loop'
  | 'protocol'
  | 'overloaded'
  | 'denied'
  | 'policy_denied'
  | 'state'
  | 'shutting_down'
  | 'store_unavailable'
  | 'cancelled'

export interface FailureFacts {
  /** Whether the server may have executed the request: `no` only if it certainly has not. */
  readonly executed?: 'no' | 'unknown'
  readonly retryable?: boolean
  readonly retryAfterMs?: number
  /** The state of the server in `ps`, if nothing was sent because of it. */
  readonly state?: 'down' | 'failed'
  /** The server that failed: its key and its display name. */
  readonly server?: { readonly key: string; readonly displayName: string }
  /** HTTP status of the server's answer. */
  readonly status?: number
  /** The configured fault that caused it. */
  readonly injected?: string
  /** A number for the text: seconds of a time-out, MiB of a limit. */
  readonly amount?: number
  /** The option whose limit was reached. It is named in the error and counted. */
  readonly limit?: string
  /** `WWW-Authenticate` of the server's 401 or 403. */
  readonly challenge?: string
  /** Whether a sign-in removes the cause. */
  readonly signIn?: boolean
  /** The text for the host, if the message is for the operator only. */
  readonly told?: string
}

/** Thrown for every expected failure. The message is for the log. Hosts get it only if it is about an option of Trunkline. */
export class Failure extends Error {
  readonly kind: FailureKind
  readonly executed: 'no' | 'unknown'
  readonly retryable: boolean
  readonly facts: FailureFacts
  constructor(kind: FailureKind, message: string, facts: FailureFacts = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.kind = kind
    this.executed = facts.executed ?? 'unknown'
    this.retryable = facts.retryable ?? false
    this.facts = facts
  }

  /** The same failure with the server that failed. */
  at(server: { readonly key: string; readonly displayName: string }): Failure {
    const { key, displayName } = server
    return new Failure(this.kind, this.message, { ...this.facts, server: { key, displayName } }, this)
  }
}
