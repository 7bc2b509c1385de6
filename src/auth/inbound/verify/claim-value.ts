import { isJsonObject } from '../../../values/json-object.ts'

/** Claims of a JWT or of an introspection response. */
export type Claims = Readonly<Record<string, unknown>>

/** A name, or names joined with dots, or a list of names if a name contains dots (`["resource_access","my.client","roles"]`). */
export type ClaimPath = string | readonly string[]

/** Returns a claim. Tries the whole text as a name (`https://example.com/groups`) before it is split (`realm_access.roles`). */
export const claimValue = (claims: Claims, claim: ClaimPath): unknown => {
  if (typeof claim === 'string' && Object.hasOwn(claims, claim)) return claims[claim]
  let value: unknown = claims
  for (const step of typeof claim === 'string' ? claim.split('.') : claim) {
    if (!isJsonObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

/** Returns the path as it is written in the configuration. */
export const shownPath = (claim: ClaimPath): string => (typeof claim === 'string' ? claim : JSON.stringify(claim))
