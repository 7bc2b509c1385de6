/**
 * All inventories merged under exposed names, in order, with both directions of the mapping. Immutable; depends on its inputs alone.
 * Configuration order decides which server owns a name, also while the owner is down and known only from storage: no other server
 * takes over a name that a host has approved (BRIDGING 4.2, 4.4).
 */
import { runsToolsAsTasks } from '../wire/protocol/extensions.ts'
import type { Curation } from './curation.ts'
import type { Entry, Inventory, LeftOut, ListKind } from './inventory.ts'
import { uriMode } from './names/naming.ts'
import type { NamingOptions } from './names/naming.ts'
import type { UriTemplate } from './names/templates.ts'

/** The options of a server that the catalog reads. `ServerOptions` adds those for reaching it. */
export interface CatalogServer {
  /** `^[a-z][a-z0-9-]{0,19}$`, unique: used in paths, logs, state. */
  readonly key: string
  /** Prefix of exposed names; the key unless configured. */
  readonly prefix: string
  /** For labels and messages; the key unless configured. Never from serverInfo. */
  readonly displayName: string
  /** Exposed name by original name (`alias`); overrides every rule of naming. */
  readonly alias: Readonly<Record<string, string>>
  readonly curation: Curation | undefined
  /** `namespaced`: `<prefix>+<uri>`; `identity`: unchanged. */
  readonly uris: 'namespaced' | 'identity'
  readonly unaliasArguments: boolean
  readonly decorateTitles: boolean
  readonly instructions: boolean
  readonly apps: boolean
  readonly trusted: boolean | undefined
  /** Words by which toolsets choose servers. */
  readonly tags: readonly string[]
}

export interface CatalogSource {
  readonly server: CatalogServer
  /** `undefined`: not read yet, and none is stored. */
  readonly inventory: Inventory | undefined
}

/** One entry under its exposed name. */
export interface Exposed {
  readonly server: CatalogServer
  /** Place of the server in the configuration. */
  readonly position: number
  readonly entry: Entry
  /** Exposed name, URI or URI template. */
  readonly exposed: string
}

/** The part of one source in a merged list. */
export interface Part {
  /** The list of its inventory. */
  readonly entries: readonly Entry[]
  /** Its rows as listed. */
  readonly rows: readonly Exposed[]
  /** No other server affects the exposed forms: the rows can be taken over unless another server claims one of them. */
  readonly isOwn: boolean
}

/** URIs and templates of one server that hosts must not reach. */
export interface Refused {
  readonly uris: ReadonlySet<string>
  readonly templates: readonly UriTemplate[]
}

export interface Problem {
  /** `duplicate`: two entries with one exposed name; the second is left out, or its URI gets a prefix. `case`: they differ by case only. */
  readonly kind: 'duplicate' | 'case'
  readonly message: string
}

export interface CatalogOptions extends NamingOptions {
  /** Whether hosts see which tools may be called as tasks; absent: they do. */
  readonly tasks?: boolean
  /** Whether hosts see `outputSchema`; absent: they do. */
  readonly outputSchemas?: boolean
}

export interface Catalog {
  /** In configuration order. */
  readonly sources: readonly CatalogSource[]
  readonly naming: CatalogOptions
  readonly byPrefix: ReadonlyMap<string, CatalogServer>
  /** In the order of lists (BRIDGING 4.3). */
  readonly lists: Readonly<Record<ListKind, readonly Exposed[]>>
  /** The same rows by source, in the order of `sources`. */
  readonly parts: Readonly<Record<ListKind, readonly Part[]>>
  /** By exposed name, URI or template. */
  readonly index: Readonly<Record<ListKind, ReadonlyMap<string, Exposed>>>
  readonly problems: readonly Problem[]
  readonly leftOut: readonly LeftOutOf[]
  /** URIs that a policy refuses to hosts, by server key. */
  readonly refused: ReadonlyMap<string, Refused>
}

/** An entry that a server offers and the catalog omits, with the key of the server. */
export interface LeftOutOf extends LeftOut {
  readonly server: string
}

/** The only server, if its URIs are exposed unchanged: it owns every URI. `undefined`: several servers, or prefixes. */
export const soleServer = ({ sources, naming }: Catalog): CatalogServer | undefined => {
  const server = sources.length === 1 ? sources[0]?.server : undefined
  return server !== undefined && uriMode(server, naming) === 'identity' ? server : undefined
}

/** Whether MCP Apps of this server are served: apps of an untrusted server could call tools of other servers (BRIDGING 3.16). */
export const servesApps = (server: CatalogServer, { sources }: Catalog): boolean =>
  server.apps && !(server.trusted === false && sources.length > 1)

/** Whether `execution` of a server's tools is valid: without the tasks capability it has no meaning. */
export const runsTasks = (source: CatalogSource | undefined, { naming }: Catalog): boolean =>
  naming.tasks !== false && runsToolsAsTasks(source?.inventory?.capabilities ?? {})
