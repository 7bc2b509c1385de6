/** Merges one list of all servers under exposed names: decides owners and order (BRIDGING 4.2 to 4.4). */
import type { Catalog, CatalogServer, CatalogSource, Exposed, LeftOutOf, Part, Problem } from './catalog.ts'
import type { Entry, Inventory, ListKind } from './inventory.ts'
import { exposeNames, uriMode } from './names/naming.ts'
import type { NamingOptions } from './names/naming.ts'
import { exposeListed, prefixUri, restoreUri } from './names/uris.ts'

export interface MergedList {
  readonly rows: readonly Exposed[]
  /** In the order of the sources. */
  readonly parts: readonly Part[]
  readonly index: ReadonlyMap<string, Exposed>
  readonly problems: readonly Problem[]
  readonly leftOut: readonly LeftOutOf[]
}

/**
 * Merges one list; `sources` in configuration order, which decides the owner of a duplicate. An unchanged source keeps its rows from the
 * catalog `before`.
 */
export const mergeList = (
  kind: ListKind,
  sources: readonly CatalogSource[],
  naming: NamingOptions,
  before?: Catalog,
): MergedList => {
  const rows: Exposed[] = []
  const index = new Map<string, Exposed>()
  const problems: Problem[] = []
  const leftOut: LeftOutOf[] = []
  const prefixes = new Set(sources.length === 1 ? [] : sources.map(({ server }) => server.prefix))

  const claim = ({ server }: CatalogSource, position: number, inventory: Inventory): Part => {
    const reportedBefore = problems.length + leftOut.length
    const leave = (name: string, reason: string): void => void leftOut.push({ kind, name, reason, server: server.key })
    const entries = inListOrder(inventory, kind, leave)
    const exposedOf = exposure(kind, server, entries, naming, (prefix) => prefixes.has(prefix))
    const claimed = new Map<Entry, Exposed>()
    for (const entry of namedFirst(server, entries)) {
      const wished = exposedOf(entry.original)
      const owner = index.get(wished)
      if (owner !== undefined) problems.push(duplicate(kind, owner, server, entry))
      const exposed = owner !== undefined && isUriList(kind) ? prefixUri(server.prefix, entry.original) : wished
      const holder = index.get(exposed)
      if (holder !== undefined) {
        leave(
          entry.original,
          isNamedBefore(kind, holder, server) ? givenTo(holder) : `"${exposed}" belongs to ${holder.server.key}`,
        )
        continue
      }
      const row: Exposed = { server, position, entry, exposed }
      index.set(exposed, row)
      claimed.set(entry, row)
    }
    const isOwn =
      problems.length + leftOut.length === reportedBefore && !(isUriList(kind) && uriMode(server, naming) === 'identity')
    return { entries: inventory.lists[kind], rows: entries.flatMap((entry) => claimed.get(entry) ?? []), isOwn }
  }

  const parts = sources.map((source, position): Part => {
    const { inventory } = source
    if (inventory === undefined) return NOTHING
    const kept = keptPart(kind, source, position, naming, before)
    const isFree = kept?.rows.every(({ exposed }) => !index.has(exposed)) === true
    if (isFree) for (const row of kept.rows) index.set(row.exposed, row)
    const part = isFree ? kept : claim(source, position, inventory)
    for (const row of part.rows) rows.push(row)
    return part
  })
  return { rows, parts, index, problems: [...problems, ...sameButCase(kind, rows, index)], leftOut }
}

const NOTHING: Part = { entries: [], rows: [], isOwn: false }

/** The part of the source in the catalog `before`, if it can be taken over. */
const keptPart = (
  kind: ListKind,
  { server, inventory }: CatalogSource,
  position: number,
  naming: NamingOptions,
  before: Catalog | undefined,
): Part | undefined => {
  const source = before?.sources[position]
  const part = before?.parts[kind][position]
  const isSame = before?.naming === naming && source?.server === server && source.inventory?.revision === inventory?.revision
  return isSame && part?.isOwn === true && part.entries === inventory?.lists[kind] ? part : undefined
}

