/** Everybody's catalog with what some servers list to one caller alone in place of the common lists. */
import { buildCatalog } from '../../catalog/build-catalog.ts'
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'

/** `own`: inventories as the servers said them, by server key. */
export const withOwnLists = (
  from: Catalog,
  own: ReadonlyMap<string, Inventory>,
  curator: Curator,
  options: CatalogOptions,
): Catalog => {
  const sources = from.sources.map(({ server, inventory }) => {
    const listed = own.get(server.key)
    return { server, inventory: listed === undefined ? inventory : curator.curate(listed, server.curation) }
  })
  return buildCatalog(sources, options, from)
}
