/** Findings about toolsets: globs that match nothing, budgets that are exceeded. */
import type { Exposed } from '../catalog.ts'
import { matchesGlob } from '../glob.ts'
import type { Toolsets } from '../view/toolsets.ts'
import type { ToolsetOptions } from '../view/toolset.ts'
import type { View } from '../view/view.ts'
import { counted } from '../../values/counted.ts'

/** Summary of one toolset for operators. */
export interface ToolsetSummary {
  readonly name: string
  readonly tools: number
  /** Estimated. */
  readonly tokens: number
  /** Hosts search its tools instead of listing all of them. */
  readonly isSearched: boolean
  /** Sentences with places. */
  readonly findings: readonly string[]
}

/** Summaries in configuration order. `whole`: the view without a toolset. `listing`: the command that lists all names. */
export const summarise = (
  toolsets: Toolsets,
  whole: View,
  viewOf: (toolset: string) => View,
  listing: string,
): readonly ToolsetSummary[] =>
  toolsets.all.map((options) => {
    const view = viewOf(options.name)
    const { naming, sources } = whole.catalog
    // No findings while the inventory of a server that the toolset may contain is unknown.
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
  const globsOf = (member: 'tools' | 'prompts'): string[] => choices.flatMap((choice) => choice[member] ?? [])
  const found = [
    ...unmatched('tools', globsOf('tools'), tools, 'no tool'),
    ...unmatched('prompts', globsOf('prompts'), prompts, 'no prompt'),
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
    ...(Number.isFinite(budget?.tools) ? [counted(budget?.tools ?? 0, 'tool')] : []),
    ...(Number.isFinite(budget?.tokens) ? [`${budget?.tokens} tokens`] : []),
  ]
  return `has ${counted(tools, 'tool')}, about ${tokens} tokens, and a budget of ${limits.join(' and ')}; choose fewer, or set discovery: auto`
}
