/**
 * MCP Apps: an app's code calls tools and reads templates by the names its author knew, not by the exposed ones, and the host
 * passes them on without saying which app it was. A bare name is believed only if exactly one server can be meant
 * (BRIDGING 3.16 rule 3; B170, B171, B265).
 */
import { isList, jsonObject, memberOf } from '../../values/json-object.ts'
import { UI_EXTENSION } from '../../wire/protocol/extensions.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { Catalog, Exposed } from '../catalog.ts'
import { servesApps } from '../catalog.ts'
import type { Routable, Route } from './routes.ts'
import type { View } from './view.ts'

/** Tools that apps may call, by original name, and templates that tools name, by original URI; of every server that has apps. */
export interface AppIndex {
  readonly tools: ReadonlyMap<string, readonly Exposed[]>
  readonly templates: ReadonlyMap<string, readonly Exposed[]>
}

interface UiMeta {
  readonly resourceUri?: string
  readonly visibility?: readonly string[]
}

export const indexApps = (catalog: Catalog): AppIndex => {
  const rows = catalog.lists.tools.filter(({ server }) => servesApps(server, catalog)).map((row) => ({ row, ui: uiOf(row) }))
  const withTemplates = new Set(rows.filter(({ ui }) => ui?.resourceUri !== undefined).map(({ row }) => row.server.key))
  const callable = rows.filter(({ row, ui }) => withTemplates.has(row.server.key) && (ui?.visibility ?? ['app']).includes('app'))
  const named = rows.filter(({ ui }) => ui?.resourceUri !== undefined)
  return {
    tools: Map.groupBy(
      callable.map(({ row }) => row),
      ({ entry }) => entry.original,
    ),
    templates: groupTemplates(named),
  }
}

/** What is declared to hosts: a single server's own settings, none of our making; `undefined`: nothing here has apps (BRIDGING 3.1). */
export const appsSettings = (view: Pick<View, 'sources' | 'apps' | 'catalog' | 'shows'>): object | undefined => {
  const declared = view.sources.flatMap(({ server, inventory }) => {
    const settings = jsonObject(memberOf(inventory?.capabilities['extensions'], UI_EXTENSION))
    return settings === undefined || !servesApps(server, view.catalog) ? [] : [settings]
  })
  if (declared.length === 1) return declared[0]
  const hasTemplates = [...view.apps.templates.values()].some((rows) => rows.some((row) => view.shows(row)))
  return declared.length > 1 || hasTemplates ? {} : undefined
}

/** The one tool of this original name that an app may call, within the caller's view. */
export const findAppTool = (view: Routable, index: AppIndex, name: string): Route | undefined =>
  only(view, index.tools.get(name), name)

/** The one server whose tools name this template. */
export const findAppTemplate = (view: Routable, index: AppIndex, uri: string): Route | undefined =>
  uri.startsWith('ui://')
    ? only(
        view,
        index.templates.get(uri)?.filter(({ server }) => view.showsUri(server, uri)),
        uri,
      )
    : undefined

/** Counted over every configured server, so that one that is down still owns its names; answered only within the view. */
const only = (view: Routable, rows: readonly Exposed[] | undefined, original: string): Route | undefined => {
  const servers = new Set(rows?.map(({ server }) => server.key))
  const row = rows?.find((one) => view.shows(one))
  if (servers.size !== 1 || row === undefined) return undefined
  return { serverKey: row.server.key, original, entry: row.entry.original === original ? row.entry : undefined }
}

const groupTemplates = (named: readonly { readonly row: Exposed; readonly ui: UiMeta | undefined }[]): Map<string, Exposed[]> => {
  const grouped = new Map<string, Exposed[]>()
  for (const { row, ui } of named) {
    const uri = ui?.resourceUri ?? ''
    grouped.set(uri, [...(grouped.get(uri) ?? []), row])
  }
  return grouped
}

const uiOf = ({ entry }: Exposed): UiMeta | undefined => {
  if (!entry.raw.includes('"ui')) return undefined
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
