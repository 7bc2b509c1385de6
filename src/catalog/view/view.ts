/**
 * The part of the catalog that one kind of caller sees, as bytes ready to send. Callers with the same selection share a view; an
 * unchanged entry keeps its bytes from one catalog to the next.
 */
import { createHash } from 'node:crypto'
import type { OutputForm } from '../../era/host/projections.ts'
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import { indexApps, isAppElsewhere } from './apps.ts'
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
import { estimateAll } from '../tokens.ts'
import type { ToolOverride } from '../curate/override.ts'
import type { Budget, Toolset } from './toolset.ts'
import { outputFormOf } from './wrap-schema.ts'

export interface Selection {
  /** The toolset of the caller's path and credential; absent: everything. */
  readonly toolset?: Toolset | undefined
  /** Access by the caller's scopes; absent: everything. */
  readonly grants?: Grants | undefined
  /** Key of the only server, shown under its original names and URIs (`/servers/<key>/mcp`). */
  readonly only?: string
  /** The host's revision, which decides the form of lists. */
  readonly revision: Revision
}

/** The part of one server in a list: rows and, at the same indexes, their bytes. */
interface Segment {
  readonly rows: readonly Exposed[]
  readonly entries: readonly Buffer[]
  readonly digest: string
}

/** One list of a view: rows and, at the same indexes, their bytes. */
export interface ReadyList {
  readonly kind: ListKind
  readonly rows: readonly Exposed[]
  readonly entries: readonly Buffer[]
  /** All entries as one JSON array. */
  readonly whole: Buffer
  /** Equal digests: no difference for the host. */
  readonly digest: string
}

/** Values by an object and a text, freed with the object. */
class Variants<K extends object, V> {
  readonly #byKey = new WeakMap<K, Map<string, V>>()

  of(key: K, variant: string, make: () => V): V {
    let variants = this.#byKey.get(key)
    if (variants === undefined) this.#byKey.set(key, (variants = new Map()))
    let value = variants.get(variant)
    if (value === undefined) variants.set(variant, (value = make()))
    return value
  }
}

/** Builds and caches views; one per process. */
export class Views {
  readonly #views = new Variants<Catalog, View>()
  /** By catalog, toolset and scopes: the same for all revisions, and for a server alone. */
  readonly #shown = new Variants<Catalog, Shown>()
  readonly #built: BuiltParts = { entries: new Variants(), segments: new Variants() }

  of(catalog: Catalog, selection: Selection): View {
    const { toolset, grants } = selection
    const id = selectionId(selection)
    return this.#views.of(catalog, id, () => {
      const key = JSON.stringify([toolset?.name, grants?.id])
      const isLimited = toolset !== undefined || grants !== undefined
      const shown = isLimited ? this.#shown.of(catalog, key, () => new Shown(catalog, { toolset, grants })) : undefined
      return new View(id, narrowed(catalog, selection), selection, shown, this.#built)
    })
  }
}

/** Bytes that views share. */
interface BuiltParts {
  /** By entry and exposure. */
  readonly entries: Variants<Entry, Buffer>
  /** By the rows of a server, which are the same object while the server does not change, and everything else its bytes depend on. */
  readonly segments: Variants<readonly Exposed[], Segment>
}

export class View {
  /** Names the selection; the same for every catalog. */
  readonly id: string
  readonly catalog: Catalog
  readonly toolset: Toolset | undefined
  readonly #grants: Grants | undefined
  readonly #shown: Shown | undefined
  readonly #form: ListForm
  readonly #built: BuiltParts
  readonly #lists = new Map<ListKind, ReadyList>()
  readonly #outputForms = new WeakMap<Entry, OutputForm>()
  #toolsToSearch: ReadyList | undefined
  #tokens: number | undefined
  #bare: BareIndex | undefined
  #apps: AppIndex | undefined
  /** Server and plain spelling of the listed URIs and templates that are hidden. */
  #hiddenPlain: ReadonlySet<string> | undefined

