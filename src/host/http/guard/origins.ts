/** Which `Host` and `Origin` may come in: the guard against DNS rebinding, before anything else (T-01; BRIDGING 5.1 row 1). */

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

export interface OriginRules {
  /** Host names beside the loopback ones, lower case, without port. */
  readonly allowedHosts: ReadonlySet<string>
  /** Exact origins of browsers. */
  readonly allowedOrigins: ReadonlySet<string>
}

/** `Host` as one name and an optional port, nothing else. */
export const isAllowedHost = (header: string | undefined, rules: OriginRules): boolean => {
  const name = hostName(header)
  return name !== undefined && (LOOPBACK.has(name) || rules.allowedHosts.has(name))
}

/** Absent: not a browser. Present: a listed origin, or a page of this very machine. */
export const isAllowedOrigin = (header: string | undefined, rules: OriginRules): boolean => {
  if (header === undefined || rules.allowedOrigins.has(header)) return true
  const match = /^https?:\/\/([^/?#]*)$/.exec(header)
  const name = hostName(match?.[1])
  return name !== undefined && LOOPBACK.has(name)
}

const hostName = (header: string | undefined): string | undefined =>
  /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::\d{1,5})?$/.exec((header ?? '').toLowerCase())?.[1]
