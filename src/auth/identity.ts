/** Who stands behind a request of a host, once its credential is verified. Nothing else decides what the caller may see (T-03). */
import { SHARED_PRINCIPAL } from '../rpc/call.ts'
import type { Refusal } from './refusal.ts'

export interface Identity {
  /** The same for one person or machine whatever token it brings; sessions, state, cursors and tasks are bound to it. */
  readonly principal: string
  /** The toolsets it may choose, the one it gets unasked first; `undefined`: any. */
  readonly toolsets: readonly string[] | undefined
  /** The OAuth scopes granted to it; `undefined`: its credential knows no scopes and is not limited by any. */
  readonly scopes: readonly string[] | undefined
  /** Of its OAuth token, where rules of a policy read them. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** Its static token says that it is an operator's. */
  readonly isOperator?: true
}

/** Everybody who reaches a listener that asks for no credential. */
export const LOCAL: Identity = { principal: SHARED_PRINCIPAL, toolsets: undefined, scopes: undefined }

/** A credential that was found good: whose it is, until when, and where. */
export interface Admitted {
  readonly identity: Identity
  /** Wall clock in milliseconds. */
  readonly untilMs: number
  /** URIs it was issued for; `undefined`: it is good at every endpoint. */
  readonly audiences: readonly string[] | undefined
  /** The token is good, and no rule of `auth.map` gives its caller anything: every request is answered 403. */
  readonly unmapped?: Refusal
}

export const LOCAL_ADMITTED: Admitted = { identity: LOCAL, untilMs: Infinity, audiences: undefined }
