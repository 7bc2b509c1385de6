/**
 * Lists that a legacy server shows to one session alone, as some do after a call (`dynamic_lists`; BRIDGING 3.20): read over that
 * session's own link once the server has said on it that a list changed, and forgotten with the link.
 */
import type { Inventory } from '../catalog/inventory.ts'
import type { Link } from '../era/link.ts'
import type { HostSession } from '../rpc/call.ts'
import type { LinkOwner } from './link-owner.ts'
import { Rereads, restAfter } from './rereads.ts'

/** What of a server this needs. */
export interface SessionListsSource {
  readonly isOn: () => boolean
  /** The link of this owner, while it is open. */
  readonly linkOf: (owner: LinkOwner) => Link | undefined
  readonly read: (link: Link) => Promise<Inventory>
  /** What this session is listed; `undefined`: the same as everybody. */
  readonly listed: (session: HostSession, inventory: Inventory | undefined) => void
}

export class SessionLists {
  readonly #source: SessionListsSource
  readonly #rereads = new Map<LinkOwner, Rereads>()
  readonly #latest = new WeakMap<LinkOwner, Inventory>()

  constructor(source: SessionListsSource) {
    this.#source = source
  }

  /** A list changed, as was said on this link; `undefined`: on the main one, so that it may have changed for everybody. */
  heard(owner: LinkOwner | undefined): void {
    if (owner === undefined) {
      for (const rereads of this.#rereads.values()) rereads.request()
      return
    }
    if (owner.isolation !== 'session' || !this.#source.isOn()) return
    const rereads =
      this.#rereads.get(owner) ??
      new Rereads(
        () => this.#read(owner),
        () => restAfter(this.#latest.get(owner)),
      )
    this.#rereads.set(owner, rereads)
    rereads.request()
  }

  /** The link has gone, and with it what the server kept for its session. */
  forget(owner: LinkOwner): void {
    const rereads = this.#rereads.get(owner)
    if (rereads === undefined) return
    rereads.close()
    this.#rereads.delete(owner)
    for (const session of owner.sessions) this.#source.listed(session, undefined)
  }

  async #read(owner: LinkOwner): Promise<void> {
    const link = this.#source.linkOf(owner)
    if (link === undefined) return
    const inventory = await this.#source.read(link)
    this.#latest.set(owner, inventory)
    if (this.#rereads.has(owner)) for (const session of owner.sessions) this.#source.listed(session, inventory)
  }
}
