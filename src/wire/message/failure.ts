/**
 * The closed list of kinds of failures that Trunkline itself makes; the names are stable (BRIDGING 7.2, RELIABILITY 4). Hosts get
 * them as `data["dev.trunkline/gateway"].kind`. Only `host/response/respond.ts` decides the text and the form on the wire.
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
  /** Whether the server may have acted: `no` only when that is certain. */
  readonly executed?: 'no' | 'unknown'
  readonly retryable?: boolean
  readonly retryAfterMs?: number
  /** The state of the server in `ps`, where it is unreachable and nothing was sent. */
  readonly state?: 'down' | 'failed'
  /** The failing server: its key and its display name. */
  readonly server?: { readonly key: string; readonly displayName: string }
  /** HTTP status of the server, where it had one. */
  readonly status?: number
  /** The rule of the configuration that made it fail on purpose. */
  readonly injected?: string
  /** A figure for the text: seconds of a time-out, MiB of a limit. */
  readonly amount?: number
  /** The option whose limit was reached: it is named in the error and counted. */
  readonly limit?: string
  /** Its `WWW-Authenticate`, with a 401 or 403. */
  readonly challenge?: string
  /** A sign-in removes the cause. */
  readonly signIn?: boolean
  /** The text for the host, where the message is for the operator alone. */
  readonly told?: string
  /** The JSON-RPC code of the server's own error, where that error must not be relayed. */
  readonly code?: number
}

/** Thrown for every expected failure. The message is for the log; hosts get it only if it is about an option of Trunkline. */
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

  /** The same failure with its server. */
  at(server: { readonly key: string; readonly displayName: string }): Failure {
    const { key, displayName } = server
    return new Failure(this.kind, this.message, { ...this.facts, server: { key, displayName } }, this)
  }
}
