/**
 * Changes of the catalog with their times: the prompt of a model begins with the list of tools, so each change of its bytes invalidates
 * the prompt cache of every conversation. Recorded while it is watched, in memory; the oldest changes are dropped.
 */
import type { Subscription } from 'rxjs'
import { LIST_KINDS } from '../../catalog/inventory.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { mapRows } from '../../catalog/view/view.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Feed } from '../../gateway/lists/feed.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** One entry that changed for hosts. */
export interface EntryChange {
  readonly kind: ListKind
  /** Exposed name. */
  readonly name: string
  /** Key of the server. */
  readonly server: string
  readonly change: 'added' | 'removed' | 'changed'
  /** Estimated difference. */
  readonly tokens: number
  /** The listed definitions as JSON text; `null`: there was none, or it is too long. */
  readonly from: string | null
  readonly to: string | null
}

/** One change of the catalog. */
export interface CatalogChange {
  /** ISO 8601. */
  readonly at: string
  /** Number of listed tools after the change. */
  readonly tools: number
  readonly tokens: number
  /** Only the order differs. */
  readonly isOrder: boolean
  readonly entries: readonly EntryChange[]
  /** Number of further changes that are not in `entries`. */
  readonly more: number
}

export interface CatalogHistory {
  /** ISO 8601: start of watching; `null`: it is not watched. */
  readonly since: string | null
  /** Oldest first. */
  readonly changes: readonly CatalogChange[]
}

const MAX_CHANGES = 100
const MAX_ENTRIES = 50
const MAX_DEFINITION_BYTES = 16 * 1024

/** The listed entries, by kind and name. */
type Listed = ReadonlyMap<
  string,
  { readonly kind: ListKind; readonly name: string; readonly server: string; readonly bytes: Buffer }
>

export class HistoryKeeper implements Disposable {
  readonly #feed: Feed
  #since: string | null = null
  #watching: Subscription | undefined
  #listed: Listed = new Map()
  #digest = ''
  #changes: CatalogChange[] = []

  constructor(feed: Feed) {
    this.#feed = feed
  }

  get all(): CatalogHistory {
    return { since: this.#since, changes: this.#changes }
  }

  /** Begins, or ends and clears the changes. */
  watch(isWatched: boolean): void {
    if (isWatched === (this.#watching !== undefined)) return
    this.#watching?.unsubscribe()
    this.#watching = undefined
    this.#changes = []
    this.#since = isWatched ? new Date().toISOString() : null
    this.#listed = new Map()
    this.#digest = ''
    if (isWatched) this.#watching = this.#feed.catalog$.subscribe(() => this.#compare())
  }

  [Symbol.dispose](): void {
    this.watch(false)
  }

  #compare(): void {
    const view = this.#feed.whole(MODERN)
    const digest = LIST_KINDS.map((kind) => view.list(kind).digest).join(' ')
    if (digest === this.#digest) return
    const isFirst = this.#digest === ''
    this.#digest = digest
    const before = this.#listed
    this.#listed = listedIn(view)
    if (isFirst) return
    const entries = changedEntries(before, this.#listed)
    const { tools, tokens } = view.cost
    const isOrder = entries.length === 0
    const change = { at: new Date().toISOString(), tools, tokens, isOrder, entries: entries.slice(0, MAX_ENTRIES) }
    this.#changes = [...this.#changes, { ...change, more: Math.max(0, entries.length - MAX_ENTRIES) }].slice(-MAX_CHANGES)
  }
}

const listedIn = (view: View): Listed =>
  new Map(
    LIST_KINDS.flatMap((kind) =>
      mapRows(view.list(kind), ({ exposed, server }, bytes) => {
        const listed = { kind, name: exposed, server: server.key, bytes }
        return [`${kind} ${exposed}`, listed] as const
      }),
    ),
  )

const changedEntries = (before: Listed, after: Listed): EntryChange[] =>
  [...new Set([...before.keys(), ...after.keys()])].flatMap((key): EntryChange[] => {
    const [from, to] = [before.get(key), after.get(key)]
    const known = to ?? from
    if (known === undefined || (from !== undefined && to !== undefined && from.bytes.equals(to.bytes))) return []
    const change = from === undefined ? 'added' : to === undefined ? 'removed' : 'changed'
    const tokens = (to === undefined ? 0 : estimateTokens(to.bytes)) - (from === undefined ? 0 : estimateTokens(from.bytes))
    const { kind, name, server } = known
    return [{ kind, name, server, change, tokens, from: textOf(from?.bytes), to: textOf(to?.bytes) }]
  })

const textOf = (bytes: Buffer | undefined): string | null =>
  bytes === undefined || bytes.length > MAX_DEFINITION_BYTES ? null : bytes.toString()
