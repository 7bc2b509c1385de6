/**
 * Lists that a legacy server shows on one link only, as some do after a call (BRIDGING 3.20): read over the link of a session or principal
 * once the server has announced a change on it, and removed with the link. Lists equal to the common ones do not count.
 */
import { changedKinds, LIST_KINDS, withoutLifetime } from '../../catalog/inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import type { Link } from '../../era/server/link.ts'
import type { LinkOwner } from '../link-owner.ts'
import type { ChangedList } from '../../wire/protocol/methods.ts'
import { isWorthReading, Rereads, restAfter } from './rereads.ts'

interface LinkListsSource {
  /** Whether the link of this owner is open or being opened. Messages still arrive on one that closes. */
  readonly isInUse: (owner: LinkOwner) => boolean
  /** The link of this owner while it is open. */
  readonly linkOf: (owner: LinkOwner) => Link | undefined
  /** Settles once announced changes of the common lists have been read. */
  readonly commonRead: () => Promise<unknown> | undefined
  readonly common: () => Inventory | undefined
  readonly read: (link: Link) => Promise<LinkReading>
  /** Reports the lists of the link's callers; `undefined`: the common lists. */
  readonly listed: (owner: LinkOwner, inventory: Inventory | undefined) => void
  /** See `DownstreamEnvironment`. */
  readonly freshMs: () => number
}

/** The lists read over a link. */
export interface LinkReading {
  /** The lists to serve; `undefined`: equal to the common lists. */
  readonly differing: Inventory | undefined
  readonly readBytes: number
}

interface Own {
  readonly rereads: Rereads
  inventory: Inventory | undefined
  /** Digest of the common lists at an announced change of this link; `undefined`: all announced changes have been read. */
  commonBefore: string | undefined
  /** Number of announced changes: a reading during which it grows may be outdated. */
  changes: number
  readMs: number
  costMs: number
  /** Bytes of the last reading. */
  readBytes: number
}

export class LinkLists {
  readonly #source: LinkListsSource
  readonly #own = new Map<LinkOwner, Own>()
  /** By principal: the link whose lists its callers are shown. */
  readonly #shown = new Map<string, LinkOwner>()
  #isClosed = false

  constructor(source: LinkListsSource) {
    this.#source = source
  }

  /** A change was announced; without `owner` for all links. `list`: absent if the link is new and its lists are to be read. */
  announced(owner: LinkOwner | undefined, list?: ChangedList): void {
    if (owner === undefined) {
      for (const [one, own] of this.#own) {
        if (own.inventory === undefined) continue
        this.#outdate(one, own, list)
        own.rereads.request()
      }
      return
    }
    if (!hasLists(owner) || this.#isClosed || !this.#source.isInUse(owner)) return
    const own = this.#of(owner)
    own.commonBefore ??= this.#source.common()?.digest ?? ''
    this.#outdate(owner, own, list)
    own.rereads.request()
  }

  /** Sets the lifetime of the changed list to 0 until it has been read again (B156). Only hosts without a session learn lifetimes. */
  #outdate(owner: LinkOwner, own: Own, list: ChangedList | undefined): void {
    own.changes++
    const { inventory } = own
    if (inventory === undefined || list === undefined || owner.isolation !== 'principal') return
    own.inventory = withoutLifetime(inventory, changedKinds(list))
    if (own.inventory !== inventory && this.#shown.get(owner.principal) === owner) this.#source.listed(owner, own.inventory)
  }

  /** Reports the lists of a link. Of several links of one principal, those of the link that changed last are shown. */
  #listed(owner: LinkOwner, inventory: Inventory | undefined, before: Inventory | undefined): void {
    if (owner.isolation !== 'principal') return this.#source.listed(owner, inventory)
    const { principal } = owner
    const shown = this.#shown.get(principal)
    if (inventory !== undefined) {
      if (shown !== undefined && shown !== owner && inventory.digest === before?.digest) return
      this.#shown.set(principal, owner)
      return this.#source.listed(owner, inventory)
    }
    if (shown !== owner) return
    const [other] = [...this.#own].findLast(([one, own]) => isAlike(one, owner) && own.inventory !== undefined) ?? []
    if (other === undefined) this.#shown.delete(principal)
    else this.#shown.set(principal, other)
    this.#source.listed(owner, other && this.#own.get(other)?.inventory)
  }

  /**
   * Reads outdated lists of this link again before a list request (B285); `undefined`: nothing to wait for. Links with their own process
   * are read even without an announced change, since their lists may change on their own.
   */
  freshen(owner: LinkOwner, link: Link): Promise<unknown> | undefined {
    if (!hasLists(owner)) return undefined
    const known = this.#own.get(owner)
    if (known === undefined && link.transport !== 'pipe') return undefined
    const own = known ?? this.#of(owner)
    const isRead = own.inventory !== undefined || link.transport === 'pipe'
    return own.rereads.freshen(isRead && isWorthReading(own, this.#source.freshMs()))
  }

  /** Whether the lists of this link contain the name, omitted entries included. */
  names(owner: LinkOwner, isNamed: (inventory: Inventory) => boolean): boolean {
    const inventory = this.#own.get(owner)?.inventory
    return inventory !== undefined && isNamed(inventory)
  }

  /** Removes the lists of a closed link. */
  forget(owner: LinkOwner): void {
    const own = this.#own.get(owner)
    if (own === undefined) return
    own.rereads.close()
    this.#own.delete(owner)
    if (own.inventory !== undefined) this.#listed(owner, undefined, own.inventory)
  }

  /** Removes all lists, since the server is being stopped: links that still carry calls must not replace what its successor lists. */
  close(): void {
    this.#isClosed = true
    for (const owner of this.#own.keys()) this.forget(owner)
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
      changes: 0,
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
    // A server announces a common change on all of its connections; the reading over the main link has found it.
    const isCommon = commonBefore !== undefined && commonBefore !== this.#source.common()?.digest
    if (isCommon && own.inventory === undefined && link.transport !== 'pipe') return
    own.readMs = performance.now()
    const { changes } = own
    const { differing, readBytes } = await this.#source.read(link)
    own.costMs = performance.now() - own.readMs
    own.readBytes = readBytes
    if (this.#own.get(owner) !== own) return
    if (differing === undefined && own.inventory === undefined) return
    const before = own.inventory
    own.inventory = changes === own.changes ? differing : differing && withoutLifetime(differing, LIST_KINDS)
    this.#listed(owner, own.inventory, before)
  }
}

/** Not for links of single calls, which end too soon, nor for a link shared by all callers, whose lists are the common ones. */
const hasLists = ({ isolation }: LinkOwner): boolean => isolation === 'session' || isolation === 'principal'

const isAlike = (one: LinkOwner, other: LinkOwner): boolean => one.isolation === 'principal' && one.principal === other.principal
