/** Which scopes to ask for (BRIDGING 6.2.6; B247). Scopes are texts with spaces between; `undefined`: the parameter is left out. */

export interface ScopeSources {
  /** Of the configuration: the last word, whatever the server would like. */
  readonly configured: readonly string[] | undefined
  /** Of the challenge. */
  readonly challenged: string | undefined
  /** `scopes_supported` of the protected resource. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server. */
  readonly ofIssuer: readonly string[] | undefined
  /** What was asked for before: nothing of it is lost by stepping up. */
  readonly before: string | undefined
  /** `false`: `offline_access` is never requested on our own account. */
  readonly offline?: boolean
}

/** `offline_access` is requested where the authorization server lists it, and elsewhere only where the configuration names it. */
export const chooseScopes = (sources: ScopeSources): string | undefined => {
  const { configured, challenged, ofResource, ofIssuer, before, offline = true } = sources
  const first = challenged ?? (ofResource === undefined ? undefined : ofResource.join(' '))
  const wanted = configured === undefined ? union(before, first) : union(configured.join(' '))
  const isNamed = configured?.includes('offline_access') === true
  const mayStay = isNamed || (offline && ofIssuer?.includes('offline_access') === true)
  const all = union(wanted, mayStay ? 'offline_access' : undefined)?.split(' ')
  const asked = all?.filter((scope) => scope !== 'offline_access' || mayStay)
  return asked === undefined || asked.length === 0 ? undefined : asked.join(' ')
}

/** Every scope once, in the order of first mention. */
export const union = (...scopes: readonly (string | undefined)[]): string | undefined => {
  const all = new Set(scopes.flatMap((text) => text?.split(' ') ?? []).filter((scope) => scope !== ''))
  return all.size === 0 ? undefined : [...all].join(' ')
}
