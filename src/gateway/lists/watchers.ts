/**
 * Notifies sessions and `subscriptions/listen` streams of changed lists. One small record each: with ten thousand of them, an rxjs chain
 * for each took half of the memory of an idle session.
 */
import { setImmediate } from 'node:timers/promises'
import { changedKinds } from '../../catalog/inventory.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Caller, ChangeListener, HostSession } from '../../rpc/call.ts'
import { CHANGED_LISTS } from '../../wire/protocol/methods.ts'
import type { ChangedList } from '../../wire/protocol/methods.ts'
import type { Access } from '../access.ts'
import { RowChanges } from './changed-rows.ts'

/** What is kept of a view: it may be large, and of one caller alone. */
interface Seen {
  readonly digests: Readonly<Record<ListKind, string>>
  readonly view: WeakRef<View>
}

/** The policy for lists. */
export type ListAccess = Pick<Access, 'shown' | 'asksForLists'>

interface Watcher {
  readonly caller: Caller
  readonly listener: ChangeListener
  /** At the last notification. */
  seen: Seen
  /** Lists announced by `announce`, with monotonic time: the difference that follows is not notified again. */
  announced?: Map<ChangedList, number>
}

/** A list request of a session that waits for starting servers. */
interface Waiting {
  readonly kind: ListKind
  /** Sends the notification of a change that the answer contains. */
  leftOut?: () => void
}

/** How long the reading of an announced list may take; a later difference counts as another change. */
const READ_WITHIN_MS = 10_000

export class Watchers {
  readonly #viewOf: (caller: Caller) => View
  readonly #access: ListAccess
  readonly #watchers = new Map<ChangeListener, Watcher>()
  /** Most watchers have the same view, and share one record. */
  readonly #seen = new WeakMap<View, Seen>()
  readonly #changes = new RowChanges()
  readonly #waiting = new Map<HostSession, readonly Waiting[]>()

  constructor(viewOf: (caller: Caller) => View, access: ListAccess) {
    this.#viewOf = viewOf
    this.#access = access
  }

