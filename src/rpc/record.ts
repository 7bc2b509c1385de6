/** What those whom a call passes write down of it, for the audit log and the capture of calls, and how a request is turned away that never became one. */
import type { Envelope } from '../wire/message/envelope.ts'
import type { Parts } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { Deviation } from './deviation.ts'

/** The connection over which a request goes to a server. */
export interface Hop {
  readonly era: Era
  readonly revision: Revision
  readonly transport: 'pipe' | 'http' | 'sse'
}

/** Carried by a call where there is an audit log, or calls are captured; each part writes what it decides. The methods are there while calls are captured. */
export interface CallRecord {
  /** Set once the call has found its server. */
  server?: string
  /** As the server calls it. */
  original?: string
  /** What it names is in the catalog; else its caller may have made the name up. */
  isListed?: boolean
  /** What the policy decided, and the rule that did. */
  policy?: {
    readonly decision: string
    readonly rule: string
    readonly reason?: string | undefined
    /** What the policy service put something else in place of. */
    readonly replaced?: readonly string[]
  }
  /** Set by the layer that refuses the call, for every form of refusal; `rule`: the option that says so. */
  denied?: { readonly reason: DenialReason; readonly rule?: string }
  /** The server no longer accepts the credential of this caller, who is asked to sign in there. */
  needsSignIn?: true
  /** It has a slot of its server. */
  slotted?(): void
  /** A request for it leaves to its server under this id; `parts`: the message. */
  sent?(parts: Parts, id: number, hop: Hop): void
  /** Something came for that request before its answer. */
  progressed?(): void
  /** The answer to that request; of a result that passes on while it comes, its beginning. */
  received?(message: Envelope): void
  /** It was not passed on as it came. */
  deviated?(deviation: Deviation): void
}

/** The call has found its server. */
export const noteRoute = (
  { record }: { readonly record?: CallRecord | undefined },
  server: string,
  original: string,
  isListed = false,
): void => {
  if (record === undefined) return
  record.isListed = isListed
  record.server = server
  record.original = original
}

/** The policy has decided. */
export const notePolicy = (
  { record }: { readonly record?: CallRecord | undefined },
  policy: NonNullable<CallRecord['policy']>,
): void => {
  if (record !== undefined) record.policy = policy
}

/** Its caller is asked to sign in at the server. */
export const noteSignIn = ({ record }: { readonly record?: CallRecord | undefined }): void => {
  if (record !== undefined) record.needsSignIn = true
}

/** The call is turned away. */
export const noteDenial = (
  { record }: { readonly record?: CallRecord | undefined },
  reason: DenialReason,
  rule?: string,
): void => {
  if (record !== undefined) record.denied = rule === undefined ? { reason } : { reason, rule }
}

export type DenialReason =
  /** There is no such name, URI or task for this caller; `rule`: what hides it. */
  | 'unknown'
  /** The request itself is wrong. */
  | 'invalid'
  | 'too_large'
  | 'rate_limited'
  /** A rule of the policy, or its service. */
  | 'policy'
  /** A person was asked, and said no. */
  | 'declined'
  /** No credential, or a bad one. */
  | 'unauthorized'
  /** A credential that does not cover this. */
  | 'forbidden'
  /** `Host` or `Origin` is not allowed. */
  | 'origin'
  /** No such endpoint, or none for this caller. */
  | 'path'
  /** No such session, or a session of another principal. */
  | 'session'
  | 'overloaded'
  | 'shutting_down'
  /** The audit log itself cannot be written. */
  | 'audit'

/** A request that was turned away where it came in. */
export interface Denial {
  readonly reason: DenialReason
  /** HTTP status, where there is one. */
  readonly status?: number
  readonly principal?: string
  readonly toolset?: string
  readonly path?: string
  readonly method?: string
  readonly name?: string
  /** Id of the session it named or belongs to. */
  readonly session?: string
  readonly detail?: string
  /** Address of the client, also behind trusted proxies; `undefined`: it came over a pipe or a unix socket. */
  readonly client?: string | undefined
}
