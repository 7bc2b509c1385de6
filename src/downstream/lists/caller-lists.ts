/** The lists of one server for one caller: the common lists, and those of the caller's own links. */
import type { ListKind } from '../../catalog/inventory.ts'
import type { Caller } from '../../rpc/call.ts'
import type { Links } from '../links/links.ts'
import { namedIn } from './offers.ts'
import type { Offers } from './offers.ts'
import type { LinkLists } from './link-lists.ts'

export class CallerLists {
  readonly #offers: Offers
  readonly #linkLists: LinkLists
  readonly #links: Links

  constructor(offers: Offers, linkLists: LinkLists, links: Links) {
    this.#offers = offers
    this.#linkLists = linkLists
    this.#links = links
  }

  /** Reads outdated lists again before a list request (B285); never rejects. `undefined`: nothing to wait for. */
  freshen(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind): Promise<unknown> | undefined {
    const common = this.#offers.freshen(kind)
    if (this.#links.size === 0) return common
    const own = this.#links.ofCaller(caller).map(({ owner, link }) => this.#linkLists.freshen(owner, link))
    const pending = [common, ...own].filter((one) => one !== undefined)
    return pending.length === 0 ? undefined : Promise.all(pending)
  }

  /** Whether the server lists this name to the caller, entries that are not served included. */
  names(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind, original: string): boolean {
    const isNamed = namedIn(kind, original)
    return (
      this.#offers.lists(kind, original, caller.session !== undefined) ||
      this.#links.ofCaller(caller).some(({ owner }) => this.#linkLists.names(owner, isNamed))
    )
  }
}
