/** The URL under which hosts and browsers reach the listener behind a proxy. */
import type { HostOptions } from '../options.ts'
import type { OriginRules } from './guard/origins.ts'

/** Returns the configured public URL, or with OAuth that of its audience; `undefined`: none is known. */
export const publicUrlOf = ({ publicUrl, auth, path }: HostOptions): string | undefined => {
  if (publicUrl !== undefined || auth?.oauth === undefined) return publicUrl
  const { origin, pathname } = new URL(auth.oauth.audience)
  return origin + pathname.slice(0, -path.length)
}

/** Returns the path prefix of a proxy, such as `/gateway`; empty: none. */
export const prefixOf = (options: HostOptions): string => {
  const url = publicUrlOf(options)
  return url === undefined ? '' : new URL(url).pathname.replace(/\/$/, '')
}

/** Returns the allowed hosts and origins: the configured ones and those of the public URL. */
export const originRulesOf = (options: HostOptions): OriginRules => {
  const { allowedHosts, allowedOrigins } = options
  const publicUrl = publicUrlOf(options)
  const own = publicUrl === undefined ? undefined : new URL(publicUrl)
  return {
    allowedHosts: new Set([...allowedHosts, ...(own === undefined ? [] : [own.hostname])].map((host) => host.toLowerCase())),
    allowedOrigins: new Set([...allowedOrigins, ...(own === undefined ? [] : [own.origin])]),
  }
}
