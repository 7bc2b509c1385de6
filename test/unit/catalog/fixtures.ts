/** Servers, inventories and naming for the tests of the catalog. */
import type { CatalogServer, CatalogSource } from '../../../src/catalog/catalog.ts'
import type { Entry, Freshness, Inventory, ListKind } from '../../../src/catalog/inventory.ts'
import type { NamingOptions } from '../../../src/catalog/names/naming.ts'
import { Toolset } from '../../../src/catalog/view/toolset.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { toolsetOf } from '../../support/toolsets.ts'

export const ALWAYS: NamingOptions = { prefix: 'always', maxNameLength: 48 }
export const NEVER: NamingOptions = { prefix: 'never', maxNameLength: 48 }

export const serverOf = (key: string, changes: Partial<CatalogServer> = {}): CatalogServer => ({
  key,
  prefix: key,
  displayName: key,
  alias: {},
  curation: undefined,
  uris: 'namespaced',
  unaliasArguments: true,
  decorateTitles: false,
  instructions: true,
  apps: true,
  trusted: undefined,
  tags: [],
  ...changes,
})

export const entryOf = (original: string, json: string | object): Entry => ({
  original,
  raw: Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)),
  paramHeaders: [],
})

export const toolOf = (name: string, more: object = {}): Entry =>
  entryOf(name, { name, ...more, inputSchema: { type: 'object' } })
export const resourceOf = (uri: string): Entry => entryOf(uri, { uri, name: 'r' })
export const templateOf = (uriTemplate: string): Entry => entryOf(uriTemplate, { uriTemplate, name: 't' })
export const promptOf = (name: string): Entry => entryOf(name, { name })

const FRESH: Freshness = { receivedAtMs: 0, ttlMs: 60_000, scope: 'public' }

export const inventoryOf = (
  lists: Partial<Record<ListKind, Entry[]>>,
  revision: Revision = '2026-07-28',
  instructions?: string,
): Inventory => ({
  revision,
  capabilities: { tasks: { requests: { tools: { call: {} } } } },
  instructions,
  lists: { tools: [], resources: [], templates: [], prompts: [], ...lists },
  freshness: { tools: FRESH, resources: FRESH, templates: FRESH, prompts: FRESH },
  leftOut: [],
  findings: [],
  warnings: [],
  digest: '',
})

export const sourceOf = (
  server: CatalogServer | string,
  lists: Partial<Record<ListKind, Entry[]>>,
  revision?: Revision,
): CatalogSource => ({
  server: typeof server === 'string' ? serverOf(server) : server,
  inventory: inventoryOf(lists, revision),
})

/** What sees these servers alone. */
export const seeing = (...servers: string[]): { readonly toolset: Toolset } => ({
  toolset: new Toolset([toolsetOf({ servers }, { name: servers.join('-') })]),
})
