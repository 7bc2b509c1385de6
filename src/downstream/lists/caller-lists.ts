/** What one server lists to one caller: the common lists, and those of the caller's own links. */
import type { ListKind } from '../../catalog/inventory.ts'
import type { Caller } from '../../rpc/call.ts'
import type { Links } from '../links/links.ts'
import { namedIn } from './offers.ts'
import type { Offers } from './offers.ts'
import type { OwnLists } from './own-lists.ts'

export class CallerLists {
  readonly #offers: Offers
  readonly #ownLists: OwnLists
  readonly #links: Links

  constructor(offers: Offers, ownLists: OwnLists, links: Links) {
    this.#offers = offers
    this.#ownLists = ownLists
    this.#links = links
  }

  /**
   * Settles once a list is as new as this caller expects when it asks for it (B285); never rejects. `undefined`: nothing to wait for.
   */
  freshen(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind): Promise<unknown> | undefined {
    const common = this.#offers.freshen(kind)
    if (this.#links.size === 0) return common
    const own = this.#links.ofCaller(caller).map(({ owner, link }) => this.#ownLists.freshen(owner, link))
    const pending = [common, ...own].filter((one) => one !== undefined)
    return pending.length === 0 ? undefined : Promise.all(pending)
  }

  /** Whether the server lists this to the caller, be it left out of what hosts are served. */
  names(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind, original: string): boolean {
    const isNamed = namedIn(kind, original)
    return (
      this.#offers.lists(kind, original, caller.session !== undefined) ||
      this.#links.ofCaller(caller).some(({ owner }) => this.#ownLists.names(owner, isNamed))
    )
  }
}
