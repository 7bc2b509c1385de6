/**
 * A server's inventory after curation: without hidden entries, with renamed and edited ones. Entries without a rule stay the same
 * objects, and an unchanged entry is edited once.
 */
import type { ParamHeader } from '../../wire/headers/param-headers.ts'
import { argumentsOf, curateDefinition } from './curated-definition.ts'
import { decideEntry } from './curated-filter.ts'
import { isPreset } from '../curation.ts'
import type { CallRule, Curation, ToolEdit } from '../curation.ts'
import type { Entry, Finding, Inventory, ListKind } from '../inventory.ts'
import { perKind } from '../inventory.ts'

interface Curated {
  readonly curation: Curation
  readonly lists: Inventory['lists']
  readonly findings: readonly Finding[]
}

interface Edited {
  readonly edit: ToolEdit
  readonly entry: Entry
}

/** Builds and caches curated inventories. Cached objects are freed with their sources. */
export class Curator {
  readonly #inventories = new WeakMap<Inventory['lists'], Curated>()
  readonly #entries = new WeakMap<Entry, Edited>()

  /** Returns the same inventory without a curation. The digest stays that of the server's own inventory. */
  curate(inventory: Inventory, curation: Curation | undefined): Inventory {
    if (curation === undefined) return inventory
    const { lists, findings } = this.#curated(inventory.lists, curation)
    return { ...inventory, lists, findings: findings.length === 0 ? inventory.findings : [...inventory.findings, ...findings] }
  }

  #curated(lists: Inventory['lists'], curation: Curation): Curated {
    let curated = this.#inventories.get(lists)
    if (curated?.curation !== curation) {
      const shown = perKind((kind) => this.#list(kind, lists[kind], curation))
      curated = { curation, lists: shown, findings: findingsOf(lists.tools, curation) }
      this.#inventories.set(lists, curated)
    }
    return curated
  }

  #list(kind: ListKind, entries: readonly Entry[], curation: Curation): readonly Entry[] {
    const shown = entries.filter((entry) => entry.isSignIn === true || decideEntry(curation, kind, entry).isShown)
    return kind === 'tools' ? shown.map((entry) => this.#entry(entry, curation.edits.get(entry.original))) : shown
  }

  #entry(entry: Entry, edit: ToolEdit | undefined): Entry {
    if (edit === undefined) return entry
    let edited = this.#entries.get(entry)
    if (edited?.edit !== edit) this.#entries.set(entry, (edited = { edit, entry: editEntry(entry, edit) }))
    return edited.entry
  }
}

const editEntry = (entry: Entry, edit: ToolEdit): Entry => {
  const hidden = new Set(edit.args.filter(({ isHidden }) => isHidden).map(({ name }) => name))
  const isHidden = ({ path: [name] }: ParamHeader): boolean => name !== undefined && hidden.has(name)
  const rule = ruleOf(entry, edit, isHidden)
  return {
    ...entry,
    raw: curateDefinition(entry.raw, edit),
    paramHeaders: entry.paramHeaders.filter((header) => !isHidden(header)),
    ...(edit.name !== undefined && { renamed: edit.name.text }),
    ...(edit.annotations !== undefined && { told: edit.annotations.hints }),
    ...(rule !== undefined && { rule }),
  }
}

/** The rule for calls of the tool; `undefined` if only texts are edited. */
const ruleOf = (
  { paramHeaders }: Entry,
  { args, timeout, result }: ToolEdit,
  isHidden: (header: ParamHeader) => boolean,
): CallRule | undefined => {
  const edits = args.filter(isPreset)
  if (edits.length === 0 && timeout === undefined && result === undefined) return undefined
  const hiddenHeaders = paramHeaders.filter(isHidden).map(({ name }) => `mcp-param-${name.toLowerCase()}`)
  return { args: edits, totalMs: timeout?.totalMs, result, paramHeaders, hiddenHeaders }
}

/** Findings about rules that match nothing or cannot be fulfilled. */
const findingsOf = (tools: readonly Entry[], { edits }: Curation): Finding[] => {
  const offered = new Map(tools.map((entry) => [entry.original, entry]))
  return [...edits.values()].flatMap((edit) => {
    const entry = offered.get(edit.original)
    const found = (note: string, place: string): Finding => ({ kind: 'tools', name: edit.original, note: `${note} (${place})` })
    if (entry === undefined)
      return tools.length === 0 ? [] : [found('is configured, and the server has no such tool', edit.place)]
    const known = argumentsOf(entry.raw)
    return edit.args.flatMap(({ name, place, isHidden, value }) => {
      if (!known.all.has(name))
        return [found(`the argument ${JSON.stringify(name)} is configured, and its schema does not list it`, place)]
      const isLacking = isHidden && value === undefined && known.required.has(name)
      return isLacking ? [found(`the argument ${JSON.stringify(name)} is required, hidden and has no value`, place)] : []
    })
  })
}
