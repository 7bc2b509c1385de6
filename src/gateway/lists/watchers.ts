/**
 * Notifies sessions and `subscriptions/listen` streams of changed lists. One small record each: with ten thousand of them, an rxjs chain
 * for each took half of the memory of an idle session.
 */
import { setImmediate } from 'node:timers/promises'
import type { View } from '../../catalog/view/view.ts'
import type { Caller, ChangeListener, HostSession } from '../../rpc/call.ts'
import { CHANGED_LISTS } from '../../wire/protocol/methods.ts'
import type { ChangedList } from '../../wire/protocol/methods.ts'

/** Digests of the lists of a view. */
interface Digests {
  readonly tools: string
  readonly prompts: string
  readonly resources: string
  readonly templates: string
}

interface Watcher {
  readonly caller: Caller
  readonly listener: ChangeListener
  /** At the last notification. */
  seen: Digests
  /** Lists announced by `announce`, with monotonic time: the difference that follows is not notified again. */
  announced?: Map<ChangedList, number>
}

/** How long the reading of an announced list may take; a later difference counts as another change. */
const READ_WITHIN_MS = 10_000

export class Watchers {
  readonly #viewOf: (caller: Caller) => View
  readonly #watchers = new Map<ChangeListener, Watcher>()
  /** One-entry cache: most watchers see the same lists and share one record. */
  #last: Digests | undefined

  constructor(viewOf: (caller: Caller) => View) {
    this.#viewOf = viewOf
  }

  /** Notifies `listener` of the lists that change for this caller from now on, in place of an earlier caller. */
  watch(caller: Caller, listener: ChangeListener): void {
    const watcher: Watcher = { caller, listener, seen: this.#digestsOf(caller) }
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
  async announceWhere(isDifferent: (caller: Caller, list: ChangedList) => boolean): Promise<void> {
    // A later watcher knows no earlier list.
    const all = [...this.#watchers.values()]
    for (const watcher of all) {
      for (const list of CHANGED_LISTS)
        if (this.#watchers.get(watcher.listener) === watcher && isDifferent(watcher.caller, list)) watcher.listener.changed(list)
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
    const now = this.#digestsOf(watcher.caller)
    const before = watcher.seen
    watcher.seen = now
    if (now.tools !== before.tools) this.#differs(watcher, 'tools')
    if (now.prompts !== before.prompts) this.#differs(watcher, 'prompts')
    if (now.resources !== before.resources || now.templates !== before.templates) this.#differs(watcher, 'resources')
  }

  #differs({ announced, listener }: Watcher, list: ChangedList): void {
    const announcedMs = announced?.get(list) ?? -Infinity
    announced?.delete(list)
    if (performance.now() - announcedMs > READ_WITHIN_MS) listener.changed(list)
  }

  #digestsOf(caller: Caller): Digests {
    const view = this.#viewOf(caller)
    const digest = (kind: keyof Digests): string => view.listed(kind).digest
    const [tools, prompts, resources, templates] = [digest('tools'), digest('prompts'), digest('resources'), digest('templates')]
    const last = this.#last
    const isLast =
      last?.tools === tools && last.prompts === prompts && last.resources === resources && last.templates === templates
    return isLast ? last : (this.#last = { tools, prompts, resources, templates })
  }
}
