/** What is recorded of a call for the audit log and the capture of calls, and of a request that was refused before it became a call. */
import type { Envelope } from '../wire/message/envelope.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'

/** The connection over which a request goes to a server. */
export interface Hop {
  readonly era: Era
  readonly revision: Revision
  readonly transport: 'pipe' | 'http' | 'sse'
}

/** One way in which a call differed on its two sides. */
export interface Deviation {
  readonly feature: string
  /** An id or a section of BRIDGING. */
  readonly rule: string
  /** `projected`: it arrived in another form. `impossible`: the other side has no form for it, and got an error or nothing. */
  readonly verdict: 'projected' | 'impossible'
  readonly reason: string
}

/** The record of one call, present while there is an audit log or calls are captured. The methods are present while calls are captured. */
export interface CallRecord {
  /** Key of the server, once the call is routed. */
  server?: string
  /** The target by its name at the server. */
  original?: string
  /** Whether the target is in the catalog; else the caller may have invented the name. */
  isListed?: boolean
  /** The decision of the policy, and the rule that made it. */
  policy?: {
    readonly decision: string
    readonly rule: string
    readonly reason?: string | undefined
    /** The parts that the policy service replaced. */
    readonly replaced?: readonly string[]
  }
  /** Set by the layer that refuses the call, for every form of refusal; `rule`: the option that caused it. */
  denied?: { readonly reason: DenialReason; readonly rule?: string }
  /** The server no longer accepts the credential of this caller, so the caller is asked to sign in there. */
  needsSignIn?: true
  /** The call has acquired a slot of its server. */
  slotted?(): void
  /** A request for the call is sent to its server under this id; `parts`: the message. */
  sent?(parts: Parts, id: number, hop: Hop): void
  /** Progress was received for that request. */
  progressed?(): void
  /** The response to that request was received; of a streamed result, its beginning. */
  received?(message: Envelope): void
  /** The call was relayed in a changed form. */
  deviated?(deviation: Deviation): void
}

interface Recorded {
  readonly record?: CallRecord | undefined
}

/** Records the server of a call, once it is routed. */
export const noteRoute = ({ record }: Recorded, server: string, original: string, isListed = false): void => {
  if (record === undefined) return
  record.isListed = isListed
  record.server = server
  record.original = original
}

/** Records for a further round of a call what was recorded for its first one. */
export const noteRound = ({ record }: Recorded, first: CallRecord | undefined): void => {
  if (record === undefined || first?.server === undefined) return
  noteRoute({ record }, first.server, first.original ?? '', first.isListed)
  if (first.policy !== undefined) notePolicy({ record }, first.policy)
}

/** Records the decision of the policy. */
export const notePolicy = ({ record }: Recorded, policy: NonNullable<CallRecord['policy']>): void => {
  if (record !== undefined) record.policy = policy
}

/** Records why the call is refused. */
export const noteDenial = ({ record }: Recorded, reason: DenialReason, rule?: string): void => {
  if (record !== undefined) record.denied = rule === undefined ? { reason } : { reason, rule }
}

export type DenialReason =
  /** This caller has no such name, URI or task; `rule`: the option that hides it. */
  | 'unknown'
  /** The request itself is wrong. */
  | 'invalid'
  | 'too_large'
  | 'rate_limited'
  /** Denied by a rule of the policy, or by its service. */
  | 'policy'
  /** A person was asked and declined. */
  | 'declined'
  /** No credential, or an invalid one. */
  | 'unauthorized'
  /** The credential does not cover this. */
  | 'forbidden'
  /** `Host` or `Origin` is not allowed. */
  | 'origin'
  /** No such endpoint for this caller. */
  | 'path'
  /** No such session, or a session of another principal. */
  | 'session'
  | 'overloaded'
  | 'shutting_down'
  /** The audit log cannot be written. */
  | 'audit'

/** A request that a listener refused. */
export interface Denial {
  readonly reason: DenialReason
  /** HTTP status, if there is one. */
  readonly status?: number
  readonly principal?: string | undefined
  readonly toolset?: string | undefined
  readonly path?: string
  readonly method?: string | undefined
  /** Id of the session that the request named or belongs to. */
  readonly session?: string | undefined
  readonly detail?: string | undefined
  /** Address of the client, also behind trusted proxies; `undefined`: a pipe or a unix socket. */
  readonly client?: string | undefined
}
