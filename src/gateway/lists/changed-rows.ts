/** The rows in which two states of a list differ, so that callers are notified only of rows that the policy shows them. */
import type { Exposed } from '../../catalog/catalog.ts'
import { mapRows } from '../../catalog/view/view.ts'
import type { ReadyList } from '../../catalog/view/view.ts'

export interface ChangedRows {
  /** Rows of the earlier list that are gone or differ. */
  readonly before: readonly Exposed[]
  /** Rows of the later list that are new or differ. */
  readonly now: readonly Exposed[]
  /** Whether the other rows have another order. */
  readonly isReordered: boolean
}

/** Differences by the later list: many callers share both lists. */
export class RowChanges {
  readonly #byList = new WeakMap<ReadyList, { readonly before: ReadyList; readonly changed: ChangedRows }>()

  between(before: ReadyList, now: ReadyList): ChangedRows {
    const last = this.#byList.get(now)
    if (last?.before === before) return last.changed
    const changed = changedRows(before, now)
    this.#byList.set(now, { before, changed })
    return changed
  }
}

const changedRows = (before: ReadyList, now: ReadyList): ChangedRows => {
  const later = bytesByName(now)
  const kept = mapRows(before, ({ exposed }, bytes) => (later.get(exposed)?.equals(bytes) === true ? [exposed] : [])).flat()
  const names = new Set(kept)
  const keptNow = now.rows.filter(({ exposed }) => names.has(exposed))
  return {
    before: before.rows.filter(({ exposed }) => !names.has(exposed)),
    now: now.rows.filter(({ exposed }) => !names.has(exposed)),
    isReordered: keptNow.some(({ exposed }, at) => exposed !== kept[at]),
  }
}

const bytesByName = (list: ReadyList): ReadonlyMap<string, Buffer> =>
  new Map(mapRows(list, ({ exposed }, bytes) => [exposed, bytes]))
