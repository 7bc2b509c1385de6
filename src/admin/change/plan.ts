/** The changes that another configuration would make to a running gateway. Applies, starts and learns nothing. */
import { isDeepStrictEqual } from 'node:util'
import { buildCatalog } from '../../catalog/build-catalog.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { Curator } from '../../catalog/curate/curated-inventory.ts'
import { LIST_KINDS } from '../../catalog/inventory.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import { vetHidden } from '../../catalog/curate/vetting.ts'
import { mapRows, Views } from '../../catalog/view/view.ts'
import type { View } from '../../catalog/view/view.ts'
import { changedOptions, diffFingerprints } from '../../config/change/difference.ts'
import { fingerprint } from '../../config/change/fingerprints.ts'
import type { Configuration } from '../../config/options.ts'
import { ConfigError } from '../../config/syntax/problems.ts'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'
import { Pins } from '../../downstream/lists/pins.ts'
import { signInInventory } from '../../downstream/lists/sign-in-tool.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { listedEntry } from './basis.ts'
import type { Basis, ListedEntry, ServerBasis } from './basis.ts'
import type { EntryChange } from '../catalog/history.ts'
import { unapprovedIn } from '../catalog/offered.ts'
import type { UnapprovedChange } from '../catalog/offered.ts'
import { toolsetCosts } from '../catalog/toolset-costs.ts'
import type { Cost, ToolsetCost } from '../catalog/toolset-costs.ts'

/** The change of one server. */
export interface ServerPlan {
  readonly key: string
  readonly change: 'added' | 'removed' | 'changed'
  /** Names of options, as in files. */
  readonly options: readonly string[]
  /** `restart`: its process restarts; `reconnect`: its connections are opened again; `nothing`: process, links and sessions stay. */
  readonly effect: 'start' | 'end' | 'restart' | 'reconnect' | 'nothing'
  readonly inFlight: number
}

/** One entry of the lists that hosts see. */
export type EntryPlan = Pick<EntryChange, 'kind' | 'name' | 'change' | 'tokens'>

/** A toolset whose cost, budget or existence changes, or that is over its budget. */
export interface ToolsetPlan {
  readonly name: string
  /** `undefined`: the toolset does not exist. */
  readonly before: ToolsetCost | undefined
  readonly after: ToolsetCost | undefined
}

export interface Plan {
  readonly servers: readonly ServerPlan[]
  readonly entries: readonly EntryPlan[]
  /** Definitions that differ from the lock file of the new configuration. */
  readonly lock: readonly UnapprovedChange[]
  /** Entries with equal exposed names. */
  readonly collisions: readonly string[]
  readonly toolsets: readonly ToolsetPlan[]
  readonly total: { readonly before: Cost; readonly after: Cost }
  /** Listeners close and open again. */
  readonly listeners: boolean
  /** YAML paths whose change takes effect after a restart of the process. */
  readonly needsRestart: readonly string[]
  /** Other options of the gateway or its listeners differ. */
  readonly others: boolean
  readonly warnings: readonly string[]
}

/** `env`: the environment with which the new configuration was read. */
export const makePlan = (basis: Basis, after: Configuration, env: RuntimeEnvironment['env']): Plan => {
  const will = fingerprint(after, { salt: Buffer.from(basis.salt, 'base64'), env })
  const { added, removed, changed, listeners, needsRestart, others } = diffFingerprints(basis.configuration, will)
  const knownServers = new Map(basis.servers.map((server) => [server.key, server]))
  const old = new Map(basis.configuration.servers.map(({ key, options }) => [key, options]))
  const next = new Map(will.servers.map(({ key, options }) => [key, options]))
  const inFlight = (key: string): number => knownServers.get(key)?.inFlight ?? 0
  const servers = [
    ...added.map((key): ServerPlan => ({ key, change: 'added', options: [], effect: 'start', inFlight: 0 })),
    ...removed.map((key): ServerPlan => ({ key, change: 'removed', options: [], effect: 'end', inFlight: inFlight(key) })),
    ...after.servers.flatMap(({ key, launch }): ServerPlan[] => {
      const [from, to] = [old.get(key), next.get(key)]
      const options = from === undefined || to === undefined ? [] : changedOptions(from, to)
      const isRestarted = changed.includes(key)
      if (!isRestarted && options.length === 0) return []
      const effect = !isRestarted ? 'nothing' : launch === undefined ? 'reconnect' : 'restart'
      return [{ key, change: 'changed', options, effect, inFlight: inFlight(key) }]
    }),
  ]
  const catalog = catalogUnder(after, knownServers)
  const views = new Views()
  const view = views.of(catalog, { revision: MODERN })
  const known = new Set(basis.warnings.map(withoutPlaces))
  return {
    servers,
    entries: LIST_KINDS.flatMap((kind) => compareLists(kind, basis.lists[kind], view)),
    lock: lockChanges(after, knownServers, catalog),
    collisions: catalog.problems.filter(({ kind }) => kind === 'duplicate').map(({ message }) => message),
    toolsets: compareToolsets(new Map(basis.toolsets), toolsetCosts(after, catalog, views)),
    total: { before: basis.total, after: view.cost },
    listeners,
    needsRestart,
    others,
    warnings: after.warnings.filter((warning) => !known.has(withoutPlaces(warning))),
  }
}

