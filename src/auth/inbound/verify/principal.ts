/**
 * The principal of a verified token (T-39): issuer and subject. A token without a subject identifies its client only if it is certainly a
 * machine's token, because several people may use one client.
 *
 * `client_id` without `sub` proves a machine in a JWT, because issuers add `sub` for people. It proves nothing in an introspection response,
 * where [RFC 7662] 2.2 names the client of every token. `azp` never proves a machine.
 */
import { claimValue, shownPath } from './claim-value.ts'
import type { ClaimPath, Claims } from './claim-value.ts'
import { kindOf } from '../../token-refusal.ts'
import type { TokenRefusal } from '../../token-refusal.ts'

/** The source of claims: a signed token or an introspection response. */
export type ClaimSource = 'jwt' | 'introspection'

/** `refused`: why the token identifies no caller, without values of the token. */
export type Principal = { readonly name: string } | { readonly refused: TokenRefusal }

/** The claim that names the caller by default. */
export const SUBJECT = 'sub'

const LONGEST_NAME = 255
const NAMED = 'the name of the caller'
const REMEDY = 'have the issuer put "sub" into access tokens, or name another claim with auth.oauth.subject'

/** Claims that mark a token of a client-credentials grant: Auth0; Entra ID; UAA and others; WSO2; PingAM. */
const MACHINE_MARKS: readonly (readonly [claim: string, value: string])[] = [
  ['gty', 'client-credentials'],
  ['idtyp', 'app'],
  ['grant_type', 'client_credentials'],
  ['aut', 'APPLICATION'],
  ['grantName', 'client_credentials'],
]

/** Claims that name a machine's client: [RFC 9068], OpenID Connect, Okta, Entra ID. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'cid', 'appid'] as const

/** Claims about a person, or about a person's session or sign-in. */
const PERSON_CLAIMS = [
  'sid',
  'session_state',
  'auth_time',
  'amr',
  'nonce',
  'at_hash',
  'act',
  'may_act',
  'preferred_username',
  'username',
  'user_name',
  'user_id',
  'uid',
  'name',
  'given_name',
  'family_name',
  'nickname',
  'unique_name',
  'upn',
  'email',
  'phone_number',
  'login_hint',
] as const

/** Returns the principal. `subject`: the claim that names the caller. The issuer is part of the name, since subjects are per issuer. */
export const principalOfClaims = (claims: Claims, issuer: string, subject: ClaimPath, source: ClaimSource): Principal => {
  const value = claimValue(claims, subject)
  if (value === undefined) return machineOf(claims, issuer, subject, source)
  if (typeof value !== 'string' || value === '') return refusedFor(subject, 'a text that is not empty', kindOf(value))
  if (value.length > LONGEST_NAME)
    return refusedFor(subject, `at most ${LONGEST_NAME} characters`, `${value.length} characters long`)
  return { name: JSON.stringify(subject === SUBJECT ? [issuer, 'sub', value] : [issuer, 'claim', subject, value]) }
}

const refusedFor = (subject: ClaimPath, expected: string, got: string): Principal => ({
  refused: { cause: 'caller', claim: shownPath(subject), expected, got, remedy: REMEDY },
})

const machineOf = (claims: Claims, issuer: string, subject: ClaimPath, source: ClaimSource): Principal => {
  const person = PERSON_CLAIMS.find((claim) => claims[claim] !== undefined)
  if (person !== undefined) return refusedFor(subject, NAMED, `missing, and "${person}" says that it is not a machine's token`)
  const isMarked = MACHINE_MARKS.some(([claim, value]) => [claims[claim]].flat().includes(value))
  const { sub, client_id: named } = claims
  // Without a person, issuers that always write `sub` repeat the client there (RFC 9068, 2.2).
  const isClientOnly = source === 'jwt' && isName(named) && (sub === undefined || sub === named)
  const client = CLIENT_CLAIMS.map((claim) => claims[claim]).find(isName)
  if (client !== undefined && (isMarked || isClientOnly)) return { name: JSON.stringify([issuer, 'client', client]) }
  return refusedFor(subject, NAMED, "missing, and nothing says that it is a machine's token")
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME
