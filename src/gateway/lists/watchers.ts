/**
 * Who is told of lists that change: every session and every `subscriptions/listen`. One small record each, because there may be ten
 * thousand of them; a chain of operators for each took half of what an idle session weighs.
 */
import type { View } from '../../catalog/view/view.ts'
import type { Caller, ChangeListener, HostSession } from '../../rpc/call.ts'
import type { ChangedList } from '../../wire/protocol/methods.ts'

/** What was there when its watcher was last told: the digests of the lists of its view. */
interface Seen {
  readonly tools: string
  readonly prompts: string
  readonly resources: string
  readonly templates: string
}

interface Watcher {
  readonly caller: Caller
  readonly listener: ChangeListener
  seen: Seen
  /** Lists that were announced as the server did, and when, in monotonic milliseconds: the difference that follows is no news. */
  announced?: Map<ChangedList, number>
}

/** How long the reading of an announced list may take, before its difference counts as another change. */
const READ_WITHIN_MS = 10_000

export class Watchers {
  readonly #viewOf: (caller: Caller) => View
  readonly #watchers = new Set<Watcher>()
  /** One-entry cache: most watchers see the same lists and share one record. */
  #last: Seen | undefined

  constructor(viewOf: (caller: Caller) => View) {
    this.#viewOf = viewOf
  }

  /** Notifies `listener` of the lists that change for this caller from now on. Returns a function that stops it. */
  watch(caller: Caller, listener: ChangeListener): () => void {
    const watcher: Watcher = { caller, listener, seen: this.#see(caller) }
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
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
      watcher.listener.changed(list)
    }
  }

  /** Notifies all listeners of the end, and no more of changes. */
  close(): void {
    const watchers = [...this.#watchers]
    this.#watchers.clear()
    for (const { listener } of watchers) listener.ended?.()
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

  #differs({ announced, listener }: Watcher, list: ChangedList): void {
    const announcedMs = announced?.get(list) ?? -Infinity
    announced?.delete(list)
    if (performance.now() - announcedMs > READ_WITHIN_MS) listener.changed(list)
  }

  #see(caller: Caller): Seen {
    const view = this.#viewOf(caller)
    const digest = (kind: keyof Seen): string => view.listed(kind).digest
    const [tools, prompts, resources, templates] = [digest('tools'), digest('prompts'), digest('resources'), digest('templates')]
    const last = this.#last
    const isLast =
      last?.tools === tools && last.prompts === prompts && last.resources === resources && last.templates === templates
    return isLast ? last : (this.#last = { tools, prompts, resources, templates })
  }
}
