/** The common catalog with the own lists of one caller in place of the common lists of some servers. */
import { buildCatalog } from '../../catalog/build-catalog.ts'
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'

/** `own`: inventories before curation, by server key. */
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
