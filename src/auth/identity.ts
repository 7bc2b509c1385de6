/** The caller of a host's request by its verified credential. Nothing else decides what the caller may see (T-03). */
import { SHARED_PRINCIPAL } from '../rpc/call.ts'
import { parseOwnJson } from '../values/own-json.ts'
import type { TokenRefusal } from './token-refusal.ts'

export interface Identity {
  /** Identifies a person or machine for any of its tokens. Sessions, state, cursors and tasks are bound to it. */
  readonly principal: string
  /** The toolsets it may use, the default first; `undefined`: any. */
  readonly toolsets: readonly string[] | undefined
  /** The OAuth scopes granted; `undefined`: the credential has no scopes and is not limited by them. */
  readonly scopes: readonly string[] | undefined
  /** Claims of its OAuth token; absent: no policy rule reads them. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** Its static token is configured as an operator's. */
  readonly isOperator?: true
}

/** All callers of a listener without authentication. */
export const LOCAL: Identity = { principal: SHARED_PRINCIPAL, toolsets: undefined, scopes: undefined }

/** A valid credential: its identity, expiry and audiences. */
export interface Admitted {
  readonly identity: Identity
  /** Wall clock in milliseconds. */
  readonly untilMs: number
  /** URIs it was issued for; `undefined`: it is valid at every endpoint. */
  readonly audiences: readonly string[] | undefined
  /** The token is valid, but no rule of `auth.map` matches, so every request is answered 403. */
  readonly unmapped?: TokenRefusal
}

export const LOCAL_ADMITTED: Admitted = { identity: LOCAL, untilMs: Infinity, audiences: undefined }

/** Returns the issuer of a principal of an OAuth token; `undefined`: another principal. */
export const issuerOfPrincipal = (principal: string): string | undefined => {
  if (!principal.startsWith('[')) return undefined
  const [issuer] = parseOwnJson<readonly unknown[]>(principal)
  return typeof issuer === 'string' ? issuer : undefined
}
