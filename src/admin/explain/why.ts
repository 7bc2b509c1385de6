/** Explains why hosts see a tool, prompt or resource, or do not: every rule with its place, in the order in which they apply. */
import type { Running } from '../../app/running.ts'
import type { Catalog, Exposed } from '../../catalog/catalog.ts'
import { rulesFor } from '../../catalog/curate/curated-rules.ts'
import { LIST_KINDS } from '../../catalog/inventory.ts'
import type { Entry, ListKind } from '../../catalog/inventory.ts'
import { Toolset } from '../../catalog/view/toolset.ts'
import type { ToolsetOptions } from '../../catalog/view/toolset.ts'
import { nearestKey } from '../../config/syntax/nearest-key.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** One rule between a server and hosts. */
export interface Step {
  readonly effect: 'offers' | 'shows' | 'hides' | 'renames' | 'edits' | 'notes'
  readonly what: string
  /** `servers.github.filter.deny[0]`; empty where no option decides. */
  readonly path: string
  /** `trunkline.yaml:31:7`; or empty. */
  readonly place: string
}

/** The rules for one entry. */
export interface Why {
  readonly kind: ListKind
  /** Key of the server. */
  readonly server: string
  /** Its name at the server. */
  readonly original: string
  /** Its exposed name; `undefined`: it is not in the catalog. */
  readonly exposed: string | undefined
  readonly steps: readonly Step[]
  /** Names of the examined toolsets that contain it. */
  readonly toolsets: readonly string[]
}

/** `near`: similar names. */
export type WhyEnd =
  | { readonly kind: 'known'; readonly all: readonly Why[] }
  | { readonly kind: 'unknown' | 'no toolset'; readonly near: readonly string[] }

/** Explains each entry with this exposed or original name or URI, hidden or not, in all toolsets or in one. */
export const explain = ({ fleet, gateway }: Running, name: string, only: string | undefined): WhyEnd => {
  const { catalog } = gateway.feed.whole(MODERN)
  const { toolsets } = gateway.feed
  if (only !== undefined && !toolsets.has(only))
    return {
      kind: 'no toolset',
      near: nearNames(
        only,
        toolsets.all.map((one) => one.name),
      ),
    }
  const examined = toolsets.all.filter((one) => only === undefined || one.name === only)
  const candidates = fleet.downstreams$.value.flatMap((downstream) => candidatesOf(downstream, catalog))
  const all = candidates.filter(({ names }) => names.includes(name)).map((candidate) => whyOf(candidate, catalog, examined))
  return all.length > 0
    ? { kind: 'known', all }
    : {
        kind: 'unknown',
        near: nearNames(
          name,
          candidates.flatMap(({ exposed, original }) => [exposed ?? original, original]),
        ),
      }
}

interface Candidate {
  readonly downstream: Downstream
  readonly kind: ListKind
  readonly original: string
  /** As the server sent it; `undefined`: a policy or a limit withholds it. */
  readonly entry: Entry | undefined
  readonly exposed: string | undefined
  readonly names: readonly string[]
}

const candidatesOf = (downstream: Downstream, catalog: Catalog): Candidate[] => {
  const { key, prefix } = downstream.options
  const inventory = downstream.inventory$.value
  if (inventory === undefined) return []
  return LIST_KINDS.flatMap((kind) => {
    const listed = new Map(inventory.lists[kind].map((entry) => [entry.original, entry]))
    const withheld = inventory.leftOut.filter((left) => left.kind === kind).map((left) => left.name)
    const exposed = new Map(
      catalog.lists[kind].filter(({ server }) => server.key === key).map((row) => [row.entry.original, row.exposed]),
    )
    return [...new Set([...listed.keys(), ...withheld])].map((original): Candidate => {
      const known = exposed.get(original)
      const names = [original, `${prefix}__${original}`, `${prefix}+${original}`, ...(known === undefined ? [] : [known])]
      return { downstream, kind, original, entry: listed.get(original), exposed: known, names }
    })
  })
}

