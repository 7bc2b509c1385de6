/**
 * Who is told of lists that change: every session and every `subscriptions/listen`. One small record each, because there may be ten
 * thousand of them; a chain of operators for each took half of what an idle session weighs.
 */
import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import type { View } from '../../catalog/view/view.ts'
import type { Caller, HostSession } from '../../rpc/call.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** What was there when its watcher was last told: the digests of the lists of its view. */
interface Seen {
  readonly tools: string
  readonly prompts: string
  readonly resources: string
  readonly templates: string
}

interface Watcher {
  readonly caller: Caller
  readonly subscriber: Subscriber<ChangedList>
  seen: Seen
  /** Lists that were announced as the server did, and when, in monotonic milliseconds: the difference that follows is no news. */
  announced?: Map<ChangedList, number>
}

/** How long the reading of an announced list may take, before its difference counts as another change. */
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
      const watcher: Watcher = { caller, subscriber, seen: this.#see(caller) }
      this.#watchers.add(watcher)
      return () => this.#watchers.delete(watcher)
    })
  }

  some(isMeant: (caller: Caller) => boolean): boolean {
    for (const { caller } of this.#watchers) if (isMeant(caller)) return true
    return false
  }

  /** Notifies the watchers whose view has changed; only those of one session or principal where no other can be affected. */
  look(of: { readonly session?: HostSession; readonly principal?: string } = {}): void {
    const { session, principal } = of
    for (const watcher of this.#watchers) {
      const { caller } = watcher
      const isMeant =
        (session === undefined || caller.session === session) && (principal === undefined || caller.principal === principal)
      if (isMeant) this.#tell(watcher)
    }
  }

  /** Tells the watchers of a list that a server announced, whether it differs or not. */
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

  #tell(watcher: Watcher): void {
    // First: a view that is asked for may be of a new catalog, which is told of before this returns.
    const now = this.#see(watcher.caller)
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

  #see(caller: Caller): Seen {
    const view = this.#viewOf(caller)
    const digest = (kind: keyof Seen): string => view.listed(kind).digest
    return { tools: digest('tools'), prompts: digest('prompts'), resources: digest('resources'), templates: digest('templates') }
  }
}
