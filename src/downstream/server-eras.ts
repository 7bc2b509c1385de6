/**
 * Which era one server is spoken to in for a caller. A server whose main link is modern may take `initialize` as well: then legacy hosts
 * reach it in their own era, and may be listed something else (BRIDGING 3.0 rule 0).
 */
import { firstValueFrom, from, race, tap, timer } from 'rxjs'
import type { Inventory } from '../catalog/inventory.ts'
import type { Caller } from '../rpc/call.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { MainLink } from './health/main-link.ts'
import type { Dialer } from './links/dialer.ts'
import type { Links } from './links/links.ts'
import type { Offers } from './lists/offers.ts'
import type { ServerOptions } from './options.ts'

export interface ServerErasSource {
  readonly options: () => ServerOptions
  readonly dialer: Dialer
  readonly main: MainLink
  readonly links: Links
  readonly offers: Offers
  /** Whether a modern server may serve legacy hosts in their own era, as far as is known. */
  readonly mayServeLegacy: () => boolean
}

export class ServerEras implements Sweepable {
  readonly #source: ServerErasSource
  /** Monotonic time at which legacy hosts last used a server of both eras. */
  #legacyUsedMs = 0
  /** What it says of itself to legacy hosts was waited for in vain. */
  #isLate = false

  constructor(source: ServerErasSource) {
    this.#source = source
  }

  /** The era in which calls of this caller reach the server, as far as is known. */
  eraFor({ session }: Pick<Caller, 'session'>): Era | undefined {
    const { main, dialer, mayServeLegacy } = this.#source
    const era = main.current?.era
    return era === 'modern' && session !== undefined && dialer.takesInitialize && mayServeLegacy() ? 'legacy' : era
  }

  /**
   * Settles once it is known in which era calls of this caller reach a server whose main link is modern, or that cannot be known now;
   * `undefined`: it is known. The first legacy host finds it out, by the link that its calls need.
   */
  settled(caller: Caller): Promise<unknown> | undefined {
    const { main, dialer, links, offers, options, mayServeLegacy } = this.#source
    const isKnown = caller.session === undefined || main.current?.era !== 'modern' || dialer.takesInitialize || !mayServeLegacy()
    if (isKnown) return undefined
    const opening = options().sharing === 'call' ? offers.legacy.want() : links.opened(caller)
    return opening.catch(() => undefined)
  }

  /** What the server says of itself to this caller. */
  inventoryFor(caller: Pick<Caller, 'session'>): Inventory | undefined {
    const { main, offers } = this.#source
    const isOther = main.current === undefined ? this.#mayDifferFor(caller) : this.eraFor(caller) !== main.current.era
    return (isOther ? offers.legacy.inventory$.value : undefined) ?? offers.inventory$.value
  }

  /** Whether the server may say something else of itself to this caller than what is known, and is worth being asked. */
  isUnmet(caller: Pick<Caller, 'session'>): boolean {
    return !this.#isLate && this.#source.offers.legacy.inventory$.value === undefined && this.#mayDifferFor(caller)
  }

  /**
   * Settles once it is known what the server says of itself to legacy hosts, or cannot be now, at the latest after `budgetMs`; those
   * that come later do not wait for it again. `up`: the main link is there, or cannot be. Never rejects.
   */
  async meetLegacy(up: Promise<unknown>, budgetMs: number): Promise<void> {
    const met = up.then(() => this.wantLegacy()).catch(() => undefined)
    const late = timer(budgetMs).pipe(tap(() => (this.#isLate = true)))
    await firstValueFrom(race(from(met), late))
  }

  /** The revision that is spoken to the server for this caller. */
  revisionFor(caller: Pick<Caller, 'session'>): Revision | undefined {
    const { main, offers } = this.#source
    const { current } = main
    return this.eraFor(caller) === current?.era ? current?.revision : offers.legacy.inventory$.value?.revision
  }

  /**
   * A legacy host wants lists: settles once it is known what a server of both eras lists it, or cannot be now. `undefined`: that is
   * known, or the server speaks one era alone.
   */
  wantLegacy(): Promise<void> | undefined {
    const { main, offers, mayServeLegacy } = this.#source
    return mayServeLegacy() && main.current?.era === 'modern' ? offers.legacy.want() : undefined
  }

  /** Closes the link for legacy lists of a server of both eras once no legacy host has used it for `idleStopMs`. */
  sweep(nowMs: number): void {
    const { links, offers, options } = this.#source
    if (links.size > 0 || offers.legacy.link === undefined) this.#legacyUsedMs = nowMs
    else if (nowMs - this.#legacyUsedMs >= options().idleStopMs) offers.legacy.rest()
  }

  /** The server is known to be modern, and may serve this caller in the other era. */
  #mayDifferFor({ session }: Pick<Caller, 'session'>): boolean {
    const { offers, mayServeLegacy } = this.#source
    const common = offers.inventory$.value
    return session !== undefined && common !== undefined && isModernRevision(common.revision) && mayServeLegacy()
  }
}
