/**
 * One page of a merged list. The cursor names the last row that was given (keyset), so it needs no memory, works on every
 * replica, and entries may come and go between two pages (BRIDGING 3.18). No cursor of a server is ever exposed (B119).
 *
 * It is sealed only where callers are told apart. A gateway without authentication has one caller, to whom a cursor says nothing that
 * the page before it has not said, and whom an invented one leads nowhere but into the same list: replicas then need no common key.
 */
import type { Purpose, Seal } from '../../auth/seal.ts'
import { isJsonObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { Exposed } from '../catalog.ts'
import { joinArray, narrowList } from './view.ts'
import type { ReadyList, View } from './view.ts'
import type { ListKind } from '../inventory.ts'

export interface PageLimits {
  readonly maxItems: number
  /** Of the entries together; a page holds at least one. */
  readonly maxBytes: number
}

export interface Page {
  /** The array of entries, as JSON. */
  readonly entries: Parts
  readonly nextCursor: string | undefined
}

/** The last row that was given, and for whom. */
interface Cursor {
  readonly kind: ListKind
  readonly view: string
  readonly principal: string
  readonly server: string
  /** Place of the server in the configuration, for when the server is gone. */
  readonly position: number
  readonly original: string
  /** How many rows of the server had been given, for when the row is gone and the server's own order counts. */
  readonly given: number
}

const PURPOSE: Purpose<Cursor> = 'cursor'

/**
 * The page that begins behind `cursor`, or the first. Throws `Failure('state')` for a cursor that we did not make, or made for
 * another list, view or principal. `isIn`: the rows that this caller is shown; all without it.
 */
export const pageOf = (
  view: View,
  kind: ListKind,
  cursor: string | undefined,
  limits: PageLimits,
  seal: Seal,
  principal: string,
  isIn?: (row: Exposed) => boolean,
): Page => {
  const listed = view.listed(kind)
  const list = isIn === undefined ? listed : narrowList(listed, isIn)
  const from = cursor === undefined ? 0 : behind(view, list, openCursor(seal, cursor, { kind, view: view.id, principal }))
  const to = pageEnd(list, from, limits)
  const entries = from === 0 && to === list.rows.length ? list.whole : joinArray(list.entries.slice(from, to))
  if (to === list.rows.length) return { entries: [entries], nextCursor: undefined }
  // Cast: a page has a row.
  const { server, position, entry } = list.rows[to - 1]!
  const given = list.rows.slice(0, to).filter((row) => row.server.key === server.key).length
  const last: Cursor = { kind, view: view.id, principal, server: server.key, position, original: entry.original, given }
  return { entries: [entries], nextCursor: principal === SHARED_PRINCIPAL ? encodePlain(last) : seal.seal(PURPOSE, last) }
}

const openCursor = (seal: Seal, token: string, expected: { kind: ListKind; view: string; principal: string }): Cursor => {
  const isShared = expected.principal === SHARED_PRINCIPAL
  const cursor = isShared ? decodePlain(token) : seal.open(PURPOSE, token)
  if (
    cursor === undefined ||
    cursor.kind !== expected.kind ||
    cursor.view !== expected.view ||
    cursor.principal !== expected.principal
  )
    throw new Failure('state', `a cursor of ${expected.kind} does not open or belongs elsewhere`, { executed: 'no' })
  return cursor
}

const encodePlain = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString('base64url')

/** `undefined`: not in the one spelling of ours, or not of that shape. */
const decodePlain = (token: string): Cursor | undefined => {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.toString('base64url') !== token) return undefined
  try {
    const cursor: unknown = JSON.parse(bytes.toString())
    return isCursor(cursor) ? cursor : undefined
  } catch {
    return undefined
  }
}

const isCursor = (value: unknown): value is Cursor =>
  isJsonObject(value) &&
  typeof value['kind'] === 'string' &&
  typeof value['view'] === 'string' &&
  typeof value['principal'] === 'string' &&
  typeof value['server'] === 'string' &&
  typeof value['original'] === 'string' &&
  isCount(value['position']) &&
  isCount(value['given'])

const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

/** The place of the first row that comes behind the cursor's. */
const behind = (view: View, { rows }: ReadyList, cursor: Cursor): number => {
  const same = rows.findIndex((row) => row.server.key === cursor.server && row.entry.original === cursor.original)
  if (same !== -1) return same + 1
  const source = view.catalog.sources.find(({ server }) => server.key === cursor.server)
  const first = rows.findIndex((row) => row.server.key === cursor.server)
  if (source?.inventory === undefined || first === -1)
    return orEnd(
      rows,
      rows.findIndex((row) => row.position >= positionOf(view, cursor)),
    )
  const end = orEnd(
    rows,
    rows.findIndex((row, at) => at > first && row.server.key !== cursor.server),
  )
  return Math.min(first + cursor.given, end)
}

const positionOf = (view: View, cursor: Cursor): number => {
  const position = view.catalog.sources.findIndex(({ server }) => server.key === cursor.server)
  return position === -1 ? cursor.position : position
}

const orEnd = (rows: readonly unknown[], at: number): number => (at === -1 ? rows.length : at)

const pageEnd = ({ entries }: ReadyList, from: number, { maxItems, maxBytes }: PageLimits): number => {
  let bytes = 0
  let to = from
  for (const entry of entries.slice(from, from + maxItems)) {
    bytes += entry.length + 1
    if (bytes > maxBytes && to > from) break
    to++
  }
  return to
}
