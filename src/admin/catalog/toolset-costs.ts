/** The cost of all tools, or of those of one toolset, for a model. */
import type { Catalog } from '../../catalog/catalog.ts'
import { Toolsets } from '../../catalog/view/toolsets.ts'
import { Views } from '../../catalog/view/view.ts'
import type { Configuration } from '../../config/options.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** Number of tools, and estimated tokens. */
export interface Cost {
  readonly tools: number
  readonly tokens: number
}

export interface ToolsetCost extends Cost {
  /** Its limits; absent members are unlimited. */
  readonly budget: Partial<Cost>
  readonly isOver: boolean
  /** Hosts search its tools instead of listing them. */
  readonly isSearched: boolean
}

/** Costs by name, of this catalog under this configuration. */
export const toolsetCosts = ({ gateway }: Configuration, catalog: Catalog, views = new Views()): Map<string, ToolsetCost> => {
  const toolsets = new Toolsets(gateway.toolsets)
  return new Map(
    gateway.toolsets.map(({ name }) => {
      const toolset = toolsets.of({ server: undefined, toolset: name })
      const view = views.of(catalog, { revision: MODERN, toolset })
      const limits = Object.entries(view.toolset?.budget ?? {}).filter(([, most]) => Number.isFinite(most))
      const { cost, isOverBudget, isSearched } = view
      return [name, { ...cost, budget: Object.fromEntries(limits), isOver: isOverBudget, isSearched }]
    }),
  )
}