  constructor(id: string, catalog: Catalog, selection: Selection, shown: Shown | undefined, built: BuiltParts) {
    const { toolset, grants, revision } = selection
    this.id = id
    this.catalog = catalog
    this.toolset = toolset
    this.#grants = grants
    this.#shown = shown
    this.#form = listForm(revision)
    this.#built = built
  }

  /** Whether the view contains anything of the server. */
  sees(serverKey: string): boolean {
    return this.#shown?.hasServer(serverKey) ?? true
  }

  /** Whether toolset and scopes allow all of the server, also what no list can show. */
  allowsAllOf(server: CatalogServer): boolean {
    return this.toolset?.holdsAll(server) !== false && this.#grants?.writes(server.key) !== false
  }

  /** The common predicate of lists, routes, completion, subscriptions and tasks. */
  shows({ entry }: Exposed): boolean {
    return this.#shown?.has(entry) ?? true
  }

  /** Whether the view shows a URI or template, listed or not. URIs of a shown template or app are shown with it. */
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
    const plain = isExpanded ? plainUri(original) : undefined
    return plain !== undefined && !this.#hidesPlain(server, plain)
  }

  /** Whether the server lists a hidden resource or template with this plain spelling. */
  #hidesPlain({ key }: CatalogServer, plain: string): boolean {
    this.#hiddenPlain ??= new Set(
      [...this.catalog.lists.resources, ...this.catalog.lists.templates]
        .filter((row) => !this.shows(row))
        .map(({ server, entry }) => `${server.key} ${plainUri(entry.original)}`),
    )
    return this.#hiddenPlain.has(`${key} ${plain}`)
  }

  /** Whether URIs of the server are exposed with its prefix. */
  isNamespaced(server: CatalogServer): boolean {
    return uriMode(server, this.catalog.naming) === 'namespaced'
  }

  /** Whether URIs in results of the server may have another exposed form: with several servers another one may own them. */
  mayRenameUris(server: CatalogServer): boolean {
    return this.catalog.sources.length > 1 || this.isNamespaced(server)
  }

  /** Whether a call of this tool needs the write scope; true for an unlisted tool. */
  isWrite(exposed: string): boolean {
    const row = this.catalog.index.tools.get(exposed)
    return row === undefined || isWrite('tools', row, this.toolset)
  }

  /** Whether the hint applies to this tool. */
  holds(hint: HintName, tool: { readonly server: CatalogServer; readonly entry: Entry }): boolean {
    return holds(hint, tool, this.#overrideOf(tool.entry)?.annotations)
  }

  /** Whether a person must confirm calls of this tool. The sign-in tool asks by itself. */
  confirms(entry: Entry): boolean {
    if (entry.isSignIn === true) return false
    const exposed = this.#nameInToolset(entry)
    return exposed !== undefined && this.toolset?.isConfirmed(exposed) === true
  }

  /** Whether a tool is listed even if hosts must search (`always`). */
  isAlways({ entry }: Exposed): boolean {
    const exposed = this.#nameInToolset(entry)
    return exposed !== undefined && this.toolset?.isAlways(exposed) === true
  }

  /** Number of all its tools, and their estimated tokens. */
  get cost(): Budget {
    const { rows, entries } = this.list('tools')
    return { tools: rows.length, tokens: (this.#tokens ??= estimateAll(entries)) }
  }

  /** Whether `cost` exceeds the toolset's budget. */
  get isOverBudget(): boolean {
    const budget = this.toolset?.budget
    return budget !== undefined && (this.cost.tools > budget.tools || this.cost.tokens > budget.tokens)
  }

  /** Whether hosts must search the tools instead of listing all of them (`discovery`). */
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

  /** The list sent to hosts: `list`, or for a searched view the meta tools and the tools of `always`. */
  listed(kind: ListKind): ReadyList {
    return kind === 'tools' && this.isSearched ? (this.#toolsToSearch ??= this.#makeToolsToSearch()) : this.list(kind)
  }

  #makeToolsToSearch(): ReadyList {
    const own = metaTools(this.sources.map(({ server }) => server))
    const always = narrowList(this.list('tools'), (row) => this.isAlways(row) && !isMetaTool(row.exposed))
    const entries = [...own.map(({ entry }) => entry.raw), ...always.entries]
    return readyList('tools', [segment([...own, ...always.rows], entries)])
  }

  #makeList(kind: ListKind): ReadyList {
    const segments = this.catalog.parts[kind].map(({ rows }) => this.#segment(kind, rows)).filter(({ rows }) => rows.length > 0)
    return readyList(kind, segments)
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
    if (kind === 'tools' && this.#mayRenameApps(server)) return make(all)
    const key = `${this.#form} ${runsTasks(this.catalog.sources[position], this.catalog)} ${servesApps(server, this.catalog)}`
    return this.#built.segments.of(all, key, () => make(all))
  }

  /** Whether the server has original URIs, of which some of its apps may need another form (`isAppElsewhere`). */
  #mayRenameApps(server: CatalogServer): boolean {
    return !this.isNamespaced(server) && this.mayRenameUris(server) && this.apps.templates.size > 0
  }

  #bytesOf(kind: ListKind, row: Exposed): Buffer {
    const { server, position, entry, exposed } = row
    const isRenamed = kind === 'tools' && this.#mayRenameApps(server) && isAppElsewhere(this, row)
    const runs = entry.rule?.result === undefined && runsTasks(this.catalog.sources[position], this.catalog)
    const hidesTasks = this.#form === 'wrapped+tasks' && !runs
    const exposure: Exposure = {
      kind,
      form: hidesTasks ? 'wrapped' : this.#form,
      isModern: isOfModernServer(this.catalog, position),
      exposed,
      uriPrefix: isRenamed || this.isNamespaced(server) ? server.prefix : undefined,
      label: server.decorateTitles && (kind === 'tools' || kind === 'prompts') ? server.displayName : undefined,
      apps: servesApps(server, this.catalog),
      hidesOutput: this.catalog.naming.outputSchemas === false,
      override: kind === 'tools' ? this.#overrideOf(entry) : undefined,
    }
    return this.#built.entries.of(entry, JSON.stringify(exposure), () => readyEntry(entry.raw, exposure))
  }

  /**
   * Form of a tool's structured content for hosts that accept only objects. `entry`: `undefined` for an unlisted tool. `isModern`: the
   * answer is known to come from a modern server, whatever the era of its lists.
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
    const exposed = this.#nameInToolset(entry)
    return exposed === undefined ? undefined : this.toolset?.overrideOf(exposed)
  }

  #nameInToolset(entry: Entry): string | undefined {
    return this.toolset === undefined ? undefined : this.#shown?.exposedOf(entry)
  }
}

/** Whether the lists of the source at this position were read from a modern server. */
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

/** Each row of a list with its bytes. */
export const mapRows = <T>({ rows, entries }: ReadyList, map: (row: Exposed, bytes: Buffer) => T): T[] =>
  // Cast: there is an entry for each row.
  rows.map((row, at) => map(row, entries[at]!))

/** The list without the rows for which `isIn` is false. */
export const narrowList = (list: ReadyList, isIn: (row: Exposed) => boolean): ReadyList => {
  const isKept = list.rows.map(isIn)
  if (!isKept.includes(false)) return list
  const rows = list.rows.filter((_, at) => isKept[at])
  const entries = list.entries.filter((_, at) => isKept[at])
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

/** The catalog of one server alone, under its original names. */
const narrowed = (catalog: Catalog, { only }: Selection): Catalog => {
  if (only === undefined) return catalog
  const sources = catalog.sources.filter(({ server }) => server.key === only)
  return buildCatalog(sources, { ...catalog.naming, prefix: 'never', originals: true })
}

const selectionId = ({ only, toolset, grants, revision }: Selection): string => {
  const text = JSON.stringify([only ?? null, toolset?.name ?? null, grants?.id ?? null, listForm(revision)])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
