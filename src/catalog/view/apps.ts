/**
 * MCP Apps: the code of an app uses original names of tools and templates, not exposed ones, and the host does not say which app sent a
 * request. An original name is accepted only if exactly one server can be meant (BRIDGING 3.16 rule 3; B170, B171, B265).
 */
import { isList, jsonObject, memberOf } from '../../values/json-object.ts'
import { UI_EXTENSION } from '../../wire/protocol/extensions.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { Catalog, Exposed } from '../catalog.ts'
import type { Entry } from '../inventory.ts'
import { servesApps } from '../catalog.ts'
import type { Routable, Route } from './routes.ts'
import type { View } from './view.ts'

/** Of all servers with apps: tools that apps may call, by original name, and templates that tools refer to, by original URI. */
export interface AppIndex {
  readonly tools: ReadonlyMap<string, readonly Exposed[]>
  readonly templates: ReadonlyMap<string, readonly Exposed[]>
  /** Tools of all servers that models must not see (`visibility` without `model`). */
  readonly appOnly: ReadonlySet<Entry>
}

interface UiMeta {
  readonly resourceUri?: string
  readonly visibility?: readonly string[]
}

export const indexApps = (catalog: Catalog): AppIndex => {
  const all = catalog.lists.tools.map((row) => ({ row, ui: uiOf(row) }))
  const rows = all.filter(({ row }) => servesApps(row.server, catalog))
  const withTemplates = new Set(rows.filter(({ ui }) => ui?.resourceUri !== undefined).map(({ row }) => row.server.key))
  const callable = rows.filter(({ row, ui }) => withTemplates.has(row.server.key) && (ui?.visibility ?? ['app']).includes('app'))
  const named = rows.filter(({ ui }) => ui?.resourceUri !== undefined)
  return {
    tools: Map.groupBy(
      callable.map(({ row }) => row),
      ({ entry }) => entry.original,
    ),
    templates: new Map(
      [...Map.groupBy(named, ({ ui }) => ui?.resourceUri ?? '')].map(([uri, all]) => [uri, all.map(({ row }) => row)]),
    ),
    appOnly: new Set(all.filter(({ ui }) => ui?.visibility?.includes('model') === false).map(({ row }) => row.entry)),
  }
}

/** The declared settings: those of the only server with apps, else empty ones; `undefined`: no server has apps (BRIDGING 3.1). */
export const appsSettings = (view: Pick<View, 'sources' | 'apps' | 'catalog' | 'shows'>): object | undefined => {
  const declared = view.sources.flatMap(({ server, inventory }) => {
    const settings = jsonObject(memberOf(inventory?.capabilities['extensions'], UI_EXTENSION))
    return settings === undefined || !servesApps(server, view.catalog) ? [] : [settings]
  })
  if (declared.length === 1) return declared[0]
  const hasTemplates = [...view.apps.templates.values()].some((rows) => rows.some((row) => view.shows(row)))
  return declared.length > 1 || hasTemplates ? {} : undefined
}

/** The only tool of this original name that an app may call, within the caller's view. */
export const findAppTool = (view: Routable, index: AppIndex, name: string): Route | undefined =>
  only(index.tools.get(name), name, (row) => view.shows(row))

/** The template of the only server whose tools refer to this URI. */
export const findAppTemplate = (view: Routable, index: AppIndex, uri: string): Route | undefined =>
  uri.startsWith('ui://')
    ? only(index.templates.get(uri), uri, (row) => view.shows(row) && view.showsUri(row.server, uri))
    : undefined

/** Counts all configured servers, so that one that is down or hidden still owns its names, but returns only shown rows. */
const only = (rows: readonly Exposed[] | undefined, original: string, isShown: (row: Exposed) => boolean): Route | undefined => {
  const servers = new Set(rows?.map(({ server }) => server.key))
  const row = rows?.find(isShown)
  if (servers.size !== 1 || row === undefined) return undefined
  return { serverKey: row.server.key, original, entry: row.entry.original === original ? row.entry : undefined }
}

/** Whether the original URI of the tool's app does not lead to the tool's server, since another server has the same (decision 0327). */
export const isAppElsewhere = ({ bare, apps }: Pick<View, 'bare' | 'apps'>, tool: Exposed): boolean => {
  const uri = uiOf(tool)?.resourceUri
  if (uri === undefined) return false
  const isOwn = ({ server }: Exposed): boolean => server.key === tool.server.key
  const listed = bare.resources.get(uri) ?? []
  const own = listed.find(isOwn)
  if (own !== undefined) return own.exposed !== uri
  return [...listed, ...(apps.templates.get(uri) ?? [])].some((row) => !isOwn(row))
}

const uiOf = ({ entry }: Exposed): UiMeta | undefined => {
  // Keys and texts may be written with escapes (B269).
  if (!entry.raw.includes('"ui') && !entry.raw.includes('\\u')) return undefined
  const meta = Payload.at(entry.raw).object('_meta')
  const ui = jsonObject(meta?.value('ui'))
  const older = meta?.text('ui/resourceUri')
  if (ui === undefined) return older === undefined ? undefined : { resourceUri: older }
  const { resourceUri, visibility } = ui
  return {
    ...(typeof resourceUri === 'string' && { resourceUri }),
    ...(isList(visibility) && { visibility: visibility.filter((one) => typeof one === 'string') }),
  }
}
