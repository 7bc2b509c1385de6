/**
 * Catalogs of principals that get lists of their own from a server, because each signs in there or has its own link: the common
 * catalog with those lists in it. No other principal sees them (B250). Their number is limited; the least recently used is dropped
 * first, and built again from the lists of its principal's connections on the next request.
 */
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Scope } from '../../rpc/call.ts'
import { withOwnLists } from './own-lists.ts'

/** A principal's own catalog, and the views of it that were asked for. */
export interface OwnCatalog {
  readonly from: Catalog
  readonly catalog: Catalog
  readonly views: Map<Scope, (View | undefined)[]>
}

export interface PersonalSource {
  readonly options: () => CatalogOptions & { readonly maxPersonalCatalogs: number }
  readonly curator: Curator
  /** What the connections that a principal has now list to it, by server key. */
  readonly listed: (principal: string) => ReadonlyMap<string, Inventory>
  /** Something in the lists of this principal alone is new. */
  readonly changed: (principal: string) => void
  /** A limit was. */
  readonly reached: (option: string) => void
}

interface Own {
  /** By server key. */
  readonly inventories: ReadonlyMap<string, Inventory>
  /** One per catalog it was made from: everybody's, that of hosts that run apps and that of legacy hosts. */
  made: readonly OwnCatalog[]
  /** The number of the last look at it. */
  look: number
}

const FORMS = 3

export class PersonalCatalogs {
  readonly #source: PersonalSource
  readonly #own = new Map<string, Own>()
  #looks = 0
  /** Some principal that is not here may have lists of its own all the same. */
  #hasDropped = false

  constructor(source: PersonalSource) {
    this.#source = source
  }

  /** `inventory`: `undefined` where the principal is listed what everybody is. */
  set(principal: string, key: string, inventory: Inventory | undefined): void {
    const own = this.#find(principal)
    if (own?.inventories.get(key) === inventory) return
    const inventories = new Map(own?.inventories)
    if (inventory === undefined) inventories.delete(key)
    else inventories.set(key, inventory)
    if (inventories.size === 0) this.#own.delete(principal)
    else this.#keep(principal, inventories)
    this.#source.changed(principal)
  }

  /** `undefined`: the principal sees what everybody sees. */
  of(principal: string | undefined, from: Catalog): OwnCatalog | undefined {
    const own = principal === undefined || this.#own.size === 0 ? undefined : this.#find(principal)
    if (own === undefined) return undefined
    own.look = ++this.#looks
    let made = own.made.find((one) => one.from === from)
    if (made === undefined) {
      const { curator, options } = this.#source
      made = { from, catalog: withOwnLists(from, own.inventories, curator, options()), views: new Map() }
      own.made = [made, ...own.made].slice(0, FORMS)
    }
    return made
  }

  #find(principal: string): Own | undefined {
    const own = this.#own.get(principal)
    if (own !== undefined || !this.#hasDropped) return own
    const inventories = this.#source.listed(principal)
    return inventories.size === 0 ? undefined : this.#keep(principal, inventories)
  }

  #keep(principal: string, inventories: ReadonlyMap<string, Inventory>): Own {
    const own: Own = { inventories, made: [], look: ++this.#looks }
    this.#own.set(principal, own)
    while (this.#own.size > this.#source.options().maxPersonalCatalogs) this.#dropOldest()
    return own
  }

  #dropOldest(): void {
    let oldest: string | undefined
    let look = Infinity
    for (const [principal, own] of this.#own) {
      if (own.look >= look) continue
      oldest = principal
      look = own.look
    }
    if (oldest !== undefined) this.#own.delete(oldest)
    this.#hasDropped = true
    this.#source.reached('limits.personal_catalogs')
  }
}
