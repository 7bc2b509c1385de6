/** Queries of captured calls: a page of rows, one call with its messages, and the live feed. */
import { parseFilter } from '../../observe/filter.ts'
import type { Filter } from '../../observe/filter.ts'
import type { CallDetail, CallRow } from '../../observe/capture/captured.ts'
import type { CallPage, Observer } from '../../observe/observer.ts'
import { maySee } from '../../observe/viewer.ts'
import type { Viewer } from '../../observe/viewer.ts'
import { AdminRefusal } from '../refusal.ts'

/** One message of the feed. */
export type FeedMessage =
  /** `run`: identifies the process that numbers the calls; another one begins again. */
  | { readonly type: 'hello'; readonly run: string; readonly latest: number; readonly bodies: string }
  | { readonly type: 'calls'; readonly calls: readonly CallRow[] }
  /** Number of rows that were not sent, because the reader was too slow. */
  | { readonly type: 'gap'; readonly missed: number }

/** The receiver of a feed. */
export interface FeedSink {
  /** Its queue is full. */
  readonly isStalled: boolean
  send(message: FeedMessage): void
  /** Resolves when its queue is empty. A socket is not read until then. */
  drained?(): Promise<void>
}

export interface FeedOptions {
  readonly viewer: Viewer
  readonly filter: string
  /** The feed begins with the captured calls after this id. */
  readonly after: number | undefined
  /** Both sides of each call are kept while the feed is open, independent of `ui.capture.bodies`. */
  readonly isWhole: boolean
}

const MAX_PAGE = 1_000
const DEFAULT_PAGE = 100
/** How often a reader that reads nothing is looked at. */
const STALL_PERIOD_MS = 500
/** Rows in one message. */
const BATCH = 200

/** Throws `AdminRefusal`. */
export const readFilter = (text: string): Filter => {
  const end = parseFilter(text)
  if ('filter' in end) return end.filter
  throw new AdminRefusal(400, 'filter', end.problem.message, end.problem.at)
}

/** Query: `filter`, `limit`, `before`. Throws `AdminRefusal`. */
export const pageOfCalls = (observer: Observer, viewer: Viewer, query: URLSearchParams): CallPage => {
  const limit = countOf(query, 'limit') ?? DEFAULT_PAGE
  return observer.page(
    viewer,
    readFilter(query.get('filter') ?? ''),
    Math.min(Math.max(1, limit), MAX_PAGE),
    countOf(query, 'before'),
  )
}

/** Throws the same `AdminRefusal` for a call that is not kept and for one of another caller. */
export const callDetail = (observer: Observer, viewer: Viewer, id: number): CallDetail => {
  const found = observer.find(id, viewer)
  if (found === undefined) throw new AdminRefusal(404, 'gone', `no call ${id} is kept (ui.capture.ring, ui.capture.ttl)`)
  return found
}

export const countOf = (query: URLSearchParams, name: string): number | undefined => {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^\d{1,15}$/.test(text))
    throw new AdminRefusal(400, 'query', `${name} must be a whole number, got ${JSON.stringify(text)}`)
  return Number(text)
}

/** Sends rows as calls begin and end, until the returned function is called. Throws `AdminRefusal`. */
export const followCalls = (observer: Observer, { viewer, filter: text, after }: FeedOptions, sink: FeedSink): (() => void) => {
  const filter = readFilter(text)
  if (observer.feed.readers >= observer.maxReaders) {
    observer.refusedReader()
    throw new AdminRefusal(503, 'busy', `ui.capture.readers (${observer.maxReaders}) reached`)
  }
  let missed = 0
  let waiting: NodeJS.Timeout | undefined
  const stopWaiting = (): void => {
    clearInterval(waiting)
    waiting = undefined
  }
  const sendGap = (): void => {
    if (sink.isStalled) return
    stopWaiting()
    if (missed > 0) sink.send({ type: 'gap', missed })
    missed = 0
  }
  const send = (rows: readonly CallRow[]): void => {
    if (sink.isStalled) {
      missed += rows.length
      // There may be no further call.
      waiting ??= setInterval(sendGap, STALL_PERIOD_MS).unref()
      return
    }
    sendGap()
    for (let at = 0; at < rows.length; at += BATCH) sink.send({ type: 'calls', calls: rows.slice(at, at + BATCH) })
  }
  const page = after === undefined ? undefined : observer.page(viewer, filter, MAX_PAGE)
  const isAfter = ({ id }: CallRow): boolean => id > (after ?? 0)
  const kept = page?.calls.filter(isAfter) ?? []
  // Of more than a page, the older ones are counted only.
  if (typeof page?.next === 'number' && page.next > (after ?? 0))
    missed = observer.page(viewer, filter, Infinity, page.next).calls.filter(isAfter).length
  sink.send({ type: 'hello', run: observer.run, latest: observer.latest, bodies: observer.bodies })
  if (kept.length > 0) send(kept.toReversed())
  const unsubscribe = observer.feed.subscribe((calls) => {
    const rows = calls.filter(({ principal }) => maySee(viewer, principal)).map((call) => observer.row(call))
    const nowMs = Date.now()
    const wanted = rows.filter((row) => filter(row, nowMs))
    if (wanted.length > 0) send(wanted)
  })
  return () => {
    stopWaiting()
    unsubscribe()
  }
}
