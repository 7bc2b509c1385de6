/**
 * One page of a merged list. The cursor names the last row of the page before (keyset), so it needs no state, works on every replica,
 * and entries may be added or removed between two pages (BRIDGING 3.18). Cursors of servers are never exposed (B119).
 *
 * Cursors are sealed for authenticated callers only. Without authentication a cursor discloses nothing new and a forged one leads only
 * into the same list, and replicas need no common key.
 */
import type { Purpose, Seal } from '../../auth/seal.ts'
import { isJsonObject, parseJson } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { Exposed } from '../catalog.ts'
import { joinArray, narrowList } from './view.ts'
import type { ReadyList, View } from './view.ts'
import type { ListKind } from '../inventory.ts'

export interface PageLimits {
  readonly maxItems: number
  /** Bytes of all entries together; a page has at least one entry. */
  readonly maxBytes: number
}

export interface Page {
  /** The array of entries, as JSON. */
  readonly entries: Parts
  readonly nextCursor: string | undefined
}

/** The last row of a page, and the list and principal it was built for. */
interface Cursor {
  readonly kind: ListKind
  readonly view: string
  readonly principal: string
  readonly server: string
  /** Position of the server in the configuration, used if the server was removed. */
  readonly position: number
  readonly original: string
  /** Number of rows of the server sent so far, used if the row was removed. */
  readonly given: number
}

const PURPOSE: Purpose<Cursor> = 'cursor'

interface PageRequest {
  readonly kind: ListKind
  /** Absent: the first page. */
  readonly cursor?: string | undefined
  readonly principal: string
  readonly limits: PageLimits
  readonly seal: Seal
  /** Selects the rows of this caller; absent: all rows. */
  readonly isIn?: ((row: Exposed) => boolean) | undefined
}

/** Throws `Failure('state')` for a cursor that is not ours, or belongs to another list, view or principal. */
export const pageOf = (view: View, { kind, cursor, principal, limits, seal, isIn }: PageRequest): Page => {
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

/** `undefined`: not a canonical base64url text, or not a cursor. */
const decodePlain = (token: string): Cursor | undefined => {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.toString('base64url') !== token) return undefined
  const cursor = parseJson(bytes.toString())
  return isCursor(cursor) ? cursor : undefined
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

/** Index of the first row after that of the cursor. */
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