/** Compares by code points: UTF-16 units have the same order, except that surrogates sort below U+E000. */
export const compareNames = (a: string, b: string): number => {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const one = a.charCodeAt(at)
    const two = b.charCodeAt(at)
    if (one !== two) return one >= 0xd800 && two >= 0xd800 ? aboveSurrogates(one) - aboveSurrogates(two) : one - two
  }
  return a.length - b.length
}

const aboveSurrogates = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit + 0x2000)

/** A server's entries in its own order (B292), without repeated ones. */
const inListOrder = (inventory: Inventory, kind: ListKind, leave: (name: string, reason: string) => void): Entry[] => {
  const byName = new Map<string, Entry>()
  for (const entry of inventory.lists[kind]) {
    if (byName.has(entry.original)) leave(entry.original, 'the server lists it twice')
    else byName.set(entry.original, entry)
  }
  return [...byName.values()]
}

/** Entries with a configured name first: it takes precedence over the same name made by the rules. */
const namedFirst = (server: CatalogServer, entries: readonly Entry[]): Entry[] => {
  const rank = (entry: Entry): number => (Object.hasOwn(server.alias, entry.original) ? 0 : entry.renamed === undefined ? 2 : 1)
  return entries.toSorted((a, b) => rank(a) - rank(b))
}

const isUriList = (kind: ListKind): boolean => kind === 'resources' || kind === 'templates'

/** Returns the exposed form of an original of one list, before conflicts with other servers. */
const exposure = (
  kind: ListKind,
  server: CatalogServer,
  entries: readonly Entry[],
  naming: NamingOptions,
  isPrefix: (prefix: string) => boolean,
): ((original: string) => string) => {
  if (!isUriList(kind)) {
    const originals = entries.map((entry) => entry.original)
    const renamed = new Map(entries.flatMap((entry) => (entry.renamed === undefined ? [] : [[entry.original, entry.renamed]])))
    const names = exposeNames(server, originals, naming, renamed)
    return (original) => names.get(original) ?? original
  }
  // A URI that looks like an exposed form would be taken for one, so it gets the prefix in spite of `identity`.
  if (uriMode(server, naming) === 'identity')
    return (uri) => (restoreUri(uri, isPrefix) === undefined ? uri : prefixUri(server.prefix, uri))
  return (uri) => exposeListed(server.prefix, uri)
}

const duplicate = (list: ListKind, owner: Exposed, server: CatalogServer, entry: Entry): Problem => {
  const outcome = isUriList(list) ? 'is exposed with its prefix' : 'is left out'
  const reason = isNamedBefore(list, owner, server)
    ? givenTo(owner)
    : `"${owner.exposed}" belongs to ${owner.server.key}, which is configured first`
  return { kind: 'duplicate', message: `${list}: ${reason}; "${entry.original}" of ${server.key} ${outcome}` }
}

/** Whether the same server has the name for another entry: then the configuration gave it that name (`namedFirst`). */
const isNamedBefore = (list: ListKind, owner: Exposed, server: CatalogServer): boolean =>
  !isUriList(list) && owner.server.key === server.key

const givenTo = ({ exposed, entry, server }: Exposed): string =>
  `"${exposed}" is configured for "${entry.original}" of ${server.key}`

const sameButCase = (list: ListKind, rows: readonly Exposed[], index: ReadonlyMap<string, Exposed>): Problem[] => {
  if (isUriList(list) || !hasSameButCase(rows, index)) return []
  const problems: Problem[] = []
  const seen = new Map<string, Exposed>()
  for (const row of rows) {
    const { server, exposed } = row
    const first = seen.get(exposed.toLowerCase())
    if (first === undefined) {
      seen.set(exposed.toLowerCase(), row)
      continue
    }
    const message = `${list}: "${exposed}" of ${server.key} differs from "${first.exposed}" of ${first.server.key} only by case`
    problems.push({ kind: 'case', message })
  }
  return problems
}

/** Fast check, since there are rarely any: looks only at names with capitals. */
const hasSameButCase = (rows: readonly Exposed[], index: ReadonlyMap<string, Exposed>): boolean => {
  const lowered = new Set<string>()
  for (const { exposed } of rows) {
    const lower = exposed.toLowerCase()
    if (lower === exposed) continue
    if (lowered.has(lower) || index.has(lower)) return true
    lowered.add(lower)
  }
  return false
}
