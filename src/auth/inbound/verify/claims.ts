/** Checks the claims of a verified token, and derives the caller's principal, scopes and toolsets (BRIDGING 6.1). */
import { isList } from '../../../values/json-object.ts'
import { claimValue, shownPath } from './claim-value.ts'
import type { Claims } from './claim-value.ts'
import type { Admitted } from '../../identity.ts'
import type { ClaimRule, IssuerOptions, ResourceServerOptions } from './inbound-options.ts'
import { principalOfClaims } from './principal.ts'
import type { ClaimSource } from './principal.ts'
import { kindOf, shownValue } from '../../token-refusal.ts'
import type { Cause, Check, TokenRefusal } from '../../token-refusal.ts'

/** Tolerance for clock skew between two machines (F-27). */
export const SKEW_MS = 60_000

export interface ClaimReading {
  readonly issuer: Pick<IssuerOptions, 'issuer' | 'subject'>
  readonly resource: Pick<ResourceServerOptions, 'audience' | 'otherAudiences'>
  readonly map: readonly ClaimRule[]
  readonly source: ClaimSource
  /** Adds the claims to the identity. */
  readonly keepsClaims?: boolean | undefined
  /** Wall clock in milliseconds. */
  readonly nowMs: number
}

/** The result of checking the claims of one token. */
export interface ClaimVerdict {
  readonly checks: readonly Check[]
  /** `undefined`: a check failed. */
  readonly admitted: Admitted | undefined
}

/** Makes all checks, even after one has failed, so that the operator sees all of them. */
export const judgeClaims = (claims: Claims, reading: ClaimReading): ClaimVerdict => {
  const { issuer, resource, map, source, nowMs, keepsClaims } = reading
  const { exp, cnf } = claims
  const audiences = audiencesOf(claims, resource)
  const principal = principalOfClaims(claims, issuer.issuer, issuer.subject, source)
  const name = 'name' in principal ? principal.name : undefined
  const toolsets = toolsetsOf(claims, map, issuer.issuer)
  const checks: Check[] = [
    endCheck(exp, nowMs),
    beginningCheck(claims['nbf'], nowMs),
    bindingCheck(cnf),
    audiences.length > 0 ? passed('audience', `aud ${shownValue(claims['aud'])}`) : failed(audienceRefusal(claims, resource)),
    'refused' in principal ? failed(principal.refused) : passed('caller', principal.name),
  ]
  if (name === undefined || checks.some(({ refusal }) => refusal !== undefined)) return { checks, admitted: undefined }
  const unmapped = toolsets?.length === 0 ? unmappedRefusal(claims, map) : undefined
  checks.push(unmapped === undefined ? passed('toolsets', toolsets?.join(', ') ?? 'any') : failed(unmapped))
  return {
    checks,
    admitted: {
      identity: { principal: name, toolsets, scopes: scopesOf(claims), ...(keepsClaims === true && { claims }) },
      untilMs: Number(exp) * 1_000 + SKEW_MS,
      audiences,
      ...(unmapped !== undefined && { unmapped }),
    },
  }
}

export const passed = (cause: Cause, found: string): Check => ({ cause, found, refusal: undefined })
export const failed = (refusal: TokenRefusal): Check => ({ cause: refusal.cause, found: '', refusal })

/** Whether a token for `audiences` is valid at `resource`: at each of these URIs and below it (B234). */
export const isForResource = (audiences: readonly string[], resource: string): boolean =>
  audiences.some((uri) => uri === resource || resource.startsWith(uri.endsWith('/') ? uri : `${uri}/`))

/** Returns the origin of all endpoints, the one value of `aud` that is valid at all of them. */
export const originOf = ({ audience }: Pick<ResourceServerOptions, 'audience'>): string => new URL(audience).origin

/** Returns the gateway's URIs in `aud`. A configured identifier (`otherAudiences`) counts as the origin. */
const audiencesOf = ({ aud }: Claims, resource: ClaimReading['resource']): readonly string[] => {
  const origin = originOf(resource)
  return textsOf(aud).flatMap((text) => {
    const uri = plainUri(text)
    if (uri === origin || uri.startsWith(`${origin}/`)) return [uri]
    return resource.otherAudiences.includes(text) ? [origin] : []
  })
}

