/**
 * Finds the owner of an exposed name, URI or template within one caller's view: the server and the original name. A name outside of the
 * view has no owner (`undefined`) and reaches no server.
 */
import { soleServer } from '../catalog.ts'
import type { Catalog, CatalogServer, Exposed } from '../catalog.ts'
import type { Entry, ListKind } from '../inventory.ts'
import { uriMode } from '../names/naming.ts'
import { matchesTemplate, parseTemplate } from '../names/templates.ts'
import type { UriTemplate } from '../names/templates.ts'
import { exposeUri, prefixUri, restoreUri } from '../names/uris.ts'

export interface Route {
  readonly serverKey: string
  /** Original name, URI or template. */
  readonly original: string
  /** `undefined` for an unlisted URI. */
  readonly entry: Entry | undefined
  /** The lists of the server are not known: `original` is only what the form of the name suggests. */
  readonly isByForm?: true
  /** The sign-in tool of the gateway for that server, after the lists no longer contain it. */
  readonly isSignIn?: true
}

/** Whether the route leads to the sign-in tool of the gateway, not to a tool of the server. */
export const isSignInRoute = ({ entry, isSignIn = entry?.isSignIn }: Route): boolean => isSignIn === true

/** The part of a view that routing needs. */
export interface Routable {
  readonly catalog: Catalog
  /** Whether the caller sees this row. */
  shows(row: Exposed): boolean
  /** Whether the caller sees this URI or template of a server, listed or not. */
  showsUri(server: CatalogServer, original: string): boolean
  /** Entries by original name, and the templates that may own URIs without a prefix; filled on first use. */
  readonly bare: BareIndex
}

/** Indexes by original URI and template, built once per catalog. */
export interface BareIndex {
  readonly resources: ReadonlyMap<string, readonly Exposed[]>
  readonly templates: ReadonlyMap<string, readonly Exposed[]>
  readonly patterns: readonly { readonly row: Exposed; readonly template: UriTemplate }[]
}

export const indexBare = ({ lists }: Catalog): BareIndex => ({
  resources: Map.groupBy(lists.resources, (row) => row.entry.original),
  templates: Map.groupBy(lists.templates, (row) => row.entry.original),
  patterns: lists.templates.flatMap((row) => {
    const template = parseTemplate(row.entry.original)
    return template === undefined ? [] : [{ row, template }]
  }),
})

export const findTool = (view: Routable, exposed: string): Route | undefined => findExposed(view, 'tools', exposed)

export const findPrompt = (view: Routable, exposed: string): Route | undefined => findExposed(view, 'prompts', exposed)

/** The owner of a URI (BRIDGING 4.4 rules 3 and 5): by its exposed form, else as original URI with exactly one owner. */
export const findResource = (view: Routable, uri: string): Route | undefined =>
  findExposed(view, 'resources', uri) ??
  restored(view, uri) ??
  (prefixed(view.catalog, uri) ? undefined : (onlyOwner(view, view.bare.resources.get(uri) ?? []) ?? findByTemplate(view, uri)))

/** The owner of a completion's `ref/resource`: exposed template, exposed URI, bare template, bare URI (BRIDGING 3.6). */
export const findTemplateRef = (view: Routable, ref: string): Route | undefined =>
  findExposed(view, 'templates', ref) ??
  restored(view, ref) ??
  (prefixed(view.catalog, ref) ? undefined : (onlyOwner(view, view.bare.templates.get(ref) ?? []) ?? findResource(view, ref)))

/** The route to `original` of a server, if the view shows it; used for sealed states, which contain original names. */
export const findOriginal = (
  view: Routable,
  kind: 'tools' | 'prompts' | 'resources',
  serverKey: string,
  original: string,
): Route | undefined => {
  const row = view.catalog.lists[kind].find(({ server, entry }) => server.key === serverKey && entry.original === original)
  if (row !== undefined) return view.shows(row) ? routeTo(row) : undefined
  const server = view.catalog.sources.find((source) => source.server.key === serverKey)?.server
  return kind === 'resources' && server !== undefined && view.showsUri(server, original)
    ? { serverKey, original, entry: undefined }
    : undefined
}

/**
 * The form in which hosts see a URI of this server: a read of it leads back to this server, even if other servers list the same URI
 * (B109, B161). A URI that leads to no server stays, since the host may fetch it directly.
 */
export const exposedUri = (view: Routable, server: CatalogServer, uri: string): string => {
  const { catalog, bare } = view
  const exposed = uriMode(server, catalog.naming) === 'namespaced' ? exposeUri(server.prefix, uri) : uri
  if (exposed !== uri) return exposed
  const own = bare.resources.get(uri)?.find((row) => row.server.key === server.key)
  if (own !== undefined) return own.exposed
  const route = findResource(view, uri)
  return route === undefined || route.serverKey === server.key ? uri : prefixUri(server.prefix, uri)
}

/** The exposed name of a tool that the caller may have named by its original name (BRIDGING 3.16 rule 3). */
export const exposedTool = ({ catalog }: Routable, named: string, entry: Entry | undefined): string =>
  entry === undefined || catalog.index.tools.get(named)?.entry === entry
    ? named
    : (catalog.lists.tools.find((row) => row.entry === entry)?.exposed ?? named)

const findExposed = (view: Routable, kind: ListKind, exposed: string): Route | undefined => {
  const row = view.catalog.index[kind].get(exposed)
  return row !== undefined && view.shows(row) ? routeTo(row) : undefined
}

/** The route of an exposed form, listed or not: URIs of results and expanded templates appear in no list. */
const restored = (view: Routable, uri: string): Route | undefined => {
  const { catalog } = view
  const sole = soleServer(catalog)
  const found = sole === undefined ? prefixed(catalog, uri) : { prefix: sole.prefix, original: uri }
  const server = found && catalog.byPrefix.get(found.prefix)
  return found && server && view.showsUri(server, found.original)
    ? { serverKey: server.key, original: found.original, entry: undefined }
    : undefined
}

/** A URI that begins with a configured prefix is the exposed form of that server's URI, never a bare URI of another server. */
const prefixed = (catalog: Catalog, uri: string): { prefix: string; original: string } | undefined =>
  restoreUri(uri, (prefix) => catalog.byPrefix.has(prefix))

/** Templates that are exposed unchanged come first. */
const findByTemplate = (view: Routable, uri: string): Route | undefined => {
  const rows = view.bare.patterns
    .filter(({ row, template }) => view.shows(row) && matchesTemplate(template, uri) && view.showsUri(row.server, uri))
    .map(({ row }) => row)
  const own = rows.filter((row) => row.exposed === row.entry.original)
  const owner = onlyOwner(view, own.length > 0 ? own : rows)
  return owner && { serverKey: owner.serverKey, original: uri, entry: undefined }
}

const onlyOwner = (view: Routable, rows: readonly Exposed[]): Route | undefined => {
  const [first, ...others] = rows.filter((row) => view.shows(row))
  return first !== undefined && others.every((row) => row.server.key === first.server.key) ? routeTo(first) : undefined
}

const routeTo = (row: Exposed): Route => ({ serverKey: row.server.key, original: row.entry.original, entry: row.entry })
