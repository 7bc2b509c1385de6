/**
 * Catalogs of legacy sessions with lists of their own at a server (`dynamic_lists`; BRIDGING 3.20): the common catalog with those lists
 * in place of the common ones. Modern hosts never have one (B056).
 */
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import type { HostSession } from '../../rpc/call.ts'
import { withOwnLists } from './with-own-lists.ts'

interface Own {
  /** By server key. */
  readonly inventories: Map<string, Inventory>
  /** The common catalog and the session's catalog made from it. */
  made: { readonly from: Catalog; readonly catalog: Catalog } | undefined
}

export class SessionCatalogs {
  readonly #options: () => CatalogOptions
  readonly #curator: Curator
  readonly #own = new WeakMap<HostSession, Own>()
  /** Some session has had own lists; until then calls skip the look-up. */
  #isUsed = false
  readonly #changed: (session: HostSession) => void

  /** `changed` is called when the lists of this session have changed. */
  constructor(options: () => CatalogOptions, curator: Curator, changed: (session: HostSession) => void) {
    this.#options = options
    this.#changed = changed
    this.#curator = curator
  }

  /** `inventory`: `undefined` for the common lists. */
  set(session: HostSession, key: string, inventory: Inventory | undefined): void {
    this.#isUsed = true
    const inventories = this.#own.get(session)?.inventories ?? new Map<string, Inventory>()
    if (inventory === undefined) inventories.delete(key)
    else inventories.set(key, inventory)
    if (inventories.size === 0) this.#own.delete(session)
    else this.#own.set(session, { inventories, made: undefined })
    this.#changed(session)
  }

  /** The session's catalog, based on the common catalog `from`; `undefined`: it has none. */
  of(session: HostSession, from: Catalog): Catalog | undefined {
    const own = this.#isUsed ? this.#own.get(session) : undefined
    if (own === undefined) return undefined
    if (own.made?.from !== from) {
      own.made = { from, catalog: withOwnLists(from, own.inventories, this.#curator, this.#options()) }
    }
    return own.made.catalog
  }
}
