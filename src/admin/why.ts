/** Why a tool, prompt or resource is as hosts see it, or why they do not: every rule with its place, in the order of effect. */
import type { Running } from '../app.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { rulesFor } from '../catalog/curated-rules.ts'
import { LIST_KINDS } from '../catalog/inventory.ts'
import type { Entry, ListKind } from '../catalog/inventory.ts'
import { nearestKey } from '../config/nearest-key.ts'
import type { Downstream } from '../downstream/downstream.ts'

/** One rule on the way from a server to hosts. */
export interface Step {
  readonly effect: 'offers' | 'shows' | 'hides' | 'renames' | 'edits' | 'notes'
  readonly what: string
  /** `servers.github.filter.deny[0]`; empty where no line of the configuration says it. */
  readonly path: string
  /** `trunkline.yaml:31:7`; empty as well. */
  readonly place: string
}

/** The way of one entry. */
export interface Why {
  readonly kind: ListKind
  /** Key of the server. */
  readonly server: string
  /** What the server calls it. */
  readonly original: string
  /** What hosts call it; `undefined`: it is not in the catalog. */
  readonly exposed: string | undefined
  readonly steps: readonly Step[]
}

export type WhyEnd =
  | { readonly kind: 'known'; readonly all: readonly Why[] }
  | { readonly kind: 'unknown'; readonly near: readonly string[] }

/** What is called so: by its exposed or original name or URI, hidden or not. */
export const explain = ({ fleet, gateway }: Running, name: string): WhyEnd => {
  const { catalog } = gateway.feed
  const candidates = fleet.downstreams$.value.flatMap((downstream) => candidatesOf(downstream, catalog))
  const all = candidates.filter(({ names }) => names.includes(name)).map((candidate) => whyOf(candidate, catalog))
  return all.length > 0 ? { kind: 'known', all } : { kind: 'unknown', near: nearNames(name, candidates) }
}

interface Candidate {
  readonly downstream: Downstream
  readonly kind: ListKind
  readonly original: string
  /** As the server said it; `undefined`: a policy keeps it back, or a limit. */
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
    const kept = inventory.leftOut.filter((left) => left.kind === kind).map((left) => left.name)
    const exposed = new Map(
      catalog.lists[kind].filter(({ server }) => server.key === key).map((row) => [row.entry.original, row.exposed]),
    )
    return [...new Set([...listed.keys(), ...kept])].map((original): Candidate => {
      const known = exposed.get(original)
      const names = [original, `${prefix}__${original}`, `${prefix}+${original}`, ...(known === undefined ? [] : [known])]
      return { downstream, kind, original, entry: listed.get(original), exposed: known, names }
    })
  })
}

const whyOf = ({ downstream, kind, original, entry, exposed }: Candidate, catalog: Catalog): Why => {
  const { options, inventory$ } = downstream
  const said = { path: `servers.${options.key}`, place: options.place }
  const unsaid = { path: '', place: '' }
  const leftOut = catalog.leftOut.filter((left) => left.server === options.key && left.kind === kind && left.name === original)
  const findings = (inventory$.value?.findings ?? []).filter((finding) => finding.kind === kind && finding.name === original)
  const rules = entry === undefined ? [] : rulesFor(options, kind, entry)
  const isHidden = rules.some(({ effect }) => effect === 'hides')
  return {
    kind,
    server: options.key,
    original,
    exposed,
    steps: [
      { effect: 'offers', what: `server ${options.key} offers it as ${JSON.stringify(original)}`, ...said },
      ...findings.map(({ note }): Step => ({ effect: 'notes', what: note, ...unsaid })),
      ...rules.map(({ effect, what, path, place }): Step => ({ effect, what, path, place })),
      ...(isHidden ? [] : leftOut.map(({ reason }): Step => ({ effect: 'hides', what: reason, ...unsaid }))),
      ...(exposed === undefined || exposed === original ? [] : [namingStep(downstream, kind, original, exposed)]),
    ],
  }
}

const namingStep = ({ options }: Downstream, kind: ListKind, original: string, exposed: string): Step => {
  const { key, prefix, place } = options
  const isUri = kind === 'resources' || kind === 'templates'
  const isOwn = prefix !== key
  const path = isOwn ? `servers.${key}.prefix` : isUri ? '' : 'naming'
  const isPlain = isUri || exposed.endsWith(`__${original}`) || !/[^A-Za-z0-9_-]|.{40}/.test(original)
  const how = isPlain
    ? `hosts call it ${JSON.stringify(exposed)}`
    : `hosts call it ${JSON.stringify(exposed)}: its own name is too long or has other characters`
  return { effect: 'renames', what: how, path, place: isOwn ? place : '' }
}

const nearNames = (name: string, candidates: readonly Candidate[]): string[] => {
  const names = [...new Set(candidates.flatMap(({ exposed, original }) => [exposed ?? original, original]))]
  const nearest = nearestKey(name, names)
  const words = name
    .toLowerCase()
    .split(/__|[^a-z0-9]+/)
    .filter((word) => word.length > 2)
  const holding = names.filter((one) => words.length > 0 && words.every((word) => one.toLowerCase().includes(word)))
  return [...new Set([...(nearest === undefined ? [] : [nearest]), ...holding])].slice(0, 5)
}
