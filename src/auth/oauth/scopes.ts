/** Which scopes to ask for (BRIDGING 6.2.6; B247). Scopes are texts with spaces between; `undefined`: the parameter is left out. */

export interface ScopeSources {
  /** Of the configuration: wins over what the server would like. */
  readonly configured: readonly string[] | undefined
  /** Of the challenge. */
  readonly challenged: string | undefined
  /** `scopes_supported` of the protected resource. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server. */
  readonly ofIssuer: readonly string[] | undefined
  /** What was asked for before: nothing of it is lost by stepping up. */
  readonly before: string | undefined
}

/** `offline_access` is asked for where the authorization server lists it, and nowhere else. */
export const chooseScopes = ({ configured, challenged, ofResource, ofIssuer, before }: ScopeSources): string | undefined => {
  const first = configured?.join(' ') ?? challenged ?? (ofResource === undefined ? undefined : ofResource.join(' '))
  const wanted = union(before, first, configured === undefined ? undefined : challenged)
  const mayStay = ofIssuer?.includes('offline_access') === true
  const all = union(wanted, mayStay ? 'offline_access' : undefined)?.split(' ')
  const asked = all?.filter((scope) => scope !== 'offline_access' || mayStay)
  return asked === undefined || asked.length === 0 ? undefined : asked.join(' ')
}

/** Every scope once, in the order of first mention. */
export const union = (...scopes: readonly (string | undefined)[]): string | undefined => {
  const all = new Set(scopes.flatMap((text) => text?.split(' ') ?? []).filter((scope) => scope !== ''))
  return all.size === 0 ? undefined : [...all].join(' ')
}
