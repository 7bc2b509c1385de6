/**
 * Lists that a legacy server shows on one link alone, as some do after a call (BRIDGING 3.20): read over the link of a session or of a
 * principal once the server has announced a change on it, and forgotten with the link. Lists equal to those of the main link are
 * no lists of their own.
 */
import type { Inventory } from '../../catalog/inventory.ts'
import type { Link } from '../../era/server/link.ts'
import type { LinkOwner } from '../link-owner.ts'
import { isWorthReading, Rereads, restAfter } from './rereads.ts'

/** What of a server this needs. */
export interface OwnListsSource {
  /** The link of this owner, while it is open. */
  readonly linkOf: (owner: LinkOwner) => Link | undefined
  /** Settles once the main link has been read again, where that is due. */
  readonly commonRead: () => Promise<unknown> | undefined
  /** The lists of the main link. */
  readonly common: () => Inventory | undefined
  readonly read: (link: Link) => Promise<OwnReading>
  /** What the callers on this link are listed; `undefined`: what everybody is. */
  readonly listed: (owner: LinkOwner, inventory: Inventory | undefined) => void
  /** See `ListOptions`. */
  readonly freshMs: () => number
}

/** What was read over a link. */
export interface OwnReading {
  /** What of it may be served; `undefined`: the server lists on the link what it lists to everybody. */
  readonly differing: Inventory | undefined
  readonly readBytes: number
}

interface Own {
  readonly rereads: Rereads
  inventory: Inventory | undefined
  /** Digest of the common lists when a change was announced on this link; `undefined`: all announced changes have been read. */
  commonBefore: string | undefined
  readMs: number
  costMs: number
  /** Of the last reading, whatever became of it. */
  readBytes: number
}

export class OwnLists {
  readonly #source: OwnListsSource
  readonly #own = new Map<LinkOwner, Own>()

  constructor(source: OwnListsSource) {
    this.#source = source
  }

  /** A change of a list was announced on this link; `undefined`: on the main one, so that it may hold for every link. */
  announced(owner: LinkOwner | undefined): void {
    if (owner === undefined) {
      for (const { inventory, rereads } of this.#own.values()) if (inventory !== undefined) rereads.request()
      return
    }
    if (!hasOwnLists(owner)) return
    const own = this.#of(owner)
    own.commonBefore ??= this.#source.common()?.digest ?? ''
    own.rereads.request()
  }

  /**
   * Settles once the lists of this link are as new as a list request expects (B285); `undefined`: nothing to wait for. Links that
   * are processes of their own are read even if nothing was ever announced on them: nothing else would show what they changed.
   */
  freshen(owner: LinkOwner, link: Link): Promise<unknown> | undefined {
    if (!hasOwnLists(owner)) return undefined
    const known = this.#own.get(owner)
    if (known === undefined && link.transport !== 'pipe') return undefined
    const own = known ?? this.#of(owner)
    const isRead = own.inventory !== undefined || link.transport === 'pipe'
    return own.rereads.freshen(isRead && isWorthReading(own, this.#source.freshMs()))
  }

  /** Whether a list of this link names it, or left it out. */
  names(owner: LinkOwner, isNamed: (inventory: Inventory) => boolean): boolean {
    const inventory = this.#own.get(owner)?.inventory
    return inventory !== undefined && isNamed(inventory)
  }

  /** The link is closed, and with it what the server kept for its callers. */
  forget(owner: LinkOwner): void {
    const own = this.#own.get(owner)
    if (own === undefined) return
    own.rereads.close()
    this.#own.delete(owner)
    if (own.inventory !== undefined) this.#source.listed(owner, undefined)
  }

  #of(owner: LinkOwner): Own {
    const known = this.#own.get(owner)
    if (known !== undefined) return known
    const own: Own = {
      rereads: new Rereads(
        () => this.#read(owner, own),
        () => restAfter(own),
      ),
      inventory: undefined,
      commonBefore: undefined,
      readMs: -Infinity,
      costMs: 0,
      readBytes: 0,
    }
    this.#own.set(owner, own)
    return own
  }

  async #read(owner: LinkOwner, own: Own): Promise<void> {
    const link = this.#source.linkOf(owner)
    if (link === undefined) return
    const { commonBefore } = own
    own.commonBefore = undefined
    await this.#source.commonRead()
    // One server behind many connections announces on all of them: the main link has shown what changed.
    const isCommon = commonBefore !== undefined && commonBefore !== this.#source.common()?.digest
    if (isCommon && own.inventory === undefined && link.transport !== 'pipe') return
    own.readMs = performance.now()
    const { differing, readBytes } = await this.#source.read(link)
    own.costMs = performance.now() - own.readMs
    own.readBytes = readBytes
    if (this.#own.get(owner) !== own) return
    if (differing === undefined && own.inventory === undefined) return
    own.inventory = differing
    this.#source.listed(owner, differing)
  }
}

/** Links of single calls end too soon; one link for everybody is read in place of the main one. */
const hasOwnLists = ({ isolation }: LinkOwner): boolean => isolation === 'session' || isolation === 'principal'
