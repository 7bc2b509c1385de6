/**
 * What a server lists to hosts of one kind where that may differ from its common lists: hosts that run MCP Apps ([ext apps]; BRIDGING
 * 3.16), and legacy hosts of a server that speaks both eras (BRIDGING 3.0 rule 0). Read only once such a host is there, since it may take
 * a link of its own; lists that are known but not kept may be those of an earlier run, or of before a link rested.
 */
import { BehaviorSubject } from 'rxjs'
import type { Inventory } from '../../catalog/inventory.ts'
import type { Link } from '../../era/server/link.ts'
import { isForgotten } from '../pacing/retries.ts'

/** What of a server this needs. */
export interface OtherListsSource {
  /** The main link, while it is up. */
  readonly main: () => Link | undefined
  /** Whether the lists can be read over the main link, take a link of their own, or do not exist. */
  readonly over: (main: Link) => 'main' | 'own' | 'none'
  /** A further link, for no host's calls; `undefined`: the server has none of this kind. */
  readonly open: () => Promise<Link | undefined>
  /** All lists over this link. */
  readonly read: (link: Link, known: Inventory | undefined) => Promise<Inventory>
  /** What may be served of what is offered; `before` and `served`: until now. */
  readonly vet: (offered: Inventory, before: Inventory | undefined, served: Inventory | undefined) => Inventory
  /** Whether a host of this kind is connected, which would be told of a change. */
  readonly isWatched: () => boolean
  /** The server offers something else than before; `undefined`: nothing of its own any more. */
  readonly changed?: (offered: Inventory | undefined) => void
  readonly failed: (error: unknown) => void
}

export class OtherLists {
  /** `undefined`: not asked for yet, not readable, or no lists of this kind; then the common lists hold. */
  readonly inventory$: BehaviorSubject<Inventory | undefined>
  readonly #source: OtherListsSource
  /** As the server said it, before any policy. */
  #offered: Inventory | undefined
  #isWanted = false
  /** The common lists changed since these were read. */
  #isOutdated = false
  #opening: Promise<Link | undefined> | undefined
  #link: Link | undefined
  #reading: Promise<void> = Promise.resolve()
  #readings = 0

  /** `stored`: as read in an earlier run. */
  constructor(source: OtherListsSource, stored?: Inventory) {
    this.#source = source
    this.#offered = stored
    this.inventory$ = new BehaviorSubject(stored && source.vet(stored, undefined, undefined))
  }

  /** From now on these lists are kept. Resolves once they are known, or cannot be now; never rejects. */
  async want(): Promise<void> {
    const isFirst = !this.#isWanted
    this.#isWanted = true
    const reading = isFirst ? this.read() : this.#reading
    if (this.inventory$.value === undefined || this.#isOutdated) await reading
  }

  /** The common lists changed, and these probably with them: they are read for connected hosts, or once the next one wants them. */
  async commonChanged(): Promise<void> {
    if (this.#isWanted || this.inventory$.value === undefined) return
    this.#isOutdated = true
    if (this.#source.isWatched()) await this.want()
  }

  /** Reads them again, if they are wanted. */
  read(): Promise<void> {
    if (!this.#isWanted) return this.#reading
    this.#readings++
    this.#reading = this.#reading
      .then(() => this.#readNow())
      .catch(this.#source.failed)
      .finally(() => this.#readings--)
    return this.#reading
  }

  /** The server takes hosts of this kind: what could not be read before is read now. */
  async taken(): Promise<void> {
    const isFailed = this.#isWanted && this.#readings === 0 && this.inventory$.value === undefined
    await (isFailed ? this.read() : this.want())
  }

  /** Other policies hold: what is known is vetted again. */
  vetAgain(): void {
    if (this.#offered !== undefined) this.#serve(this.#offered)
  }

  /** What the server says, before any policy; `undefined` where these lists were not asked for. */
  async offered(): Promise<Inventory | undefined> {
    await this.#reading
    return this.#offered
  }

  /** What the server said last, before any policy. */
  get known(): Inventory | undefined {
    return this.#offered
  }

  /** The link of its own, while it is open. */
  get link(): Link | undefined {
    return this.#link
  }

  /** Retires the link of its own. What was read is served until the lists are wanted again. */
  rest(link = this.#link): void {
    if (link === undefined || link !== this.#link) return
    this.#isWanted = false
    this.#retire(link)
  }

  /** There are no lists of this kind, or not any more: the common ones hold. */
  forget(): Promise<void> {
    this.rest()
    this.#isWanted = false
    // What is being read is over first.
    this.#reading = this.#reading.then(() => {
      if (this.#offered !== undefined) this.#source.changed?.(undefined)
      this.#offered = undefined
      this.#isOutdated = false
      if (this.inventory$.value !== undefined) this.inventory$.next(undefined)
    })
    return this.#reading
  }

  /** Another link is opened when one is needed. Calls that are under way on this one end first. */
  #retire(link: Link): void {
    if (link !== this.#link) return
    this.#opening = this.#link = undefined
    void link.retire()
  }

  async close(): Promise<void> {
    this.#isWanted = false
    const link = await this.#opening?.catch(() => undefined)
    await link?.close()
    this.inventory$.complete()
  }

  async #readNow(): Promise<void> {
    const main = this.#source.main()
    if (main === undefined || !this.#isWanted) return
    const over = this.#source.over(main)
    const link = over === 'none' ? undefined : over === 'main' ? main : await (this.#opening ??= this.#open())
    if (link === undefined) return
    try {
      this.#serve(await this.#source.read(link, this.#offered))
    } catch (error) {
      // The server has forgotten the session of the link, as after a restart (5.3).
      if (link !== this.#link || !isForgotten(error)) throw error
      this.#retire(link)
      const next = await (this.#opening ??= this.#open())
      if (next !== undefined) this.#serve(await this.#source.read(next, this.#offered))
    }
  }

  #serve(offered: Inventory): void {
    const known = this.inventory$.value
    const inventory = this.#source.vet(offered, this.#offered, known)
    const isNew = offered.digest !== this.#offered?.digest
    this.#offered = offered
    this.#isOutdated = false
    if (isNew) this.#source.changed?.(offered)
    if (inventory.digest !== known?.digest) this.inventory$.next(inventory)
  }

  async #open(): Promise<Link | undefined> {
    try {
      const link = await this.#source.open()
      this.#link = link
      if (link === undefined) this.#opening = undefined
      void link?.closed.then(() => {
        if (this.#link === link) this.#opening = this.#link = undefined
      })
      return link
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }
}
