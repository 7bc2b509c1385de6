/**
 * Catalogs of principals with lists of their own at a server, because each signs in there or has its own link: the common catalog with
 * those lists. No other principal sees them (B250). Their number is limited; the least recently used is dropped first, and built again
 * on the next request from the lists of its principal's connections.
 */
import type { Catalog, CatalogOptions } from '../../catalog/catalog.ts'
import type { Curator } from '../../catalog/curate/curated-inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Scope } from '../../rpc/call.ts'
import { withOwnLists } from './with-own-lists.ts'

/** A principal's own catalog, and its views. */
interface OwnCatalog {
  readonly from: Catalog
  readonly catalog: Catalog
  readonly views: Map<Scope, (View | undefined)[]>
}

interface PersonalSource {
  readonly options: () => CatalogOptions & { readonly maxPersonalCatalogs: number }
  readonly curator: Curator
  /** The lists of a principal's current connections, by server key. */
  readonly listed: (principal: string) => ReadonlyMap<string, Inventory>
  /** Called when the lists of this principal have changed. */
  readonly changed: (principal: string) => void
  /** Called when a limit was reached. */
  readonly reached: (option: string) => void
}

interface Own {
  /** By server key. */
  readonly inventories: ReadonlyMap<string, Inventory>
  /** One per common catalog: for all hosts, for hosts that run MCP Apps, for legacy hosts. */
  made: readonly OwnCatalog[]
  /** Number of the last use. */
  usedAt: number
}

const FORMS = 3

export class PersonalCatalogs {
  readonly #source: PersonalSource
  readonly #own = new Map<string, Own>()
  #uses = 0
  /** A catalog was dropped: other principals than those in `#own` may have lists of their own. */
  #hasDropped = false

  constructor(source: PersonalSource) {
    this.#source = source
  }

  /** `inventory`: `undefined` for the common lists. */
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

  /** Removes the lists of all other servers: there principals have no connections of their own any more. */
  retain(keys: ReadonlySet<string>): void {
    for (const [principal, { inventories }] of this.#own)
      for (const key of inventories.keys()) if (!keys.has(key)) this.set(principal, key, undefined)
  }

  /** The principal's own catalog, based on the common catalog `from`; `undefined`: it has none. */
  of(principal: string | undefined, from: Catalog): OwnCatalog | undefined {
    const own = principal === undefined || this.#own.size === 0 ? undefined : this.#find(principal)
    if (own === undefined) return undefined
    own.usedAt = ++this.#uses
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
    const own: Own = { inventories, made: [], usedAt: ++this.#uses }
    this.#own.set(principal, own)
    while (this.#own.size > this.#source.options().maxPersonalCatalogs) this.#dropOldest()
    return own
  }

  #dropOldest(): void {
    let oldest = ''
    let leastUsedAt = Infinity
    for (const [principal, { usedAt }] of this.#own) if (usedAt < leastUsedAt) [oldest, leastUsedAt] = [principal, usedAt]
    this.#own.delete(oldest)
    this.#hasDropped = true
    this.#source.reached('limits.personal_catalogs')
  }
}
