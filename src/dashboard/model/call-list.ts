/**
 * The calls that the page holds: rows in the order of their ids, each replaced as its call goes on, with a mark where the feed has left
 * some out. Bounded: the oldest go first.
 */
import type { CallRow } from '../../observe/capture/captured.ts'

export const MAX_CALLS = 10_000
/** So many more are held before the oldest are removed together. */
const SLACK = 500

/** So many calls were not sent at this place, because the page took none. */
export interface Gap {
  readonly missed: number
  /** Of the newest call before it. */
  readonly afterId: number
}

/** One line of the list. */
export type ListItem = CallRow | Gap

export const isGap = (item: ListItem): item is Gap => 'missed' in item

export class CallList {
  #rows: CallRow[] = []
  #gaps: Gap[] = []

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

  /** Adds rows, in any order, and replaces those that are known. */
  add(rows: readonly CallRow[]): void {
    let isSorted = true
    for (const row of rows) {
      const known = this.#indexOf(row.id)
      if (known !== undefined) {
        // The end of a call is final: a page that was asked for earlier may still hold it as open.
        if (this.#rows[known]?.state !== 'done' || row.state === 'done') this.#rows[known] = row
      } else {
        if (row.id < this.latest) isSorted = false
        this.#rows.push(row)
        if (!isSorted) {
          this.#rows.sort((a, b) => a.id - b.id)
          isSorted = true
        }
      }
    }
    if (this.#rows.length > MAX_CALLS + SLACK) {
      this.#rows = this.#rows.slice(-MAX_CALLS)
      this.#gaps = this.#gaps.filter(({ afterId }) => afterId >= this.oldest)
    }
  }

  /** Many rows of one page, which are older than what is held: sorted once. */
  addPage(rows: readonly CallRow[]): void {
    const fresh = rows.filter(({ id }) => this.#indexOf(id) === undefined)
    this.add(rows.filter(({ id }) => this.#indexOf(id) !== undefined))
    this.#rows = [...this.#rows, ...fresh].sort((a, b) => a.id - b.id).slice(-MAX_CALLS)
  }

  gap(missed: number): void {
    const last = this.#gaps.at(-1)
    if (last?.afterId === this.latest) this.#gaps[this.#gaps.length - 1] = { ...last, missed: last.missed + missed }
    else this.#gaps.push({ missed, afterId: this.latest })
  }

  clear(): void {
    this.#rows = []
    this.#gaps = []
  }

  find(id: number): CallRow | undefined {
    const index = this.#indexOf(id)
    return index === undefined ? undefined : this.#rows[index]
  }

  /** Newest first, gaps between; only calls up to `untilId`, where the list stands still. */
  select(isWanted: (row: CallRow) => boolean, untilId = Infinity): ListItem[] {
    const items: ListItem[] = []
    let gap = this.#gaps.length - 1
    for (const row of this.#rows.toReversed()) {
      for (let found = this.#gaps[gap]; found !== undefined && found.afterId >= row.id; found = this.#gaps[--gap])
        if (found.afterId < untilId) items.push(found)
      if (row.id <= untilId && isWanted(row)) items.push(row)
    }
    return items
  }

  /** By halving: ids ascend. */
  #indexOf(id: number): number | undefined {
    let [low, high] = [0, this.#rows.length - 1]
    while (low <= high) {
      const middle = (low + high) >> 1
      // Cast: `middle` is of a row.
      const found = this.#rows[middle]!.id
      if (found === id) return middle
      if (found < id) low = middle + 1
      else high = middle - 1
    }
    return undefined
  }
}
