/**
 * The calls in the page: rows in the order of their ids, replaced when their calls change, with a gap where the feed has left some out.
 * Bounded: the oldest rows are dropped first. Older calls that a search has found are kept apart: between them others are missing, so they
 * are shown to a filter only.
 */
import type { CallRow } from '../../observe/capture/captured.ts'

export const MAX_CALLS = 10_000
/** Number of rows beyond the limit at which the oldest are removed together. */
const SLACK = 500

/** Number of calls that were not sent at this position, because the page did not read. */
export interface Gap {
  readonly missed: number
  /** Id of the newest call before the gap. */
  readonly afterId: number
}

/** One line of the list. */
export type ListItem = CallRow | Gap

export const isGap = (item: ListItem): item is Gap => 'missed' in item

export class CallList {
  #rows: CallRow[] = []
  #gaps: Gap[] = []
  /** Older than all rows, by id, in the order in which they were found. */
  readonly #found = new Map<number, CallRow>()

  get size(): number {
    return this.#rows.length
  }

  /** The greatest id; 0: it is empty. */
  get latest(): number {
    return this.#rows.at(-1)?.id ?? 0
  }

  get oldest(): number {
    return this.#rows[0]?.id ?? 0
  }

  /** Ids of calls that have not ended, as far as the list knows; the newest first. */
  get openIds(): readonly number[] {
    return this.#rows.flatMap(({ id, state }) => (state === 'open' ? [id] : [])).reverse()
  }

  /** Adds rows, in any order, and replaces those that are known. */
  add(rows: readonly CallRow[]): void {
    for (const row of rows) {
      const known = this.#indexOf(row.id)
      if (known === undefined && this.#found.has(row.id)) this.#found.set(row.id, row)
      else if (known !== undefined) {
        // The end of a call is final: a page that was requested earlier may still contain it as open.
        if (this.#rows[known]?.state !== 'done' || row.state === 'done') this.#rows[known] = row
      } else {
        const isNewest = row.id > this.latest
        this.#rows.push(row)
        if (!isNewest) this.#rows.sort((a, b) => a.id - b.id)
      }
    }
    if (this.#rows.length > MAX_CALLS + SLACK) {
      this.#rows = this.#rows.slice(-MAX_CALLS)
      this.#gaps = this.#gaps.filter(({ afterId }) => afterId >= this.oldest)
    }
  }

  /** Adds the rows of one page, all older than the list: sorted once. */
  addPage(rows: readonly CallRow[]): void {
    const fresh = rows.filter(({ id }) => this.#indexOf(id) === undefined)
    this.add(rows.filter(({ id }) => this.#indexOf(id) !== undefined))
    this.#rows = [...this.#rows, ...fresh].sort((a, b) => a.id - b.id).slice(-MAX_CALLS)
  }

  /** Adds calls that a search has found, wherever they are. */
  addFound(rows: readonly CallRow[]): void {
    const older = rows.filter(({ id }) => this.#rows.length === 0 || id < this.oldest)
    this.add(rows.filter((row) => !older.includes(row)))
    for (const row of older) this.#found.set(row.id, row)
    const excess = Math.max(0, this.#found.size - MAX_CALLS)
    for (const id of [...this.#found.keys()].slice(0, excess)) this.#found.delete(id)
  }

  gap(missed: number): void {
    const last = this.#gaps.at(-1)
    if (last?.afterId === this.latest) this.#gaps[this.#gaps.length - 1] = { ...last, missed: last.missed + missed }
    else this.#gaps.push({ missed, afterId: this.latest })
  }

  clear(): void {
    this.#rows = []
    this.#gaps = []
    this.#found.clear()
  }

  find(id: number): CallRow | undefined {
    const index = this.#indexOf(id)
    return index === undefined ? this.#found.get(id) : this.#rows[index]
  }

  /** All rows, without those that were only found: newest first, with gaps between; up to `untilId` while the list is paused. */
  all(untilId = Infinity): ListItem[] {
    return this.#select(() => true, untilId)
  }

  /** The rows that match, and the found ones among them. */
  matching(isWanted: (row: CallRow) => boolean, untilId = Infinity): ListItem[] {
    const found = [...this.#found.values()].filter((row) => row.id < this.oldest && row.id <= untilId && isWanted(row))
    return [...this.#select(isWanted, untilId), ...found.sort((a, b) => b.id - a.id)]
  }

  #select(isWanted: (row: CallRow) => boolean, untilId: number): ListItem[] {
    const items: ListItem[] = []
    let gap = this.#gaps.length - 1
    for (const row of this.#rows.toReversed()) {
      for (let found = this.#gaps[gap]; found !== undefined && found.afterId >= row.id; found = this.#gaps[--gap])
        if (found.afterId < untilId) items.push(found)
      if (row.id <= untilId && isWanted(row)) items.push(row)
    }
    return items
  }

  /** Binary search: ids ascend. */
  #indexOf(id: number): number | undefined {
    let [low, high] = [0, this.#rows.length - 1]
    while (low <= high) {
      const middle = (low + high) >> 1
      // Cast: `middle` is an index of a row.
      const found = this.#rows[middle]!.id
      if (found === id) return middle
      if (found < id) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }
}
