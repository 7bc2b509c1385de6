/** The cost of all tools, or of those of one toolset, for a model. */
import type { Toolset } from '../../catalog/view/toolset.ts'
import { Toolsets } from '../../catalog/view/toolsets.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Configuration } from '../../config/options.ts'

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

/** Costs by name; `viewOf`: the view of a toolset. */
export const toolsetCosts = (
  { gateway }: Configuration,
  viewOf: (toolset: Toolset | undefined) => View,
): Map<string, ToolsetCost> => {
  const toolsets = new Toolsets(gateway.toolsets)
  return new Map(
    gateway.toolsets.map(({ name }) => {
      const view = viewOf(toolsets.of({ server: undefined, toolset: name }))
      const limits = Object.entries(view.toolset?.budget ?? {}).filter(([, most]) => Number.isFinite(most))
      const { cost, isOverBudget, isSearched } = view
      return [name, { ...cost, budget: Object.fromEntries(limits), isOver: isOverBudget, isSearched }]
    }),
  )
}
