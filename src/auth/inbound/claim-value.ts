/** Reads one claim of a token. */
import { isJsonObject } from '../../values/json-object.ts'

/** Claims of a JWT, or what introspection answered. */
export type Claims = Readonly<Record<string, unknown>>

/** A name, or a path of names with dots; or the steps of a path, where a name has dots (`["resource_access","my.client","roles"]`). */
export type ClaimPath = string | readonly string[]

/** A claim may have dots in its name (`https://example.com/groups`); else they lead into objects (`realm_access.roles`). */
export const claimValue = (claims: Claims, claim: ClaimPath): unknown => {
  if (typeof claim === 'string' && Object.hasOwn(claims, claim)) return claims[claim]
  let value: unknown = claims
  for (const step of typeof claim === 'string' ? claim.split('.') : claim) {
    if (!isJsonObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

/** As it is written in the configuration. */
export const shownPath = (claim: ClaimPath): string => (typeof claim === 'string' ? claim : JSON.stringify(claim))
