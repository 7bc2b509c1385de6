/** The indexes of all views: made when somebody first searches one, and following it from catalog to catalog. */
import { ToolSearch } from './search.ts'
import type { Found } from './search.ts'
import type { View } from './view.ts'

/** Views of which an index is kept: the one searched longest ago goes first. */
const MAX_KEPT = 32

export class Searches {
  /** By id of the view, the last one used at the end. */
  readonly #kept = new Map<string, ToolSearch>()

  /** The best `limit` tools of a view for a question; places are those in its list of tools. */
  find(view: View, question: string, limit: number): Found[] {
    const search = this.#kept.get(view.id) ?? new ToolSearch()
    this.#kept.delete(view.id)
    this.#kept.set(view.id, search)
    for (const id of this.#kept.keys()) if (this.#kept.size > MAX_KEPT) this.#kept.delete(id)
    return search.find(view.list('tools'), question, limit)
  }
}
