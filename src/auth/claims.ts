/** What the claims of a verified token say of its bearer: who, with which scopes, until when, and which toolsets (BRIDGING 6.1). */
import type { Admitted } from './identity.ts'
import type { ClaimRule } from './inbound-options.ts'

/** Claims of a JWT, or what introspection answered. */
export type Claims = Readonly<Record<string, unknown>>

/** Clocks of two machines differ (F-27). */
export const SKEW_MS = 60_000
const LONGEST_SUBJECT = 255

/** `undefined`: nobody is named, or the token says nothing of its end or of whom it is for. `origin`: ours, as hosts know it. */
export const admittedBy = (claims: Claims, issuer: string, origin: string, map: readonly ClaimRule[]): Admitted | undefined => {
  const principal = principalOf(claims, issuer)
  const { exp, aud } = claims
  const audiences = textsOf(aud).filter((uri) => uri === origin || uri.startsWith(`${origin}/`))
  if (principal === undefined || typeof exp !== 'number' || audiences.length === 0) return undefined
  return {
    identity: { principal, toolsets: toolsetsOf(claims, map), scopes: scopesOf(claims) },
    untilMs: exp * 1_000 + SKEW_MS,
    audiences,
  }
}

/** Whether a token for `audiences` is good at `resource`: the URI it names and below, never beside it (B234). */
export const isForResource = (audiences: readonly string[], resource: string): boolean =>
  audiences.some((uri) => uri === resource || resource.startsWith(uri.endsWith('/') ? uri : `${uri}/`))

/** The person, or the machine where no person is named. One issuer's names say nothing about another's. */
const principalOf = ({ sub, client_id: clientId, azp }: Claims, issuer: string): string | undefined => {
  const subject = isName(sub) ? ['sub', sub] : isName(clientId) ? ['client', clientId] : isName(azp) ? ['client', azp] : undefined
  return subject && JSON.stringify([issuer, ...subject])
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= LONGEST_SUBJECT

/** `scope` as [RFC 9068] has it, or `scp` as some issuers do. */
const scopesOf = ({ scope, scp }: Claims): readonly string[] =>
  textsOf(scope ?? scp)
    .flatMap((text) => text.split(' '))
    .filter((word) => word !== '')

/** Those of all rules that hold, the first rule's first; without rules any, and where none holds none. */
const toolsetsOf = (claims: Claims, map: readonly ClaimRule[]): readonly string[] | undefined =>
  map.length === 0 ? undefined : [...new Set(map.filter((rule) => holds(rule, claims)).flatMap(({ toolsets }) => toolsets))]

const holds = ({ claim, has, is }: ClaimRule, claims: Claims): boolean => {
  const value = valueOf(claims, claim)
  if (is !== undefined) return value === is || ((typeof value === 'number' || typeof value === 'boolean') && String(value) === is)
  return textsOf(value).some((text) => text === has || (!Array.isArray(value) && text.split(' ').includes(has ?? '')))
}

/** A claim may have dots in its name (`https://example.com/groups`); else they lead into objects (`realm_access.roles`). */
const valueOf = (claims: Claims, claim: string): unknown => {
  if (Object.hasOwn(claims, claim)) return claims[claim]
  let value: unknown = claims
  for (const step of claim.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step)) return undefined
    value = (value as Claims)[step]
  }
  return value
}

const textsOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? (value as unknown[]) : [value]).filter((text) => typeof text === 'string')
