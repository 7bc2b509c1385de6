/**
 * Why a token is refused, for the operator: the claim, the expected and the actual value, and the remedy. The host gets none of it.
 *
 * A refusal never contains the token, its signature or the name of its caller. Its other values may be of an unverified token, so they are
 * shortened and quoted.
 */

/** One check of a token. The table in `docs/authentication.md` has a row for each. */
export type Cause =
  | 'form'
  | 'issuer'
  | 'algorithm'
  | 'type'
  | 'key'
  | 'signature'
  | 'end'
  | 'beginning'
  | 'activity'
  | 'binding'
  | 'audience'
  | 'endpoint'
  | 'caller'
  | 'toolsets'

/** Why a token is refused. */
export interface TokenRefusal {
  readonly cause: Cause
  /** A claim or a header parameter; `token`: the whole token. */
  readonly claim: string
  readonly expected: string
  readonly got: string
  /** What to change, and where. */
  readonly remedy: string
}

/** One check and its result. */
export interface Check {
  readonly cause: Cause
  /** The accepted value; empty if the check failed. */
  readonly found: string
  /** `undefined`: the check succeeded. */
  readonly refusal: TokenRefusal | undefined
}

/** Returns a text such as `aud is "account", expected https://…; …`. */
export const sentenceOf = ({ claim, expected, got, remedy }: TokenRefusal): string =>
  `${claim} is ${got}, expected ${expected}; ${remedy}`

const LONGEST = 200

/** Returns the value of a claim as JSON, shortened, since it may be of any size. */
export const shownValue = (value: unknown): string => {
  if (value === undefined) return 'missing'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`
}

/** Returns the kind of a value, for claims whose value is not shown. */
export const kindOf = (value: unknown): string => {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
