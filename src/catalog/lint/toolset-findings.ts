/** What is odd about toolsets, once it is known what servers have: patterns that match nothing, budgets that do not hold. */
import type { Exposed } from '../catalog.ts'
import { matchesGlob } from '../glob.ts'
import type { Toolsets } from '../view/toolsets.ts'
import type { ToolsetOptions } from '../view/toolset.ts'
import type { View } from '../view/view.ts'

/** One toolset as an operator sees it. */
export interface ToolsetSummary {
  readonly name: string
  readonly tools: number
  /** Estimated. */
  readonly tokens: number
  /** Hosts search its tools in place of reading them all. */
  readonly isSearched: boolean
  /** Sentences with places. */
  readonly findings: readonly string[]
}

/** In the order of the configuration. `viewOf`: what a toolset shows; `whole`: everything; `listing`: the command that lists it. */
export const summarise = (
  toolsets: Toolsets,
  whole: View,
  viewOf: (toolset: string) => View,
  listing: string,
): readonly ToolsetSummary[] =>
  toolsets.all.map((options) => {
    const view = viewOf(options.name)
    const { naming, sources } = whole.catalog
    // While nothing is known of a server that it may be about, or of any at all, nothing is odd.
    const isKnown =
      sources.length > 0 &&
      sources.every(({ server, inventory }) => inventory !== undefined || view.toolset?.mayHold(server, naming) === false)
    const findings = isKnown
      ? findingsOf(options, whole, view, listing).map((text) => `${options.place}: toolset "${options.name}" ${text}`)
      : []
    return { name: options.name, ...view.cost, isSearched: view.isSearched, findings }
  })

const findingsOf = (options: ToolsetOptions, whole: View, view: View, listing: string): readonly string[] => {
  const { choices, always, confirm, override, discovery, budget } = options
  const { tools, prompts } = whole.catalog.lists
  const shown = tools.filter((row) => view.shows(row))
  const unmatched = (member: string, globs: readonly string[], rows: readonly Exposed[], what: string): string[] =>
    [...new Set(globs)]
      .filter((glob) => !rows.some(({ exposed }) => matchesGlob(glob, exposed)))
      .map((glob) => `says ${member}: ${glob}, and ${what} matches`)
  const found = [
    ...unmatched(
      'tools',
      choices.flatMap((choice) => choice.tools ?? []),
      tools,
      'no tool',
    ),
    ...unmatched(
      'prompts',
      choices.flatMap((choice) => choice.prompts ?? []),
      prompts,
      'no prompt',
    ),
    ...unmatched('always', always, shown, 'no tool of it'),
    ...unmatched('confirm', confirm, shown, 'no tool of it'),
    ...unmatched('override', Object.keys(override), shown, 'no tool of it'),
  ].map((text) => `${text}; see ${listing} for the names`)
  const isOver = budget !== undefined && discovery === 'full' && view.isOverBudget
  return isOver ? [...found, overBudget(view)] : found
}

const overBudget = ({ cost: { tools, tokens }, toolset }: View): string => {
  const { budget } = toolset ?? {}
  const limits = [
    ...(Number.isFinite(budget?.tools) ? [`${budget?.tools} tools`] : []),
    ...(Number.isFinite(budget?.tokens) ? [`${budget?.tokens} tokens`] : []),
  ]
  return `has ${tools} tools, about ${tokens} tokens, and a budget of ${limits.join(' and ')}; choose fewer, or set discovery: auto`
}
