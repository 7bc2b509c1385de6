/** The search indexes of all views: built on the first search of a view, in slices between which calls are served. */
import { setImmediate } from 'node:timers/promises'
import { ToolSearch } from '../../catalog/search/search.ts'
import type { Found } from '../../catalog/search/search.ts'
import type { ReadyList, View } from '../../catalog/view/view.ts'
import { setBounded } from '../../values/bounded-map.ts'

/** Cached indexes; the least recently used is removed first. */
const MAX_CACHED = 32

interface Cached {
  readonly search: ToolSearch
  /** The last search of the view. Searches run one after the other, since each may update the index. */
  turn: Promise<unknown>
}

export class Searches {
  /** By id of the view, the last used at the end. */
  readonly #cached = new Map<string, Cached>()

  get size(): number {
    return this.#cached.size
  }

  /** The best `limit` tools of a view for a question, by index in its list of tools. */
  find(view: View, question: string, limit: number): Promise<Found[]> {
    const cached = this.#cached.get(view.id) ?? { search: new ToolSearch(), turn: Promise.resolve() }
    setBounded(this.#cached, view.id, cached, MAX_CACHED)
    const found = cached.turn.then(() => findIn(cached.search, view.list('tools'), question, limit))
    cached.turn = found.catch(() => undefined)
    return found
  }
}

const findIn = async (search: ToolSearch, list: ReadyList, question: string, limit: number): Promise<Found[]> => {
  const slices = search.follow(list)
  while (slices.next().done !== true) await setImmediate()
  return search.find(list, question, limit)
}
