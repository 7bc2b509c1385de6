/** What another configuration would change of a running gateway, before it does: nothing is applied, started or learned here. */
import { isDeepStrictEqual } from 'node:util'
import type { Running } from '../app.ts'
import { buildCatalog } from '../catalog/catalog.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { Curator } from '../catalog/curated-inventory.ts'
import { LIST_KINDS } from '../catalog/inventory.ts'
import type { ListKind } from '../catalog/inventory.ts'
import { estimateTokens } from '../catalog/tokens.ts'
import type { Toolset } from '../catalog/toolset.ts'
import { Toolsets } from '../catalog/toolsets.ts'
import { Views } from '../catalog/view.ts'
import type { View } from '../catalog/view.ts'
import { changedOptions, saysTheSame } from '../config/changed-options.ts'
import { diffConfigurations } from '../config/difference.ts'
import type { Configuration } from '../config/options.ts'
import type { Downstream } from '../downstream/downstream.ts'
import { MODERN } from '../wire/revisions.ts'
import { exposedName } from './offered.ts'
import type { Deviating } from './offered.ts'

/** What happens to one server. */
export interface ServerPlan {
  readonly key: string
  readonly change: 'added' | 'removed' | 'changed'
  /** Names of options, as in files. */
  readonly options: readonly string[]
  /** `restart`: its process; `reconnect`: we do; `nothing`: process, links and sessions stay. */
  readonly effect: 'start' | 'end' | 'restart' | 'reconnect' | 'nothing'
  readonly inFlight: number
}

/** One entry of the lists that hosts see. */
export interface EntryPlan {
  readonly kind: ListKind
  /** As hosts see it. */
  readonly name: string
  readonly change: 'added' | 'removed' | 'changed'
  /** What it costs more or less, an estimate. */
  readonly tokens: number
}

/** What all tools, or those of one toolset, cost: how many, and an estimate of tokens. */
export interface Cost {
  readonly tools: number
  readonly tokens: number
}

/** One toolset whose cost, budget or existence changes, or that costs more than its budget. */
export interface ToolsetPlan {
  readonly name: string
  /** `undefined`: there is none of that name. */
  readonly before: ToolsetCost | undefined
  readonly after: ToolsetCost | undefined
}

export interface ToolsetCost extends Cost {
  /** What it may cost; absent members are not limited. */
  readonly budget: Partial<Cost>
  readonly isOver: boolean
  /** Hosts search its tools in place of reading them all. */
  readonly isSearched: boolean
}

export interface Plan {
  readonly servers: readonly ServerPlan[]
  readonly entries: readonly EntryPlan[]
  /** What is not as the lock file of the new configuration says. */
  readonly lock: readonly Deviating[]
  /** Two entries that want one name. */
  readonly collisions: readonly string[]
  readonly toolsets: readonly ToolsetPlan[]
  readonly total: { readonly before: Cost; readonly after: Cost }
  /** Listeners that close and open elsewhere, or otherwise. */
  readonly listeners: boolean
  /** YAML paths whose change waits for a restart of the process. */
  readonly needsRestart: readonly string[]
  /** Options of the gateway or its listeners differ that no row above shows. */
  readonly others: boolean
  readonly warnings: readonly string[]
}

