/**
 * Lists of a server for one kind of hosts, which may differ from the common lists: hosts that run MCP Apps ([ext apps]; BRIDGING 3.16),
 * and legacy hosts of a server of both eras (BRIDGING 3.0 rule 0). Read only when such a host is connected, since they may need a link of
 * their own; until then they may be those of an earlier run, or of an earlier link.
 */
import { BehaviorSubject } from 'rxjs'
import { LIST_KINDS, withoutLifetime } from '../../catalog/inventory.ts'
import type { Inventory, ListKind } from '../../catalog/inventory.ts'
import type { Link } from '../../era/server/link.ts'
import { isForgotten } from '../pacing/retries.ts'

export interface OtherListsSource {
  /** The main link while it is up. */
  readonly main: () => Link | undefined
  /** Whether the lists are read over the main link, need a link of their own, or do not exist. */
  readonly over: (main: Link) => 'main' | 'own' | 'none'
  /** Opens a link for the lists; `undefined`: the server does not accept hosts of this kind. */
  readonly open: () => Promise<Link | undefined>
  readonly read: (link: Link, known: Inventory | undefined) => Promise<Inventory>
  /** Applies the policies. `before`, `served`: the lists before this reading. */
  readonly vet: (offered: Inventory, before: Inventory | undefined, served: Inventory | undefined) => Inventory
  /** Whether a host of this kind is connected that is notified of changes. */
  readonly isWatched: () => boolean
  /** Called when the lists have changed; `undefined`: there are none now. */
  readonly changed?: (offered: Inventory | undefined) => void
  readonly failed: (error: unknown) => void
}

export class OtherLists {
  /** `undefined`: not read yet, not readable, or no lists of this kind; then the common lists apply. */
  readonly inventory$: BehaviorSubject<Inventory | undefined>
  readonly #source: OtherListsSource
  /** The lists before any policy. */
  #offered: Inventory | undefined
  #isWanted = false
  /** The common lists changed since these were read. */
  #isOutdated = false
  #opening: Promise<Link | undefined> | undefined
  #link: Link | undefined
  #reading: Promise<void> = Promise.resolve()
  #readings = 0
  /** Number of announced changes: a reading during which it grows may be outdated. */
  #changes = 0

  /** `stored`: the lists of an earlier run. */
  constructor(source: OtherListsSource, stored?: Inventory) {
    this.#source = source
    this.#offered = stored
    this.inventory$ = new BehaviorSubject(stored && source.vet(stored, undefined, undefined))
  }

  /** Reads these lists, and again with the common lists from now on. Resolves once they are known, or cannot be read now; never rejects. */
  async want(): Promise<void> {
    const isFirst = !this.#isWanted
    this.#isWanted = true
    const reading = isFirst ? this.read() : this.#reading
    if (this.inventory$.value === undefined || this.#isOutdated) await reading
  }

  /** The common lists changed, and probably these as well: reads them for connected hosts, or when the next host wants them. */
  async commonChanged(): Promise<void> {
    if (this.#isWanted || this.inventory$.value === undefined) return
    this.#isOutdated = true
    if (this.#source.isWatched()) await this.want()
  }

  /** Reads the lists again if they are wanted. */
  read(): Promise<void> {
    if (!this.#isWanted) return this.#reading
    this.#readings++
    this.#reading = this.#reading
      .then(() => this.#readNow())
      .catch(this.#source.failed)
      .finally(() => this.#readings--)
    return this.#reading
  }

  /** The server has accepted a host of this kind: reads lists that could not be read before. */
  async taken(): Promise<void> {
    const isFailed = this.#isWanted && this.#readings === 0 && this.inventory$.value === undefined
    await (isFailed ? this.read() : this.want())
  }

  /** Applies changed policies to the known lists. */
  vetAgain(): void {
    if (this.#offered !== undefined) this.#serve(this.#offered)
  }

  /** The server announced changed lists: sets their lifetime to 0 until they have been read again (B156). */
  outdated(kinds: readonly ListKind[]): void {
    this.#changes++
    this.#offered = this.#offered && withoutLifetime(this.#offered, kinds)
    const known = this.inventory$.value
    const outdated = known && withoutLifetime(known, kinds)
    if (outdated !== known) this.inventory$.next(outdated)
  }

  /** The lists before any policy, after a running reading. */
  async offered(): Promise<Inventory | undefined> {
    await this.#reading
    return this.#offered
  }

  /** The last known lists, before any policy. */
  get known(): Inventory | undefined {
    return this.#offered
  }

  /** The link for these lists while it is open. */
  get link(): Link | undefined {
    return this.#link
  }

  /** Retires the link for these lists, which stay as they are until they are wanted again. */
  rest(link = this.#link): void {
    if (link === undefined || link !== this.#link) return
    this.#isWanted = false
    this.#retire(link)
  }

  /** Removes the lists: the server has none of this kind. */
  forget(): Promise<void> {
    this.rest()
    this.#isWanted = false
    // After a running reading.
    this.#reading = this.#reading.then(() => {
      if (this.#offered !== undefined) this.#source.changed?.(undefined)
      this.#offered = undefined
      this.#isOutdated = false
      if (this.inventory$.value !== undefined) this.inventory$.next(undefined)
    })
    return this.#reading
  }

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
      this.#serve(await this.#readOver(link))
    } catch (error) {
      // The server has forgotten the session of the link, as after a restart (5.3).
      if (link !== this.#link || !isForgotten(error)) throw error
      this.#retire(link)
      const next = await (this.#opening ??= this.#open())
      if (next !== undefined) this.#serve(await this.#readOver(next))
    }
  }

  async #readOver(link: Link): Promise<Inventory> {
    const changes = this.#changes
    const read = await this.#source.read(link, this.#offered)
    return changes === this.#changes ? read : withoutLifetime(read, LIST_KINDS)
  }

  /** An equal inventory keeps its entry objects; only the lifetime is new. */
  #serve(offered: Inventory): void {
    const known = this.inventory$.value
    const inventory = this.#source.vet(offered, this.#offered, known)
    const isNew = offered.digest !== this.#offered?.digest
    this.#offered = offered
    this.#isOutdated = false
    if (isNew) this.#source.changed?.(offered)
    this.inventory$.next(inventory.digest === known?.digest ? { ...known, freshness: inventory.freshness } : inventory)
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
