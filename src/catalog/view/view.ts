/**
 * What one kind of caller sees of the catalog, as bytes that are ready to send. Views of the same catalog are shared by all who
 * select the same, and an entry that did not change keeps its bytes from one catalog to the next.
 */
import { createHash } from 'node:crypto'
import type { OutputForm } from '../../era/host/projections.ts'
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import { indexApps } from './apps.ts'
import type { AppIndex } from './apps.ts'
import { buildCatalog } from '../build-catalog.ts'
import { runsTasks, servesApps } from '../catalog.ts'
import type { Catalog, CatalogServer, CatalogSource, Exposed } from '../catalog.ts'
import { offersUri } from '../curate/curated-filter.ts'
import { digestBytes } from '../digest.ts'
import { holds } from '../hints.ts'
import type { HintName } from '../hints.ts'
import type { Grants } from './grants.ts'
import type { Entry, ListKind } from '../inventory.ts'
import { isMetaTool, metaTools } from './meta-tools.ts'
import { uriMode } from '../names/naming.ts'
import { plainUri } from '../names/plain-uri.ts'
import { isRefusedUri } from '../refused.ts'
import { listForm, readyEntry } from './ready-entry.ts'
import type { Exposure, ListForm } from './ready-entry.ts'
import { indexBare } from './routes.ts'
import type { BareIndex } from './routes.ts'
import { isWrite, Shown } from './shown.ts'
import { matchesTemplate } from '../names/templates.ts'
import { estimateTokens } from '../tokens.ts'
import type { ToolOverride } from '../curate/override.ts'
import type { Budget, Toolset } from './toolset.ts'
import { outputFormOf } from './wrap-schema.ts'

export interface Selection {
  /** What the caller's path and credential choose; everything without it. */
  readonly toolset?: Toolset | undefined
  /** What its scopes let it see; everything without it. */
  readonly grants?: Grants | undefined
  /** Key of one server, seen alone under its original names and URIs (`/servers/<key>/mcp`). */
  readonly only?: string
  /** The host's revision: it decides how lists are worded. */
  readonly revision: Revision
}

/** What one server has in a list: rows and, at the same places, their bytes. */
interface Segment {
  readonly rows: readonly Exposed[]
  readonly entries: readonly Buffer[]
  readonly digest: string
}

/** One list of a view: rows and, at the same places, their bytes. */
export interface ReadyList {
  readonly kind: ListKind
  readonly rows: readonly Exposed[]
  readonly entries: readonly Buffer[]
  /** All entries as one JSON array. */
  readonly whole: Buffer
  /** Equal digests: the host would see no difference. */
  readonly digest: string
}

/** Makes and keeps views. One per process; what it keeps is freed with the catalogs and entries it was made from. */
export class Views {
  readonly #ready = new WeakMap<Entry, Map<string, Buffer>>()
  readonly #views = new WeakMap<Catalog, Map<string, View>>()
  /** By the rows of a server, which stay the same ones from catalog to catalog while nothing of it changes. */
  readonly #segments = new WeakMap<readonly Exposed[], Map<string, Segment>>()
  /** By catalog, toolset and scopes: the same for every revision, and for a server seen alone. */
  readonly #shown = new WeakMap<Catalog, Map<string, Shown>>()

