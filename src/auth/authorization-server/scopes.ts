/** The scopes to request (BRIDGING 6.2.6; B247), separated by spaces; `undefined`: the parameter is omitted. */

export interface ScopeSources {
  /** Of the configuration, which overrides all other sources. */
  readonly configured: readonly string[] | undefined
  /** Of the challenge. */
  readonly challenged: string | undefined
  /** `scopes_supported` of the protected resource. */
  readonly ofResource: readonly string[] | undefined
  /** `scopes_supported` of the authorization server. */
  readonly ofIssuer: readonly string[] | undefined
  /** Requested before: stepping up keeps these scopes. */
  readonly before: string | undefined
  /** `false`: `offline_access` is requested only if the configuration names it. */
  readonly offline?: boolean
}

/** Chooses the scopes. Requests `offline_access` if the authorization server lists it, or the configuration names it. */
export const chooseScopes = (sources: ScopeSources): string | undefined => {
  const { configured, challenged, ofResource, ofIssuer, before, offline = true } = sources
  const first = challenged ?? (ofResource === undefined ? undefined : ofResource.join(' '))
  const wanted = configured === undefined ? union(before, first) : union(configured.join(' '))
  const isNamed = configured?.includes('offline_access') === true
  if (isNamed || (offline && ofIssuer?.includes('offline_access') === true)) return union(wanted, 'offline_access')
  const allowed = wanted?.split(' ').filter((scope) => scope !== 'offline_access')
  return union(...(allowed ?? []))
}

/** Returns each scope once, in the order of first mention. */
export const union = (...scopes: readonly (string | undefined)[]): string | undefined => {
  const all = new Set(scopes.flatMap((text) => text?.split(' ') ?? []).filter((scope) => scope !== ''))
  return all.size === 0 ? undefined : [...all].join(' ')
}