const SCHEME_AND_HOST = /^https?:\/\/[^/?#]*/i

/** Returns a resource's URI with scheme and host in lower case ([2026-07-28 basic/authorization], "Canonical Server URI"). */
export const plainUri = (text: string): string => text.replace(SCHEME_AND_HOST, (part) => part.toLowerCase())

const audienceRefusal = ({ aud }: Claims, resource: ClaimReading['resource']): TokenRefusal => {
  const origin = originOf(resource)
  const own = [origin, resource.audience, ...resource.otherAudiences]
  const isShared = textsOf(aud).includes('account')
  return {
    cause: 'audience',
    claim: 'aud',
    expected: own.join(' or '),
    got: shownValue(aud),
    remedy: isShared
      ? `"account" is in every token of Keycloak: add an Audience mapper for ${origin} to the client scope (docs/identity/keycloak.md)`
      : `have the issuer put ${origin} into "aud"; if the value names Trunkline alone at this issuer, add it to auth.oauth.audience`,
  }
}

/** Returns the refusal of a valid token for another endpoint. `uri`: of the requested endpoint. */
export const endpointRefusal = (uri: string, audiences: readonly string[], origin: string): TokenRefusal => ({
  cause: 'endpoint',
  claim: 'aud',
  expected: `${uri} or a URL above it`,
  got: audiences.join(' '),
  remedy: `have the issuer put ${origin} into "aud": it is valid at every endpoint`,
})

/** Refusal of a token within the clock skew after its expiry, if servers use token exchange: no issuer exchanges it (F-27). */
export const ENDED: TokenRefusal = {
  cause: 'end',
  claim: 'exp',
  expected: 'a time that has not passed, because servers use credentials.exchange',
  got: 'one within the minute of clock skew',
  remedy: 'the host must renew its token',
}

const endCheck = (exp: unknown, nowMs: number): Check => {
  if (typeof exp !== 'number')
    return failed({
      cause: 'end',
      claim: 'exp',
      expected: 'a number',
      got: kindOf(exp),
      remedy: 'have the issuer let tokens end',
    })
  const end = instant(exp)
  if (exp * 1_000 + SKEW_MS > nowMs) return passed('end', `exp ${end}`)
  return failed({
    cause: 'end',
    claim: 'exp',
    expected: `a time after ${instant(nowMs / 1_000)}`,
    got: end,
    remedy: 'the host must renew its token; if it is new, compare the clocks of both machines',
  })
}

const beginningCheck = (nbf: unknown, nowMs: number): Check => {
  if (nbf === undefined) return passed('beginning', 'no nbf')
  if (typeof nbf === 'number' && nbf * 1_000 - SKEW_MS <= nowMs) return passed('beginning', `nbf ${instant(nbf)}`)
  return failed({
    cause: 'beginning',
    claim: 'nbf',
    expected: `a time before ${instant(nowMs / 1_000)}`,
    got: typeof nbf === 'number' ? instant(nbf) : kindOf(nbf),
    remedy: 'compare the clocks of both machines',
  })
}

/** Refuses sender-constrained tokens: their proof is not supported ([RFC 9449] 7.2). */
const bindingCheck = (cnf: unknown): Check =>
  cnf === undefined
    ? passed('binding', 'no cnf')
    : failed({
        cause: 'binding',
        claim: 'cnf',
        expected: 'no binding to a key',
        got: kindOf(cnf),
        remedy: 'switch off DPoP or certificate-bound tokens for this client at the issuer',
      })

/** Returns a wall clock time in seconds as ISO 8601; a number outside of the range of `Date` unchanged. */
const instant = (seconds: number): string => {
  const date = new Date(Math.round(seconds) * 1_000)
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString()
}

/** Returns the scopes of `scope` ([RFC 9068]) or `scp`, which some issuers use. */
const scopesOf = ({ scope, scp }: Claims): readonly string[] =>
  textsOf(scope ?? scp)
    .flatMap((text) => text.split(' '))
    .filter((word) => word !== '')

/** Returns the toolsets of all matching rules, in their order; empty: no rule matches; `undefined`: no rules, so any toolset. */
const toolsetsOf = (claims: Claims, map: readonly ClaimRule[], issuer: string): readonly string[] | undefined =>
  map.length === 0
    ? undefined
    : [...new Set(map.filter((rule) => holds(rule, claims, issuer)).flatMap(({ toolsets }) => toolsets))]

const holds = (rule: ClaimRule, claims: Claims, issuer: string): boolean => {
  const { claim, has, is } = rule
  if (rule.issuer !== undefined && rule.issuer !== issuer) return false
  const value = claimValue(claims, claim)
  if (is !== undefined) return value === is || ((typeof value === 'number' || typeof value === 'boolean') && String(value) === is)
  if (has === undefined) return false
  const wanted = withoutSlash(has)
  const words = typeof value === 'string' ? [value, ...value.split(' ')] : textsOf(value)
  return words.some((word) => withoutSlash(word) === wanted)
}

/** Removes the leading slash of Keycloak's group paths: `/dev` is the group `dev`, `/team/dev` is not. */
const withoutSlash = (name: string): string => (name.startsWith('/') ? name.slice(1) : name)

const MOST_NAMES = 50

/** Returns the refusal if no rule matches, with the kinds of the rules' claims and the names of all claims. No values: they are personal. */
const unmappedRefusal = (claims: Claims, map: readonly ClaimRule[]): TokenRefusal => {
  const kinds = new Map(map.map(({ claim }) => [shownPath(claim), kindOf(claimValue(claims, claim))]))
  // Cast: the caller has rules, since none of them matches.
  const [[first, kind], ...others] = [...kinds] as [[string, string], ...[string, string][]]
  const names = Object.keys(claims)
    .slice(0, MOST_NAMES)
    .map((name) => name.slice(0, 100))
  return {
    cause: 'toolsets',
    claim: first,
    expected: 'a value that a rule of auth.map names',
    got: [kind, ...others.map(([claim, other]) => `${claim} is ${other}`)].join(', and ').slice(0, 500),
    remedy: `add a rule to auth.map, or the claim to access tokens at the issuer; the token has the claims ${names.join(', ')}`,
  }
}

const textsOf = (value: unknown): readonly string[] =>
  (isList(value) ? value : [value]).filter((text) => typeof text === 'string')
