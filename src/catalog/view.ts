/**
 * What one kind of caller sees of the catalog, as bytes that are ready to send. Views of the same catalog are shared by all who
 * select the same, and an entry that did not change keeps its bytes from one catalog to the next.
 */
import { createHash } from 'node:crypto'
import type { Revision } from '../wire/revisions.ts'
import { indexApps } from './apps.ts'
import type { AppIndex } from './apps.ts'
import { buildCatalog, runsTasks, servesApps } from './catalog.ts'
import type { Catalog, CatalogSource, Exposed } from './catalog.ts'
import { digestBytes } from './digest.ts'
import type { Entry, ListKind } from './inventory.ts'
import { uriMode } from './naming.ts'
import { listForm, readyEntry } from './ready-entry.ts'
import type { Exposure, ListForm } from './ready-entry.ts'
import { indexBare } from './routes.ts'
import type { BareIndex } from './routes.ts'

export interface Selection {
  /** Keys of the servers the caller sees; all without it. */
  readonly servers?: ReadonlySet<string>
  /** Key of one server, seen alone under its original names and URIs (`/servers/<key>/mcp`). */
  readonly only?: string
  /** The host's revision: it decides how lists are worded. */
  readonly revision: Revision
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

  of(catalog: Catalog, selection: Selection): View {
    let views = this.#views.get(catalog)
    if (views === undefined) this.#views.set(catalog, (views = new Map()))
    const id = selectionId(selection)
    let view = views.get(id)
    if (view === undefined) views.set(id, (view = new View(id, narrowed(catalog, selection), selection, this.#readyBytes)))
    return view
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
  readonly #servers: ReadonlySet<string> | undefined
  readonly #form: ListForm
  readonly #readyBytes: (entry: Entry, exposure: Exposure) => Buffer
  readonly #lists = new Map<ListKind, ReadyList>()
  #bare: BareIndex | undefined
  #apps: AppIndex | undefined

  constructor(id: string, catalog: Catalog, selection: Selection, readyBytes: (entry: Entry, exposure: Exposure) => Buffer) {
    this.id = id
    this.catalog = catalog
    this.#servers = selection.servers
    this.#form = listForm(selection.revision)
    this.#readyBytes = readyBytes
  }

  sees(serverKey: string): boolean {
    return this.#servers?.has(serverKey) ?? true
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

  #makeList(kind: ListKind): ReadyList {
    const rows = this.catalog.lists[kind].filter((row) => this.sees(row.server.key))
    const entries = rows.map((row) => this.#bytesOf(kind, row))
    return { kind, rows, entries, whole: joinArray(entries), digest: digestBytes(entries) }
  }

  #bytesOf(kind: ListKind, { server, position, entry, exposed }: Exposed): Buffer {
    const runs = entry.rule?.result === undefined && runsTasks(this.catalog.sources[position], this.catalog)
    const hidesTasks = this.#form === 'wrapped+tasks' && !runs
    const exposure: Exposure = {
      kind,
      form: hidesTasks ? 'wrapped' : this.#form,
      exposed,
      uriPrefix: uriMode(server, this.catalog.naming) === 'namespaced' ? server.prefix : undefined,
      label: server.decorateTitles && (kind === 'tools' || kind === 'prompts') ? server.displayName : undefined,
      apps: servesApps(server, this.catalog),
    }
    return this.#readyBytes(entry, exposure)
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

const selectionId = ({ servers, only, revision }: Selection): string => {
  const text = JSON.stringify([only ?? null, servers === undefined ? null : [...servers].sort(), listForm(revision)])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
