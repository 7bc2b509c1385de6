/**
 * The era of calls to one server, by caller. A server whose main link is modern may accept `initialize` as well: then legacy hosts reach
 * it in their own era, and may have other lists (BRIDGING 3.0 rule 0).
 */
import type { Inventory } from '../catalog/inventory.ts'
import type { Caller } from '../rpc/call.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import { within } from '../time/within.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { MainLink } from './health/main-link.ts'
import type { Dialer } from './links/dialer.ts'
import type { Links } from './links/links.ts'
import type { Offers } from './lists/offers.ts'
import type { ServerOptions } from './options.ts'

interface ServerErasSource {
  readonly options: () => ServerOptions
  readonly dialer: Dialer
  readonly main: MainLink
  readonly links: Links
  readonly offers: Offers
}

export class ServerEras implements Sweepable {
  readonly #source: ServerErasSource
  /** Monotonic time at which legacy hosts last used a server of both eras. */
  #legacyUsedMs = 0
  /** Its legacy lists were not read in time. */
  #isLate = false

  constructor(source: ServerErasSource) {
    this.#source = source
  }

  /** The era of calls of this caller, as far as it is known. */
  eraFor({ session }: Pick<Caller, 'session'>): Era | undefined {
    const { main, dialer } = this.#source
    const era = main.current?.era
    return era === 'modern' && session !== undefined && dialer.takesInitialize && dialer.mayServeLegacy ? 'legacy' : era
  }

  /** Settles once the era of this caller's calls is known, or cannot be found out now; `undefined`: it is known. */
  settled(caller: Caller): Promise<unknown> | undefined {
    const { main, dialer, links, offers, options } = this.#source
    const isKnown =
      caller.session === undefined || main.current?.era !== 'modern' || dialer.takesInitialize || !dialer.mayServeLegacy
    if (isKnown) return undefined
    const opening = options().sharing === 'call' ? offers.legacy.want() : links.opened(caller)
    return opening.catch(() => undefined)
  }

  inventoryFor(caller: Pick<Caller, 'session'>): Inventory | undefined {
    const { main, offers } = this.#source
    const isOther = main.current === undefined ? this.#mayDifferFor(caller) : this.eraFor(caller) !== main.current.era
    return (isOther ? offers.legacy.inventory$.value : undefined) ?? offers.inventory$.value
  }

  /**
   * Whether the server may have an inventory for this caller that is not known yet and should be read: the known one is of the other era.
   * The only host of a pipe gets a stored one of the host before it, which may have had the other era.
   */
  isUnmet({ session }: Pick<Caller, 'session'>): boolean {
    const { dialer, offers } = this.#source
    const common = offers.inventory$.value
    if (this.#isLate || common === undefined || offers.legacy.inventory$.value !== undefined) return false
    const isModern = isModernRevision(common.revision)
    return session === undefined ? !isModern && dialer.mayBeModern : isModern && dialer.mayBeLegacy
  }

  /** Waits at most `budgetMs` for the lists of this caller's era, after `up`; never rejects. After a time-out later hosts do not wait again. */
  async meet({ session }: Pick<Caller, 'session'>, up: Promise<unknown>, budgetMs: number): Promise<void> {
    const met = up
      .then(() => (session === undefined ? undefined : this.wantLegacy()))
      .catch(() => undefined)
      .then(() => true)
    if ((await within(budgetMs, met)) === undefined) this.#isLate = true
  }

  /** The revision of calls of this caller. */
  revisionFor(caller: Pick<Caller, 'session'>): Revision | undefined {
    const { main, offers } = this.#source
    const { current } = main
    return this.eraFor(caller) === current?.era ? current?.revision : offers.legacy.inventory$.value?.revision
  }

  /** Settles once the legacy lists are known, or cannot be read now; `undefined`: the server has one era. */
  wantLegacy(): Promise<void> | undefined {
    const { main, dialer, offers } = this.#source
    return dialer.mayServeLegacy && main.current?.era === 'modern' ? offers.legacy.want() : undefined
  }

  /** Closes the link for legacy lists of a server of both eras once no legacy host has used it for `idleStopMs`. */
  sweep(nowMs: number): void {
    const { links, offers, options } = this.#source
    if (links.size > 0 || offers.legacy.link === undefined) this.#legacyUsedMs = nowMs
    else if (nowMs - this.#legacyUsedMs >= options().idleStopMs) offers.legacy.rest()
  }

  /** Whether the server is known to be modern and may serve this caller in the legacy era. */
  #mayDifferFor({ session }: Pick<Caller, 'session'>): boolean {
    const { dialer, offers } = this.#source
    const common = offers.inventory$.value
    return session !== undefined && common !== undefined && isModernRevision(common.revision) && dialer.mayServeLegacy
  }
}