  of(catalog: Catalog, selection: Selection): View {
    let views = this.#views.get(catalog)
    if (views === undefined) this.#views.set(catalog, (views = new Map()))
    const id = selectionId(selection)
    let view = views.get(id)
    if (view === undefined) {
      const shown = this.#shownIn(catalog, selection)
      views.set(id, (view = new View(id, narrowed(catalog, selection), selection, shown, this.#readyBytes, this.#segmentOf)))
    }
    return view
  }

  #shownIn(catalog: Catalog, { toolset, grants }: Selection): Shown | undefined {
    if (toolset === undefined && grants === undefined) return undefined
    let known = this.#shown.get(catalog)
    if (known === undefined) this.#shown.set(catalog, (known = new Map()))
    const key = JSON.stringify([toolset?.name, grants?.id])
    let shown = known.get(key)
    if (shown === undefined) known.set(key, (shown = new Shown(catalog, { toolset, grants })))
    return shown
  }

  /** `key`: all that shapes its bytes besides the rows. */
  readonly #segmentOf = (rows: readonly Exposed[], key: string, make: () => Segment): Segment => {
    let variants = this.#segments.get(rows)
    if (variants === undefined) this.#segments.set(rows, (variants = new Map()))
    let segment = variants.get(key)
    if (segment === undefined) variants.set(key, (segment = make()))
    return segment
  }

  readonly #readyBytes = (entry: Entry, exposure: Exposure): Buffer => {
    let variants = this.#ready.get(entry)
    if (variants === undefined) this.#ready.set(entry, (variants = new Map()))
    const key = JSON.stringify(exposure)
    let bytes = variants.get(key)
    if (bytes === undefined) variants.set(key, (bytes = readyEntry(entry.raw, exposure)))
    return bytes
  }
}

export class View {
  /** The same for every catalog: names what was selected, not what is there. */
  readonly id: string
  readonly catalog: Catalog
  readonly toolset: Toolset | undefined
  readonly #shown: Shown | undefined
  readonly #form: ListForm
  readonly #readyBytes: (entry: Entry, exposure: Exposure) => Buffer
  readonly #segmentOf: (rows: readonly Exposed[], key: string, make: () => Segment) => Segment
  readonly #lists = new Map<ListKind, ReadyList>()
  readonly #outputForms = new WeakMap<Entry, OutputForm>()
  #toolsToSearch: ReadyList | undefined
  #bare: BareIndex | undefined
  #apps: AppIndex | undefined

  constructor(
    id: string,
    catalog: Catalog,
    { toolset, revision }: Selection,
    shown: Shown | undefined,
    readyBytes: (entry: Entry, exposure: Exposure) => Buffer,
    segmentOf: (rows: readonly Exposed[], key: string, make: () => Segment) => Segment,
  ) {
    this.id = id
    this.catalog = catalog
    this.toolset = toolset
    this.#shown = shown
    this.#form = listForm(revision)
    this.#readyBytes = readyBytes
    this.#segmentOf = segmentOf
  }

  /** Whether anything of the server is in it. */
  sees(serverKey: string): boolean {
    return this.#shown?.hasServer(serverKey) ?? true
  }

  /** The one predicate for lists, routes and all that follows from them. */
  shows({ entry }: Exposed): boolean {
    return this.#shown?.has(entry) ?? true
  }