export const makePlan = ({ configuration: before, fleet, gateway }: Running, after: Configuration): Plan => {
  const { added, removed, changed, listeners, needsRestart } = diffConfigurations(before, after)
  const old = new Map(before.servers.map((server) => [server.key, server]))
  const inFlight = (key: string): number => fleet.get(key)?.inFlight ?? 0
  const servers = [
    ...added.map((key): ServerPlan => ({ key, change: 'added', options: [], effect: 'start', inFlight: 0 })),
    ...removed.map((key): ServerPlan => ({ key, change: 'removed', options: [], effect: 'end', inFlight: inFlight(key) })),
    ...after.servers.flatMap((server): ServerPlan[] => {
      const known = old.get(server.key)
      const options = known === undefined ? [] : changedOptions(known, server)
      const isRestarted = changed.includes(server.key)
      if (!isRestarted && options.length === 0) return []
      const effect = !isRestarted ? 'nothing' : server.launch === undefined ? 'reconnect' : 'restart'
      return [{ key: server.key, change: 'changed', options, effect, inFlight: inFlight(server.key) }]
    }),
  ]
  const catalog = catalogUnder(after, (key) => fleet.get(key))
  const views = new Views()
  const was = gateway.feed.whole(MODERN)
  const will = views.of(catalog, { revision: MODERN })
  return {
    servers,
    entries: LIST_KINDS.flatMap((kind) => compareLists(kind, was, will)),
    lock: lockChanges(after, (key) => fleet.get(key), catalog),
    collisions: catalog.problems.filter(({ kind }) => kind === 'duplicate').map(({ message }) => message),
    toolsets: compareToolsets(
      toolsetCosts(before, (toolset) => views.of(was.catalog, { revision: MODERN, toolset })),
      toolsetCosts(after, (toolset) => views.of(catalog, { revision: MODERN, toolset })),
    ),
    total: { before: was.cost, after: will.cost },
    listeners,
    needsRestart,
    others: !saysTheSame([before.gateway, before.host.limits], [after.gateway, after.host.limits]),
    warnings: after.warnings.filter((warning) => !before.warnings.includes(warning)),
  }
}

/** Whether applying it would change anything. */
export const isEmpty = ({ servers, entries, toolsets, listeners, needsRestart, others }: Plan): boolean =>
  servers.length + entries.length + needsRestart.length === 0 &&
  toolsets.every(({ before, after }) => isDeepStrictEqual(before, after)) &&
  !listeners &&
  !others

/** What hosts would see: of what is known now, under the new options. What a new server offers is not known yet. */
const catalogUnder = ({ servers, gateway }: Configuration, find: (key: string) => Downstream | undefined): Catalog => {
  const curator = new Curator()
  const sources = servers.map((server) => {
    const inventory = find(server.key)?.preview(server)
    return { server, inventory: inventory && curator.curate(inventory, server.curation) }
  })
  return buildCatalog(sources, gateway)
}

const compareLists = (kind: ListKind, was: View, will: View): EntryPlan[] => {
  const [before, after] = [was, will].map((view) => {
    const { rows, entries } = view.list(kind)
    return new Map(rows.map(({ exposed }, at) => [exposed, entries[at]]))
  })
  const tokens = (entry: Buffer | undefined): number => (entry === undefined ? 0 : estimateTokens(entry))
  return [...new Set([...after.keys(), ...before.keys()])].flatMap((name): EntryPlan[] => {
    const [from, to] = [before.get(name), after.get(name)]
    if (from !== undefined && to !== undefined && from.equals(to)) return []
    const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed'
    return [{ kind, name, change, tokens: tokens(to) - tokens(from) }]
  })
}

const lockChanges = ({ servers }: Configuration, find: (key: string) => Downstream | undefined, catalog: Catalog): Deviating[] =>
  servers.flatMap((options) => {
    if (options.locked === undefined || options.onChange === 'allow') return []
    const changes = find(options.key)?.changes(options) ?? []
    return changes.map((change) => ({
      ...change,
      server: options.key,
      exposed: exposedName(catalog, options, change),
    }))
  })

const toolsetCosts = ({ gateway }: Configuration, viewOf: (toolset: Toolset | undefined) => View): Map<string, ToolsetCost> => {
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

const compareToolsets = (before: Map<string, ToolsetCost>, after: Map<string, ToolsetCost>): ToolsetPlan[] =>
  [...new Set([...after.keys(), ...before.keys()])].flatMap((name) => {
    const [was, will] = [before.get(name), after.get(name)]
    const isTold = will?.isOver === true || !isDeepStrictEqual(was, will)
    return isTold ? [{ name, before: was, after: will }] : []
  })
