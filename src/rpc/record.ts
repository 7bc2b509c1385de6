/** What those whom a call passes write down of it for the audit log, and how a request is turned away that never became a call. */

/** Carried by a call where there is an audit log; each part writes what it decides. */
export interface CallRecord {
  /** Set once the call has found its server. */
  server?: string
  /** As the server calls it. */
  original?: string
  /** What it names is in the catalog; else its caller may have made the name up. */
  isListed?: boolean
  /** Set by the layer that refuses the call, for every form of refusal; `rule`: the option that says so. */
  denied?: { readonly reason: DenialReason; readonly rule?: string }
}

/** The call has found its server. */
export const noteRoute = (
  { record }: { readonly record?: CallRecord },
  server: string,
  original: string,
  isListed = false,
): void => {
  if (record === undefined) return
  record.isListed = isListed
  record.server = server
  record.original = original
}

/** The call is turned away. */
export const noteDenial = ({ record }: { readonly record?: CallRecord }, reason: DenialReason, rule?: string): void => {
  if (record !== undefined) record.denied = rule === undefined ? { reason } : { reason, rule }
}

export type DenialReason =
  /** There is no such name, URI or task for this caller; `rule`: what hides it. */
  | 'unknown'
  /** The request itself is wrong. */
  | 'invalid'
  | 'too_large'
  | 'rate_limited'
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
}
