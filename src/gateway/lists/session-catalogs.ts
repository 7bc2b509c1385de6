/**
 * Catalogs of legacy sessions that some server lists something of their own (`dynamic_lists`; BRIDGING 3.20): everybody's catalog
 * with that server's lists in place of the common ones. Modern hosts never have one (B056).
 */
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import type { HostSession } from '../../rpc/call.ts'
import { withOwnLists } from './own-lists.ts'

interface Own {
  /** By server key. */
  readonly inventories: Map<string, Inventory>
  /** The catalog it was made from, and what was made. */
  made: { readonly from: Catalog; readonly catalog: Catalog } | undefined
}

export class SessionCatalogs {
  readonly #options: () => CatalogOptions
  readonly #curator: Curator
  readonly #own = new WeakMap<HostSession, Own>()
  /** A session has ever been listed something of its own: until then no call looks for it. */
  #isUsed = false
  readonly #changed: (session: HostSession) => void

  /** `changed`: something in the lists of this session alone. */
  constructor(options: () => CatalogOptions, curator: Curator, changed: (session: HostSession) => void) {
    this.#options = options
    this.#changed = changed
    this.#curator = curator
  }

  /** `undefined`: the server lists it what it lists to everybody. */
  set(session: HostSession, key: string, inventory: Inventory | undefined): void {
    this.#isUsed = true
    const inventories = this.#own.get(session)?.inventories ?? new Map<string, Inventory>()
    if (inventory === undefined) inventories.delete(key)
    else inventories.set(key, inventory)
    if (inventories.size === 0) this.#own.delete(session)
    else this.#own.set(session, { inventories, made: undefined })
    this.#changed(session)
  }

  /** The catalog of this session; `undefined`: everybody's, `from`. */
  of(session: HostSession, from: Catalog): Catalog | undefined {
    const own = this.#isUsed ? this.#own.get(session) : undefined
    if (own === undefined) return undefined
    if (own.made?.from !== from) {
      own.made = { from, catalog: withOwnLists(from, own.inventories, this.#curator, this.#options()) }
    }
    return own.made.catalog
  }
}
