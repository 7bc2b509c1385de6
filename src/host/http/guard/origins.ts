/** The allowed values of `Host` and `Origin`, against DNS rebinding (T-01; BRIDGING 5.1 row 1). */

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

export interface OriginRules {
  /** Host names besides the loopback names: lower case, without port. */
  readonly allowedHosts: ReadonlySet<string>
  /** Exact origins of web pages. */
  readonly allowedOrigins: ReadonlySet<string>
}

/** Whether a `Host` header is an allowed name with an optional port. */
export const isAllowedHost = (header: string | undefined, rules: OriginRules): boolean => {
  const name = hostName(header)
  return name !== undefined && (LOOPBACK.has(name) || rules.allowedHosts.has(name))
}

/** Whether an `Origin` header is absent (not a browser), a listed origin, or a page of this machine. */
export const isAllowedOrigin = (header: string | undefined, rules: OriginRules): boolean => {
  if (header === undefined || rules.allowedOrigins.has(header)) return true
  const match = /^https?:\/\/([^/?#]*)$/.exec(header)
  const name = hostName(match?.[1])
  return name !== undefined && LOOPBACK.has(name)
}

const hostName = (header: string | undefined): string | undefined =>
  /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::\d{1,5})?$/.exec((header ?? '').toLowerCase())?.[1]