  /** Notifies `listener` of the lists that change for this caller from now on, in place of an earlier caller. */
  watch(caller: Caller, listener: ChangeListener): void {
    const watcher: Watcher = { caller, listener, seen: this.#seenOf(this.#viewOf(caller)) }
    this.#watchers.delete(listener)
    this.#watchers.set(listener, watcher)
  }

  unwatch(listener: ChangeListener): void {
    this.#watchers.delete(listener)
  }

  some(isMeant: (caller: Caller) => boolean): boolean {
    for (const { caller } of this.#watchers.values()) if (isMeant(caller)) return true
    return false
  }

  /** Notifies the watchers whose view has changed. `of`: checks only the watchers of one session or principal. */
  look(of: { readonly session?: HostSession; readonly principal?: string } = {}): void {
    const { session, principal } = of
    for (const watcher of this.#watchers.values()) {
      const { caller } = watcher
      const isMeant =
        (session === undefined || caller.session === session) && (principal === undefined || caller.principal === principal)
      if (isMeant) this.#compare(watcher)
    }
  }

  /**
   * Settles after `wait`, during which a list request of this session waits for starting servers. A change of the list meanwhile is not
   * notified, since the answer will contain it. The result sends that notification after all, for a request that fails.
   */
  async whileWaiting(
    session: HostSession,
    caller: Caller,
    kind: ListKind,
    wait: Promise<unknown>,
  ): Promise<(() => void) | undefined> {
    const waiting: Waiting = { kind }
    this.#waiting.set(session, [...(this.#waiting.get(session) ?? []), waiting])
    try {
      await wait
      // First: building the view may notify of the change.
      this.#viewOf(caller)
      return waiting.leftOut
    } catch (error) {
      waiting.leftOut?.()
      throw error
    } finally {
      const others = this.#waiting.get(session)?.filter((one) => one !== waiting) ?? []
      if (others.length === 0) this.#waiting.delete(session)
      else this.#waiting.set(session, others)
    }
  }

  /** Notifies the selected watchers of a list that a server announced, whether it differs or not. */
  announce(list: ChangedList, isMeant: (caller: Caller) => boolean): void {
    for (const watcher of this.#watchers.values()) {
      if (!isMeant(watcher.caller)) continue
      watcher.announced ??= new Map()
      watcher.announced.set(list, performance.now())
      watcher.listener.changed(list)
    }
  }

  /** Notifies each watcher of the lists that differ for it, for another reason than a changed view. Calls are served meanwhile. */
  async announceWhere(isDifferent: (caller: Caller, list: ChangedList, view: View) => boolean): Promise<void> {
    // A later watcher knows no earlier list. The views of now: the policy of now hides later changes of the rows that it has hidden.
    const all = [...this.#watchers.values()].map((watcher) => ({ watcher, view: this.#viewOf(watcher.caller) }))
    for (const { watcher, view } of all) {
      const { caller, listener } = watcher
      for (const list of CHANGED_LISTS)
        if (this.#watchers.get(listener) === watcher && isDifferent(caller, list, view)) listener.changed(list)
      await setImmediate()
    }
  }

  /** Notifies all listeners of the end, and no more of changes. */
  close(): void {
    const listeners = [...this.#watchers.keys()]
    this.#watchers.clear()
    for (const listener of listeners) listener.ended?.()
  }

  #compare(watcher: Watcher): void {
    // First: building the view may replace the catalog, which notifies watchers before this returns.
    const view = this.#viewOf(watcher.caller)
    const before = watcher.seen
    const now = this.#seenOf(view)
    watcher.seen = now
    for (const list of CHANGED_LISTS) {
      const kinds = changedKinds(list).filter((kind) => now.digests[kind] !== before.digests[kind])
      const shown = kinds.filter((kind) => this.#isShown(kind, before.view.deref(), view, watcher.caller))
      if (shown.length > 0 && !this.#isAwaited(watcher, shown, list)) this.#differs(watcher, list)
    }
  }

  /** Whether requests for all these lists wait for their answers. */
  #isAwaited({ caller, listener }: Watcher, kinds: readonly ListKind[], list: ChangedList): boolean {
    const waiting = caller.session === undefined ? undefined : this.#waiting.get(caller.session)
    if (waiting === undefined || !kinds.every((kind) => waiting.some((one) => one.kind === kind))) return false
    for (const one of waiting) if (kinds.includes(one.kind)) one.leftOut = () => listener.changed(list)
    return true
  }

  /** Whether the policy shows a changed row to this caller. True if a service decides, which is not asked, and for a freed view. */
  #isShown(kind: ListKind, before: View | undefined, now: View, caller: Caller): boolean {
    if (before === undefined || this.#access.asksForLists) return true
    const [shownBefore, shownNow] = [before, now].map((view) => this.#access.shown(view, kind, caller))
    if (typeof shownNow !== 'function' || typeof shownBefore !== 'function') return true
    const changed = this.#changes.between(before.listed(kind), now.listed(kind))
    return changed.isReordered || changed.before.some(shownBefore) || changed.now.some(shownNow)
  }

  #seenOf(view: View): Seen {
    let seen = this.#seen.get(view)
    if (seen === undefined) {
      const digest = (kind: ListKind): string => view.listed(kind).digest
      const [tools, prompts, resources, templates] = [
        digest('tools'),
        digest('prompts'),
        digest('resources'),
        digest('templates'),
      ]
      this.#seen.set(view, (seen = { digests: { tools, prompts, resources, templates }, view: new WeakRef(view) }))
    }
    return seen
  }

  #differs({ announced, listener }: Watcher, list: ChangedList): void {
    const announcedMs = announced?.get(list) ?? -Infinity
    announced?.delete(list)
    if (performance.now() - announcedMs > READ_WITHIN_MS) listener.changed(list)
  }
}