/** The warning without positions in files, which may have moved. */
const withoutPlaces = (warning: string): string => warning.replaceAll(/(?<!\S)\S+:\d+:\d+/g, '')

/** Refuses files that have become empty: some programs truncate a file before they write it (F-25). Throws `ConfigError`. */
export const refuseTruncated = (basis: Basis, { emptyFiles, files: [main] }: Configuration): void => {
  const wasFull = (file: string): boolean => basis.files.includes(file) && !basis.emptyFiles.includes(file)
  const truncated = emptyFiles.filter((file) => wasFull(file) || (file === main && basis.emptyFiles.length === 0))
  if (truncated.length === 0) return
  const remedy = 'restore its content, or write "servers: {}" to serve nothing'
  throw new ConfigError(truncated.map((file) => ({ place: file, path: '', message: 'the file is empty', remedy })))
}

/**
 * Refuses to lose a section that restricts callers because a file that a pattern of `include` matched is gone (0348). Throws `ConfigError`.
 */
export const refuseUnguarded = (basis: Basis, { files, globs, guards }: Configuration): void => {
  const problems = basis.guards.flatMap(({ section, match }) => {
    const isLost = match !== undefined && globs.includes(match.glob) && !files.includes(match.file)
    if (!isLost || guards.some((guard) => guard.section === section)) return []
    const remedy = `restore the file; to go without "${section}", remove the section before the file, or start Trunkline again`
    return [{ place: match.file, path: section, message: 'the file is gone', remedy }]
  })
  if (problems.length > 0) throw new ConfigError(problems)
}

/** With `naming.collision: error`, refuses a configuration with new collisions. Those that servers caused are not refused. Throws `ConfigError`. */
export const refuseCollisions = ({ problems }: Basis, { gateway, files }: Configuration, { collisions }: Plan): void => {
  const fresh = collisions.filter((message) => !problems.includes(message))
  if (gateway.collision !== 'error' || fresh.length === 0) return
  const remedy = 'rename one, filter it out, or write naming.collision: warn'
  throw new ConfigError(fresh.map((message) => ({ place: files[0] ?? '', path: 'naming.collision', message, remedy })))
}

/** The plan of a configuration that may be applied. Throws `ConfigError` for one that is refused. */
export const plannedWith = (basis: Basis, after: Configuration, env: RuntimeEnvironment['env']): Plan => {
  refuseTruncated(basis, after)
  refuseUnguarded(basis, after)
  const plan = makePlan(basis, after, env)
  refuseCollisions(basis, after, plan)
  return plan
}

/** Whether applying it would change anything. */
export const isEmpty = ({ servers, entries, toolsets, listeners, needsRestart, others }: Plan): boolean =>
  servers.length + entries.length + needsRestart.length === 0 &&
  toolsets.every(({ before, after }) => isDeepStrictEqual(before, after)) &&
  !listeners &&
  !others

/** The catalog that the known lists give under the new options. Lists of new servers are not known. */
const catalogUnder = ({ servers, gateway }: Configuration, known: ReadonlyMap<string, ServerBasis>): Catalog => {
  const curator = new Curator()
  const sources = servers.map((server) => {
    const { offered, pins, isSignedOut = false } = known.get(server.key) ?? {}
    if (isSignedOut) return { server, inventory: signInInventory(server) }
    const vetted = offered && new Pins(pins).preview(offered, server).inventory
    return { server, inventory: vetted && curator.curate(vetHidden(vetted, server.hidden), server.curation) }
  })
  return buildCatalog(sources, gateway)
}

const compareLists = (kind: ListKind, was: readonly ListedEntry[], will: View): EntryPlan[] => {
  const before = new Map(was.map((entry) => [entry.name, entry]))
  const after = new Map(mapRows(will.list(kind), ({ exposed }, bytes) => [exposed, listedEntry(exposed, bytes)]))
  return [...new Set([...after.keys(), ...before.keys()])].flatMap((name): EntryPlan[] => {
    const [from, to] = [before.get(name), after.get(name)]
    if (from?.digest === to?.digest) return []
    const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed'
    return [{ kind, name, change, tokens: (to?.tokens ?? 0) - (from?.tokens ?? 0) }]
  })
}

const lockChanges = ({ servers }: Configuration, known: ReadonlyMap<string, ServerBasis>, catalog: Catalog): UnapprovedChange[] =>
  servers.flatMap((options) => {
    const { offered, pins } = known.get(options.key) ?? {}
    if (options.locked === undefined || options.onChange === 'allow' || offered === undefined) return []
    return new Pins(pins).changes(offered, options).map(unapprovedIn(catalog, options))
  })

const compareToolsets = (before: Map<string, ToolsetCost>, after: Map<string, ToolsetCost>): ToolsetPlan[] =>
  [...new Set([...after.keys(), ...before.keys()])].flatMap((name) => {
    const [was, will] = [before.get(name), after.get(name)]
    const isShown = will?.isOver === true || !isDeepStrictEqual(was, will)
    return isShown ? [{ name, before: was, after: will }] : []
  })
