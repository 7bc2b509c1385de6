/** What the claims of a verified token say of its bearer: who, with which scopes, until when, and which toolsets (BRIDGING 6.1). */
import { claimValue } from './claim-value.ts'
import type { Claims } from './claim-value.ts'
import type { Admitted } from '../identity.ts'
import type { ClaimRule } from './inbound-options.ts'
import { principalOfClaims } from './principal.ts'
import type { ClaimSource } from './principal.ts'

/** Clocks of two machines differ (F-27). */
export const SKEW_MS = 60_000

export interface ClaimReading {
  /** As its tokens spell it. */
  readonly issuer: string
  /** Of our endpoints, as hosts know them. */
  readonly origin: string
  /** The claim that names the caller. */
  readonly subject: string
  readonly map: readonly ClaimRule[]
  readonly source: ClaimSource
  /** The claims are part of the identity. */
  readonly keepsClaims?: boolean | undefined
}

/** Why a token that was verified lets its bearer in nowhere, as a sentence for the operator. */
export interface Unfit {
  readonly reason: string
  /** The issuer gives such tokens to everybody: something is configured wrong there or here. */
  readonly isSetup: boolean
}

export const isUnfit = (verdict: Admitted | Unfit): verdict is Unfit => 'reason' in verdict

export const admittedBy = (
  claims: Claims,
  { issuer, origin, subject, map, source, keepsClaims }: ClaimReading,
): Admitted | Unfit => {
  const { exp, aud, cnf } = claims
  // A token bound to a key of its owner is worth nothing without the proof, which is not asked for ([RFC 9449] 7.2).
  if (cnf !== undefined) return { reason: 'bound to a key (cnf)', isSetup: false }
  if (typeof exp !== 'number') return { reason: 'no "exp"', isSetup: false }
  const audiences = textsOf(aud).filter((uri) => uri === origin || uri.startsWith(`${origin}/`))
  if (audiences.length === 0) return { reason: '"aud" names no endpoint of ours', isSetup: false }
  const principal = principalOfClaims(claims, issuer, subject, source)
  if ('refused' in principal) return { reason: principal.refused, isSetup: true }
  return {
    identity: {
      principal: principal.name,
      toolsets: toolsetsOf(claims, map),
      scopes: scopesOf(claims),
      ...(keepsClaims === true && { claims }),
    },
    untilMs: exp * 1_000 + SKEW_MS,
    audiences,
  }
}

/** Whether a token for `audiences` is good at `resource`: the URI it names and below, never beside it (B234). */
export const isForResource = (audiences: readonly string[], resource: string): boolean =>
  audiences.some((uri) => uri === resource || resource.startsWith(uri.endsWith('/') ? uri : `${uri}/`))

/** `scope` as [RFC 9068] has it, or `scp` as some issuers do. */
const scopesOf = ({ scope, scp }: Claims): readonly string[] =>
  textsOf(scope ?? scp)
    .flatMap((text) => text.split(' '))
    .filter((word) => word !== '')

/** Those of all rules that hold, the first rule's first; without rules any, and where none holds none. */
const toolsetsOf = (claims: Claims, map: readonly ClaimRule[]): readonly string[] | undefined =>
  map.length === 0 ? undefined : [...new Set(map.filter((rule) => holds(rule, claims)).flatMap(({ toolsets }) => toolsets))]

const holds = ({ claim, has, is }: ClaimRule, claims: Claims): boolean => {
  const value = claimValue(claims, claim)
  if (is !== undefined) return value === is || ((typeof value === 'number' || typeof value === 'boolean') && String(value) === is)
  return textsOf(value).some((text) => text === has || (!Array.isArray(value) && text.split(' ').includes(has ?? '')))
}

const textsOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? (value as unknown[]) : [value]).filter((text) => typeof text === 'string')