const whyOf = (
  { downstream, kind, original, entry, exposed }: Candidate,
  catalog: Catalog,
  examined: readonly ToolsetOptions[],
): Why => {
  const { options, inventory$ } = downstream
  const ofServer = { path: `servers.${options.key}`, place: options.place }
  const unplaced = { path: '', place: '' }
  const leftOut = catalog.leftOut.filter((left) => left.server === options.key && left.kind === kind && left.name === original)
  const findings = (inventory$.value?.findings ?? []).filter((finding) => finding.kind === kind && finding.name === original)
  const rules = entry === undefined ? [] : rulesFor(options, kind, entry)
  const row = exposed === undefined ? undefined : catalog.index[kind].get(exposed)
  const isHidden = rules.some(({ effect }) => effect === 'hides')
  return {
    kind,
    server: options.key,
    original,
    exposed,
    steps: [
      { effect: 'offers', what: `server ${options.key} offers it as ${JSON.stringify(original)}`, ...ofServer },
      ...findings.map(({ note }): Step => ({ effect: 'notes', what: note, ...unplaced })),
      ...rules.map(({ effect, what, path, place }): Step => ({ effect, what, path, place })),
      ...(isHidden ? [] : leftOut.map(({ reason }): Step => ({ effect: 'hides', what: reason, ...unplaced }))),
      ...(exposed === undefined || exposed === original ? [] : [namingStep(downstream, kind, original, exposed)]),
      ...(row === undefined ? [] : examined.flatMap((options) => toolsetSteps(options, kind, row))),
    ],
    toolsets:
      row === undefined ? [] : examined.filter((options) => new Toolset([options]).shows(kind, row)).map(({ name }) => name),
  }
}

const namingStep = ({ options }: Downstream, kind: ListKind, original: string, exposed: string): Step => {
  const { key, prefix, place, alias, curation } = options
  const isUri = kind === 'resources' || kind === 'templates'
  const isOwn = prefix !== key
  const path = isOwn ? `servers.${key}.prefix` : isUri ? '' : 'naming'
  const own = (kind === 'tools' ? curation?.edits.get(original)?.name?.text : undefined) ?? original
  const isPlain = isUri || Object.hasOwn(alias, original) || exposed === own || exposed === `${prefix}__${own}`
  const how = isPlain
    ? `hosts call it ${JSON.stringify(exposed)}`
    : `hosts call it ${JSON.stringify(exposed)}: its own name is too long or has other characters`
  return { effect: 'renames', what: how, path, place: isOwn ? place : '' }
}

/** The rules of one toolset for an entry of the catalog. */
const toolsetSteps = (options: ToolsetOptions, kind: ListKind, row: Exposed): Step[] => {
  const toolset = new Toolset([options])
  const at = { path: `toolsets.${options.name}`, place: options.place }
  const name = `toolset ${options.name}`
  if (!toolset.shows(kind, row)) {
    const withoutWhere = new Toolset([{ ...options, choices: options.choices.map((choice) => ({ ...choice, where: {} })) }])
    const why = withoutWhere.shows(kind, row) ? 'its annotations do not match "where"' : 'no selection matches'
    return [{ effect: 'hides', what: `${name} does not contain it: ${why}`, ...at }]
  }
  const edits: readonly [boolean, string][] = [
    [toolset.overrideOf(row.exposed) !== undefined, 'overrides its texts or annotations'],
    [toolset.isAlways(row.exposed), 'lists it also if other tools are found by search'],
    [toolset.isConfirmed(row.exposed), 'asks a person before each call'],
  ]
  const isTool = kind === 'tools'
  return [
    { effect: 'shows', what: `${name} contains it`, ...at },
    ...edits.filter(([holds]) => isTool && holds).map(([, what]): Step => ({ effect: 'edits', what: `${name} ${what}`, ...at })),
  ]
}

const nearNames = (name: string, known: readonly string[]): string[] => {
  const names = [...new Set(known)]
  const nearest = nearestKey(name, names)
  const words = name
    .toLowerCase()
    .split(/__|[^a-z0-9]+/)
    .filter((word) => word.length > 2)
  const similar = names.filter((one) => words.length > 0 && words.every((word) => one.toLowerCase().includes(word)))
  return [...new Set([...(nearest === undefined ? [] : [nearest]), ...similar])].slice(0, 5)
}
