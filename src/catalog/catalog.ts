/**
 * All inventories merged under exposed names, in order, with both directions of the mapping. Immutable, and a function of its
 * inputs alone. Configuration order decides which server owns a name, also while the owner is down and known only from storage:
 * no other server takes over a name that a host has approved (BRIDGING 4.2, 4.4).
 */
import { runsToolsAsTasks } from '../wire/protocol/extensions.ts'
import type { Curation } from './curation.ts'
import type { Entry, Inventory, LeftOut, ListKind } from './inventory.ts'
import { uriMode } from './names/naming.ts'
import type { NamingOptions } from './names/naming.ts'
import type { UriTemplate } from './names/templates.ts'

/** What the catalog needs to know of a configured server; each `ServerOptions` is one. */
export interface CatalogServer {
  readonly key: string
  readonly prefix: string
  readonly displayName: string
  /** Exposed name by original name; wins over every rule of naming. */
  readonly alias: Readonly<Record<string, string>>
  readonly curation: Curation | undefined
  readonly uris: 'namespaced' | 'identity'
  readonly unaliasArguments: boolean
  readonly decorateTitles: boolean
  readonly instructions: boolean
  readonly apps: boolean
  readonly trusted: boolean | undefined
  /** Words to choose servers by. */
  readonly tags: readonly string[]
}

export interface CatalogSource {
  readonly server: CatalogServer
  /** `undefined`: nothing is known of the server yet, not even from storage. */
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

/** What one source has in a merged list. */
export interface Part {
  /** As its inventory has them. */
  readonly entries: readonly Entry[]
  /** As they are listed. */
  readonly rows: readonly Exposed[]
  /** Every entry has the exposed form it is to have, which depends on nothing but its server: its rows hold until another claims one. */
  readonly isOwn: boolean
}

/** What of one server is kept from hosts. */
export interface Refused {
  readonly uris: ReadonlySet<string>
  readonly templates: readonly UriTemplate[]
}

export interface Problem {
  /** `duplicate`: two entries, one exposed name; the second is left out, or a URI takes its prefix. `case`: they differ by case only. */
  readonly kind: 'duplicate' | 'case'
  readonly list: ListKind
  readonly exposed: string
  /** Key of the server that keeps the name, and of the other one (which may be the same). */
  readonly owner: string
  readonly other: string
  readonly message: string
}

export interface CatalogOptions extends NamingOptions {
  /** Whether hosts are told which tools may be called as tasks; they are unless this is off. */
  readonly tasks?: boolean
}

export interface Catalog {
  /** In configuration order. */
  readonly sources: readonly CatalogSource[]
  readonly naming: CatalogOptions
  readonly byPrefix: ReadonlyMap<string, CatalogServer>
  /** In the order in which they are listed (BRIDGING 4.3). */
  readonly lists: Readonly<Record<ListKind, readonly Exposed[]>>
  /** The same rows by source, in the order of `sources`. */
  readonly parts: Readonly<Record<ListKind, readonly Part[]>>
  /** By exposed name, URI or template. */
  readonly index: Readonly<Record<ListKind, ReadonlyMap<string, Exposed>>>
  readonly problems: readonly Problem[]
  readonly leftOut: readonly LeftOutOf[]
  /** URIs that a policy keeps from hosts, by server key. */
  readonly refused: ReadonlyMap<string, Refused>
}

/** What a server offers and the catalog does not hold, with the key of the server. */
export interface LeftOutOf extends LeftOut {
  readonly server: string
}

/** The one server whose URIs are all exposed as they are, so that any URI is its; `undefined` if there are several, or prefixes. */
export const soleServer = ({ sources, naming }: Catalog): CatalogServer | undefined => {
  const server = sources.length === 1 ? sources[0]?.server : undefined
  return server !== undefined && uriMode(server, naming) === 'identity' ? server : undefined
}

/** Whether MCP Apps of this server are served: an untrusted one could reach the tools of the others (BRIDGING 3.16). */
export const servesApps = (server: CatalogServer, { sources }: Catalog): boolean =>
  server.apps && !(server.trusted === false && sources.length > 1)

/** Whether a server's word on its tools' `execution` holds: without the capability it means nothing, whatever it says. */
export const runsTasks = (source: CatalogSource | undefined, { naming }: Catalog): boolean =>
  naming.tasks !== false && runsToolsAsTasks(source?.inventory?.capabilities ?? {})
