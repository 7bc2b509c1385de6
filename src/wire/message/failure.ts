/**
 * The closed list of ways in which Trunkline itself fails a request, under names that stay the same
 * (BRIDGING 7.2, RELIABILITY 4). They reach hosts as `data["dev.trunkline/gateway"].kind`; how each is worded and which form
 * it takes on the wire is decided in `host/response/respond.ts` alone.
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
  | 'state'
  | 'shutting_down'
  | 'store_unavailable'
  | 'cancelled'

export interface FailureFacts {
  /** Whether the server may have acted: `no` only when that is certain. */
  readonly executed?: 'no' | 'unknown'
  readonly retryable?: boolean
  readonly retryAfterMs?: number
  /** The server is away, and nothing was sent: the state that `ps` shows. */
  readonly state?: 'down' | 'failed'
  /** The server it happened at: its key, and the name a person knows it by. */
  readonly server?: { readonly key: string; readonly displayName: string }
  /** HTTP status of the server, where it had one. */
  readonly status?: number
  /** The rule of the configuration that made it fail on purpose. */
  readonly injected?: string
  /** A figure the wording needs: seconds of a time-out, MiB of a cap. */
  readonly amount?: number
  /** The option that set the limit which was reached: named to the host, and counted. */
  readonly limit?: string
  /** Its `WWW-Authenticate`, with a 401 or 403. */
  readonly challenge?: string
  /** A person who signs in there can mend it. */
  readonly signIn?: boolean
  /** The JSON-RPC code of the server's own error, where it is one that must not pass. */
  readonly code?: number
}

/** Thrown for every expected failure. The message is for the log; hosts see it only where it is about an option of ours. */
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

  /** The same failure, saying at which server it happened. */
  at(server: { readonly key: string; readonly displayName: string }): Failure {
    const { key, displayName } = server
    return new Failure(this.kind, this.message, { ...this.facts, server: { key, displayName } }, this)
  }
}
