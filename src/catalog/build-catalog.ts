/** Builds the catalog from inventories: owners of names, omitted entries, refused URIs (BRIDGING 4.2 to 4.4). */
import type { Catalog, CatalogOptions, CatalogSource } from './catalog.ts'
import { mergeList } from './merge.ts'
import { indexRefused } from './refused.ts'

/**
 * Merges inventories; `sources` in configuration order, keys and prefixes unique. Unchanged lists are taken over from the catalog
 * `before`, which saves work and does not change the result.
 */
export const buildCatalog = (sources: readonly CatalogSource[], naming: CatalogOptions, before?: Catalog): Catalog => {
  const byPrefix = new Map(sources.map(({ server }) => [server.prefix, server]))
  const tools = mergeList('tools', sources, naming, before)
  const resources = mergeList('resources', sources, naming, before)
  const templates = mergeList('templates', sources, naming, before)
  const prompts = mergeList('prompts', sources, naming, before)
  const merged = [tools, resources, templates, prompts]
  const own = sources.flatMap(({ server, inventory }) =>
    (inventory?.leftOut ?? []).map((left) => ({ ...left, server: server.key })),
  )
  return {
    sources,
    naming,
    byPrefix,
    lists: { tools: tools.rows, resources: resources.rows, templates: templates.rows, prompts: prompts.rows },
    parts: { tools: tools.parts, resources: resources.parts, templates: templates.parts, prompts: prompts.parts },
    index: { tools: tools.index, resources: resources.index, templates: templates.index, prompts: prompts.index },
    problems: merged.flatMap((list) => list.problems),
    leftOut: [...own, ...merged.flatMap((list) => list.leftOut)],
    refused: indexRefused(own),
  }
}
