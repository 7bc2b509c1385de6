/**
 * URIs that a policy refuses to hosts (`lock.on_change`). Reads are checked as well as lists, since a host can build the exposed form of
 * a URI. A refused template refuses all URIs that it matches, except those that a listed template matches, too.
 */
import type { Catalog, LeftOutOf, Refused } from './catalog.ts'
import { plainUri } from './names/plain-uri.ts'
import { matchesTemplate, parseTemplate } from './names/templates.ts'

/** Refused URIs by server key. */
export const indexRefused = (leftOut: readonly LeftOutOf[]): ReadonlyMap<string, Refused> => {
  const isUri = ({ kind, isRefused }: LeftOutOf): boolean => isRefused === true && (kind === 'resources' || kind === 'templates')
  const byServer = Map.groupBy(leftOut.filter(isUri), ({ server }) => server)
  return new Map(
    [...byServer].map(([key, all]) => {
      const templates = all.flatMap(({ kind, name }) => (kind === 'templates' ? (parseTemplate(name) ?? []) : []))
      return [key, { uris: new Set(all.flatMap(({ name }) => [name, plainUri(name) ?? name])), templates }]
    }),
  )
}

/**
 * Whether the URI or template of the server is refused to hosts. A server may treat several spellings as one, so the plain spelling counts
 * as well, and with `..` a URI may mean any other.
 */
export const isRefusedUri = ({ refused, lists }: Catalog, serverKey: string, uri: string): boolean => {
  const own = refused.get(serverKey)
  if (own === undefined) return false
  const plain = plainUri(uri)
  if (plain === undefined || own.uris.has(uri) || own.uris.has(plain)) return true
  if (!own.templates.some((template) => matchesTemplate(template, uri) || matchesTemplate(template, plain))) return false
  return !lists.templates.some(({ server, entry }) => {
    const template = server.key === serverKey ? parseTemplate(entry.original) : undefined
    return template !== undefined && matchesTemplate(template, uri)
  })
}
