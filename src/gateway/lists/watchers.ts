/**
 * Notifies sessions and `subscriptions/listen` streams of changed lists. One small record each: with ten thousand of them, an rxjs chain
 * for each took half of the memory of an idle session.
 */
import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import type { View } from '../../catalog/view/view.ts'
import type { Caller, HostSession } from '../../rpc/call.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** Digests of the lists of a view. */
interface Digests {
  readonly tools: string
  readonly prompts: string
  readonly resources: string
  readonly templates: string
}

interface Watcher {
  readonly caller: Caller
  readonly subscriber: Subscriber<ChangedList>
  /** At the last notification. */
  seen: Digests
  /** Lists announced by `announce`, with monotonic time: the difference that follows is not notified again. */
  announced?: Map<ChangedList, number>
}

/** How long the reading of an announced list may take; a later difference counts as another change. */
const READ_WITHIN_MS = 10_000

export class Watchers {
  readonly #viewOf: (caller: Caller) => View
  readonly #watchers = new Set<Watcher>()

  constructor(viewOf: (caller: Caller) => View) {
    this.#viewOf = viewOf
  }

  /** The lists that change for this caller from now on. Completes with `close`. */
  watch(caller: Caller): Observable<ChangedList> {
    return new Observable((subscriber) => {
      const watcher: Watcher = { caller, subscriber, seen: this.#digestsOf(caller) }
      this.#watchers.add(watcher)
      return () => this.#watchers.delete(watcher)
    })
  }

  some(isMeant: (caller: Caller) => boolean): boolean {
    for (const { caller } of this.#watchers) if (isMeant(caller)) return true
    return false
  }

  /** Notifies the watchers whose view has changed. `of`: checks only the watchers of one session or principal. */
  look(of: { readonly session?: HostSession; readonly principal?: string } = {}): void {
    const { session, principal } = of
    for (const watcher of this.#watchers) {
      const { caller } = watcher
      const isMeant =
        (session === undefined || caller.session === session) && (principal === undefined || caller.principal === principal)
      if (isMeant) this.#compare(watcher)
    }
  }

  /** Notifies the selected watchers of a list that a server announced, whether it differs or not. */
  announce(list: ChangedList, isMeant: (caller: Caller) => boolean): void {
    for (const watcher of this.#watchers) {
      if (!isMeant(watcher.caller)) continue
      watcher.announced ??= new Map()
      watcher.announced.set(list, performance.now())
      watcher.subscriber.next(list)
    }
  }

  close(): void {
    for (const { subscriber } of this.#watchers) subscriber.complete()
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

  #differs({ announced, subscriber }: Watcher, list: ChangedList): void {
    const announcedMs = announced?.get(list) ?? -Infinity
    announced?.delete(list)
    if (performance.now() - announcedMs > READ_WITHIN_MS) subscriber.next(list)
  }

  #digestsOf(caller: Caller): Digests {
    const view = this.#viewOf(caller)
    const digest = (kind: keyof Digests): string => view.listed(kind).digest
    return { tools: digest('tools'), prompts: digest('prompts'), resources: digest('resources'), templates: digest('templates') }
  }
}
