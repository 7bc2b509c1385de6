/**
 * Why a token is refused, for the operator: the claim, what was expected, what it holds, and what to change. The host gets none of it.
 *
 * A refusal never holds the token, its signature or the name of its caller. What it does hold may come from an unverified token, so it
 * is shortened and quoted.
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

export interface Refusal {
  readonly cause: Cause
  /** A claim or a header parameter; `token` for the whole. */
  readonly claim: string
  readonly expected: string
  readonly got: string
  /** What to change, and where. */
  readonly remedy: string
}

/** One check and its result. */
export interface Check {
  readonly cause: Cause
  /** What was found, where the check succeeded. */
  readonly found: string
  /** `undefined`: the check succeeded. */
  readonly refusal: Refusal | undefined
}

/** `aud is "account", expected https://…; …`. */
export const sentenceOf = ({ claim, expected, got, remedy }: Refusal): string =>
  `${claim} is ${got}, expected ${expected}; ${remedy}`

const LONGEST = 200

/** A value of a claim as JSON, shortened: tokens are written by strangers. */
export const shownValue = (value: unknown): string => {
  if (value === undefined) return 'missing'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`
}

/** What kind of value it is, for claims whose value is not shown. */
export const kindOf = (value: unknown): string => {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
