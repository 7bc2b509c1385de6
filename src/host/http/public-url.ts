/** The URL under which hosts and browsers reach the listener, where a proxy stands before it. */
import type { HostOptions } from '../options.ts'
import type { OriginRules } from './guard/origins.ts'

/** The public URL; with OAuth the origin of its audience. */
export const publicUrlOf = ({ publicUrl, auth, path }: HostOptions): string | undefined => {
  if (publicUrl !== undefined || auth?.oauth === undefined) return publicUrl
  const { origin, pathname } = new URL(auth.oauth.audience)
  return origin + pathname.slice(0, -path.length)
}

/** The path prefix of a proxy: `/gateway`, or nothing. */
export const prefixOf = (options: HostOptions): string => {
  const url = publicUrlOf(options)
  return url === undefined ? '' : new URL(url).pathname.replace(/\/$/, '')
}

/** The public name and origin are allowed without being listed. */
export const originRulesOf = (options: HostOptions): OriginRules => {
  const { allowedHosts, allowedOrigins } = options
  const publicUrl = publicUrlOf(options)
  const own = publicUrl === undefined ? undefined : new URL(publicUrl)
  return {
    allowedHosts: new Set([...allowedHosts, ...(own === undefined ? [] : [own.hostname])].map((host) => host.toLowerCase())),
    allowedOrigins: new Set([...allowedOrigins, ...(own === undefined ? [] : [own.origin])]),
  }
}
