/** The rows of one catalog that a caller sees: decided once per catalog, looked up by lists, routes and everything else. */
import type { Catalog, CatalogServer, CatalogSource, Exposed } from '../catalog.ts'
import type { Grants } from './grants.ts'
import { holds } from '../hints.ts'
import { LIST_KINDS } from '../inventory.ts'
import type { Entry, ListKind } from '../inventory.ts'
import { uriMode } from '../names/naming.ts'
import type { Toolset } from './toolset.ts'
import { exposeListed } from '../names/uris.ts'

interface Limits {
  readonly toolset: Toolset | undefined
  readonly grants: Grants | undefined
}

export class Shown {
  readonly #catalog: Catalog
  readonly #limits: Limits
  readonly #entries: ReadonlyMap<Entry, Exposed>
  readonly #servers: ReadonlySet<string>

  constructor(catalog: Catalog, limits: Limits) {
    this.#catalog = catalog
    this.#limits = limits
    const rows = LIST_KINDS.flatMap((kind) => catalog.lists[kind].filter((row) => isShown(kind, row, limits)))
    this.#entries = new Map(rows.map((row) => [row.entry, row]))
    const listed = new Set(rows.map(({ server }) => server.key))
    const seen = catalog.sources.filter((source) => listed.has(source.server.key) || this.#mayHaveMore(source))
    this.#servers = new Set(seen.map(({ server }) => server.key))
  }

  has(entry: Entry): boolean {
    return this.#entries.has(entry)
  }

  /** Its exposed name under `/mcp`, which toolsets refer to. */
  exposedOf(entry: Entry): string | undefined {
    return this.#entries.get(entry)?.exposed
  }

  /** Whether anything of the server is shown. */
  hasServer(key: string): boolean {
    return this.#servers.has(key)
  }

  /** Whether an unlisted URI of the server is shown. */
  hasUri(server: CatalogServer, original: string): boolean {
    const { toolset, grants } = this.#limits
    if (grants?.reads(server.key) === false) return false
    if (toolset === undefined) return true
    const isNamespaced = uriMode(server, this.#catalog.naming) === 'namespaced'
    return toolset.showsUri(server, isNamespaced ? exposeListed(server.prefix, original) : original)
  }

  /** Whether unlisted URIs, or anything of a server whose inventory is unknown, may be shown. */
  #mayHaveMore({ server, inventory }: CatalogSource): boolean {
    const { toolset, grants } = this.#limits
    const { naming } = this.#catalog
    if (grants?.reads(server.key) === false) return false
    if (toolset === undefined) return true
    return inventory === undefined ? toolset.mayHold(server, naming) : toolset.mayHoldUris(server, naming)
  }
}

const isShown = (kind: ListKind, row: Exposed, { toolset, grants }: Limits): boolean => {
  if (toolset?.shows(kind, row) === false) return false
  return grants === undefined || (isWrite(kind, row, toolset) ? grants.writes(row.server.key) : grants.reads(row.server.key))
}

/** Whether a call needs the write scope: a call of a tool that is not known to read only. */
export const isWrite = (kind: ListKind, row: Exposed, toolset: Toolset | undefined): boolean =>
  kind === 'tools' && !holds('readOnlyHint', row, toolset?.overrideOf(row.exposed)?.annotations)