  /** The same of a URI or template, listed or not: what a shown template or app names is shown with it. */
  showsUri(server: CatalogServer, original: string): boolean {
    if (!offersUri(server, original) || isRefusedUri(this.catalog, server.key, original)) return false
    if (this.#shown === undefined) return true
    const isOf = (row: Exposed): boolean => row.server.key === server.key
    const isShown = (row: Exposed): boolean => isOf(row) && this.shows(row)
    if (original.startsWith('ui://') && this.apps.templates.get(original)?.some(isShown) === true) return true
    const listed = (this.bare.resources.get(original) ?? this.bare.templates.get(original))?.find(isOf)
    if (listed !== undefined) return this.shows(listed)
    if (this.#shown.hasUri(server, original)) return true
    const isExpanded = this.bare.patterns.some(({ row, template }) => isShown(row) && matchesTemplate(template, original))
    return isExpanded && plainUri(original) !== undefined
  }

  /** Whether a call of this tool needs the right to write: unless it is believed to read only. */
  isWrite(exposed: string): boolean {
    const row = this.catalog.index.tools.get(exposed)
    return row === undefined || isWrite('tools', row, this.toolset)
  }

  /** Whether the hint is believed of this tool. */
  holds(hint: HintName, tool: { readonly server: CatalogServer; readonly entry: Entry }): boolean {
    return holds(hint, tool, this.#overrideOf(tool.entry)?.annotations)
  }

  /** Whether a person is asked before each call of this tool. The one for signing in asks by itself, and does nothing else. */
  confirms(entry: Entry): boolean {
    if (entry.isSignIn === true) return false
    const exposed = this.toolset === undefined ? undefined : this.#shown?.exposedOf(entry)
    return exposed !== undefined && this.toolset?.isConfirmed(exposed) === true
  }

  /** Whether a tool is listed even where hosts are to search (`always`). */
  isAlways({ entry }: Exposed): boolean {
    const exposed = this.toolset === undefined ? undefined : this.#shown?.exposedOf(entry)
    return exposed !== undefined && this.toolset?.isAlways(exposed) === true
  }

  /** What all its tools cost a model, as they would be listed: their number, and an estimate of tokens. */
  get cost(): Budget {
    const { rows, whole } = this.list('tools')
    return { tools: rows.length, tokens: rows.length === 0 ? 0 : estimateTokens(whole) }
  }

  /** Whether that is more than the toolset's budget. */
  get isOverBudget(): boolean {
    const budget = this.toolset?.budget
    return budget !== undefined && (this.cost.tools > budget.tools || this.cost.tokens > budget.tokens)
  }

  /** Whether hosts are to search the tools in place of reading them all (`discovery`). */
  get isSearched(): boolean {
    const discovery = this.toolset?.discovery
    return discovery === 'search' || (discovery === 'auto' && this.isOverBudget)
  }

  /** The servers of this view, in configuration order. */
  get sources(): readonly CatalogSource[] {
    return this.catalog.sources.filter(({ server }) => this.sees(server.key))
  }

  get bare(): BareIndex {
    return (this.#bare ??= indexBare(this.catalog))
  }

  get apps(): AppIndex {
    return (this.#apps ??= indexApps(this.catalog))
  }

  list(kind: ListKind): ReadyList {
    let list = this.#lists.get(kind)
    if (list === undefined) this.#lists.set(kind, (list = this.#makeList(kind)))
    return list
  }

  /** What hosts are listed: all of it, or what to find the tools with, and those that stand in front of all others (`always`). */
  listed(kind: ListKind): ReadyList {
    return kind === 'tools' && this.isSearched ? (this.#toolsToSearch ??= this.#makeToolsToSearch()) : this.list(kind)
  }

  #makeToolsToSearch(): ReadyList {
    const { rows, entries } = this.list('tools')
    const own = metaTools(this.sources.map(({ server }) => server)).map((row) => ({ row, bytes: row.entry.raw }))
    const always = rows
      // Cast: there is an entry for each row.
      .map((row, at) => ({ row, bytes: entries[at]! }))
      .filter(({ row }) => this.isAlways(row) && !isMetaTool(row.exposed))
    const listed = [...own, ...always]
    const found = segment(
      listed.map(({ row }) => row),
      listed.map(({ bytes }) => bytes),
    )
    return readyList('tools', [found])
  }

  #makeList(kind: ListKind): ReadyList {
    const segments = this.catalog.parts[kind].map(({ rows }) => this.#segment(kind, rows))
    return readyList(
      kind,
      segments.filter(({ rows }) => rows.length > 0),
    )
  }

  #segment(kind: ListKind, all: readonly Exposed[]): Segment {
    const make = (rows: readonly Exposed[]): Segment =>
      segment(
        rows,
        rows.map((row) => this.#bytesOf(kind, row)),
      )
    if (this.#shown !== undefined) return make(all.filter((row) => this.shows(row)))
    const [first] = all
    if (first === undefined) return make(all)
    const { server, position } = first
    const key = `${this.#form} ${runsTasks(this.catalog.sources[position], this.catalog)} ${servesApps(server, this.catalog)}`
    return this.#segmentOf(all, key, () => make(all))
  }

  #bytesOf(kind: ListKind, { server, position, entry, exposed }: Exposed): Buffer {
    const runs = entry.rule?.result === undefined && runsTasks(this.catalog.sources[position], this.catalog)
    const hidesTasks = this.#form === 'wrapped+tasks' && !runs
    const exposure: Exposure = {
      kind,
      form: hidesTasks ? 'wrapped' : this.#form,
      isModern: isOfModernServer(this.catalog, position),
      exposed,
      uriPrefix: uriMode(server, this.catalog.naming) === 'namespaced' ? server.prefix : undefined,
      label: server.decorateTitles && (kind === 'tools' || kind === 'prompts') ? server.displayName : undefined,
      apps: servesApps(server, this.catalog),
      override: kind === 'tools' ? this.#overrideOf(entry) : undefined,
    }
    return this.#readyBytes(entry, exposure)
  }

  /**
   * How hosts that know only object roots get what a tool of this server returns; `entry`: of the tool, where it is listed. `isModern`:
   * it was answered by a modern server for certain, whatever its lists were read from.
   */
  outputFormOf(serverKey: string, entry: Entry | undefined, isModern: boolean): OutputForm {
    if (!isModern) {
      const position = this.catalog.sources.findIndex(({ server }) => server.key === serverKey)
      if (position === -1 || !isOfModernServer(this.catalog, position)) return 'plain'
    }
    if (entry === undefined) return 'by value'
    let form = this.#outputForms.get(entry)
    if (form === undefined) this.#outputForms.set(entry, (form = outputFormOf(entry.raw)))
    return form
  }

  #overrideOf(entry: Entry): ToolOverride | undefined {
    const exposed = this.toolset === undefined ? undefined : this.#shown?.exposedOf(entry)
    return exposed === undefined ? undefined : this.toolset?.overrideOf(exposed)
  }
}

/** Whether the lists of the source at this place were read from a modern server. */
const isOfModernServer = ({ sources }: Catalog, position: number): boolean => {
  const inventory = sources[position]?.inventory
  return inventory !== undefined && isModernRevision(inventory.revision)
}

const segment = (rows: readonly Exposed[], entries: readonly Buffer[]): Segment => ({
  rows,
  entries,
  digest: digestBytes(entries),
})

const readyList = (kind: ListKind, segments: readonly Segment[]): ReadyList => {
  const entries = segments.flatMap((one) => one.entries)
  let whole: Buffer | undefined
  return {
    kind,
    rows: segments.flatMap(({ rows }) => rows),
    entries,
    // Built on the first list request; comparing views for changes needs only digests.
    get whole() {
      return (whole ??= joinArray(entries))
    },
    digest: digestBytes(segments.map(({ digest }) => Buffer.from(digest))),
  }
}

/** The rows of a list that hold. */
export const narrowList = (list: ReadyList, isIn: (row: Exposed) => boolean): ReadyList => {
  const rows: Exposed[] = []
  const entries: Buffer[] = []
  for (const [at, row] of list.rows.entries())
    if (isIn(row)) {
      rows.push(row)
      // Cast: there is an entry for each row.
      entries.push(list.entries[at]!)
    }
  if (rows.length === list.rows.length) return list
  return {
    kind: list.kind,
    rows,
    entries,
    get whole() {
      return joinArray(entries)
    },
    get digest() {
      return digestBytes(entries)
    },
  }
}

const COMMA = Buffer.from(',')

/** `[a,b,c]` as one buffer. */
export const joinArray = (entries: readonly Buffer[]): Buffer => {
  const parts: Buffer[] = [Buffer.from('[')]
  for (const [at, entry] of entries.entries()) parts.push(...(at === 0 ? [entry] : [COMMA, entry]))
  parts.push(Buffer.from(']'))
  return Buffer.concat(parts)
}

/** The catalog of one server alone, under its own names. */
const narrowed = (catalog: Catalog, { only }: Selection): Catalog => {
  if (only === undefined) return catalog
  const sources = catalog.sources.filter(({ server }) => server.key === only)
  return buildCatalog(sources, { ...catalog.naming, prefix: 'never', originals: true })
}

const selectionId = ({ only, toolset, grants, revision }: Selection): string => {
  const text = JSON.stringify([only ?? null, toolset?.name ?? null, grants?.id ?? null, listForm(revision)])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
