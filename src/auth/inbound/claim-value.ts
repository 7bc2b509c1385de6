/** Reads one claim of a token. */

/** Claims of a JWT, or what introspection answered. */
export type Claims = Readonly<Record<string, unknown>>

/** A claim may have dots in its name (`https://example.com/groups`); else they lead into objects (`realm_access.roles`). */
export const claimValue = (claims: Claims, claim: string): unknown => {
  if (Object.hasOwn(claims, claim)) return claims[claim]
  let value: unknown = claims
  for (const step of claim.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step)) return undefined
    value = (value as Claims)[step]
  }
  return value
}
