/** The search indexes of all views: built on the first search of a view, in slices between which calls are served. */
import { setImmediate } from 'node:timers/promises'
import { ToolSearch } from '../../catalog/search/search.ts'
import type { Found } from '../../catalog/search/search.ts'
import type { ReadyList, View } from '../../catalog/view/view.ts'

/** Views of which an index is kept: the one searched longest ago goes first. */
const MAX_KEPT = 32

interface Kept {
  readonly search: ToolSearch
  /** Searches of one view wait for each other: each may find another catalog and change the index. */
  turn: Promise<unknown>
}

export class Searches {
  /** By id of the view, the last one used at the end. */
  readonly #kept = new Map<string, Kept>()

  /** Indexes in memory. */
  get size(): number {
    return this.#kept.size
  }

  /** The best `limit` tools of a view for a question; places are those in its list of tools. */
  find(view: View, question: string, limit: number): Promise<Found[]> {
    const kept = this.#kept.get(view.id) ?? { search: new ToolSearch(), turn: Promise.resolve() }
    this.#kept.delete(view.id)
    this.#kept.set(view.id, kept)
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    const found = kept.turn.then(() => findIn(kept.search, view.list('tools'), question, limit))
    kept.turn = found.catch(() => undefined)
    return found
  }
}

const findIn = async (search: ToolSearch, list: ReadyList, question: string, limit: number): Promise<Found[]> => {
  const slices = search.follow(list)
  while (slices.next().done !== true) await setImmediate()
  return search.find(list, question, limit)
}
