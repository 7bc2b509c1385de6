/**
 * Catalogs of principals that a server lists something of their own, because each signs in there for himself: everybody's catalog
 * with those lists in it. What one is listed, nobody else sees (B250).
 */
import type { Catalog, CatalogOptions } from '../catalog/catalog.ts'
import type { Curator } from '../catalog/curated-inventory.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { View } from '../catalog/view.ts'
import type { Scope } from '../rpc/call.ts'
import { withOwnLists } from './own-lists.ts'

/** A principal's own catalog, and the views of it that were asked for. */
export interface OwnCatalog {
  readonly from: Catalog
  readonly catalog: Catalog
  readonly views: Map<Scope, (View | undefined)[]>
}

interface Own {
  /** By server key. */
  readonly inventories: Map<string, Inventory>
  /** One per catalog it was made from: everybody's, and that of hosts that run apps. */
  made: readonly OwnCatalog[]
}

const FORMS = 2

export class PersonalCatalogs {
  readonly #options: () => CatalogOptions
  readonly #own = new Map<string, Own>()
  readonly #curator: Curator
  readonly #changed: (principal: string) => void

  /** `changed`: something in the lists of this principal alone. */
  constructor(options: () => CatalogOptions, curator: Curator, changed: (principal: string) => void) {
    this.#options = options
    this.#curator = curator
    this.#changed = changed
  }

  set(principal: string, key: string, inventory: Inventory): void {
    const own = this.#own.get(principal)
    if (own?.inventories.get(key) === inventory) return
    const inventories = new Map(own?.inventories).set(key, inventory)
    this.#own.set(principal, { inventories, made: [] })
    this.#changed(principal)
  }

  /** `undefined`: the principal sees what everybody sees. */
  of(principal: string | undefined, from: Catalog): OwnCatalog | undefined {
    const own = principal === undefined || this.#own.size === 0 ? undefined : this.#own.get(principal)
    if (own === undefined) return undefined
    let made = own.made.find((one) => one.from === from)
    if (made === undefined) {
      made = { from, catalog: withOwnLists(from, own.inventories, this.#curator, this.#options()), views: new Map() }
      own.made = [made, ...own.made].slice(0, FORMS)
    }
    return made
  }
}
