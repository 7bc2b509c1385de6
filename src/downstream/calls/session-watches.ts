/**
 * Resources that legacy sessions watch at a server that has a process or connection for each of them: what a call changes there is told
 * there alone, so that a session's resources are watched there, too, while it has one (BRIDGING 3.8; B284).
 */
import type { Link } from '../../era/server/link.ts'
import type { HostSession } from '../../rpc/call.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { LinkOwner } from '../link-owner.ts'

/** A link of one session, with its owner. */
export interface OwnedLink {
  readonly owner: LinkOwner
  readonly link: Link
}

export class SessionWatches {
  /** By session: original URIs, each with the owner of the link that watches it; `undefined`: the main one alone. */
  readonly #watches = new WeakMap<HostSession, Map<string, LinkOwner | undefined>>()
  readonly #failed: (error: unknown) => void

  /** `failed` is called where a link refuses what the main link watches. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  async add(session: HostSession, uri: string, links: readonly OwnedLink[]): Promise<void> {
    let uris = this.#watches.get(session)
    if (uris === undefined) this.#watches.set(session, (uris = new Map()))
    if (uris.has(uri)) return
    uris.set(uri, undefined)
    await Promise.all(links.map((own) => this.#watch(own, uri, uris)))
  }

  remove(session: HostSession, uri: string, links: readonly OwnedLink[]): void {
    const uris = this.#watches.get(session)
    const watcher = uris?.get(uri)
    uris?.delete(uri)
    const own = links.find(({ owner }) => owner === watcher)
    own?.link.unsubscribe(uri).catch(this.#failed)
  }

  /** The server has taken the subscription of a session at a bridge itself, or its end. */
  note(session: HostSession, uri: string, owner: LinkOwner | undefined, isWatched = true): void {
    const uris = this.#watches.get(session) ?? new Map<string, LinkOwner | undefined>()
    this.#watches.set(session, uris)
    if (isWatched) uris.set(uri, owner)
    else uris.delete(uri)
  }

  /** The link of the one host of a pipe is another: its resources are watched there, and may have changed meanwhile. */
  async again(session: HostSession, link: Link): Promise<void> {
    for (const uri of this.#watches.get(session)?.keys() ?? []) {
      try {
        if (await link.subscribe(uri)) session.updated(Payload.of({ uri }))
      } catch (error) {
        this.#failed(error)
      }
    }
  }

  /** A link was opened: its sessions' resources are watched there before any call goes over it. */
  async opened(own: OwnedLink): Promise<void> {
    const asked = [...own.owner.sessions].flatMap((session) => {
      const uris = this.#watches.get(session)
      return uris === undefined ? [] : [...uris.keys()].map((uri) => this.#watch(own, uri, uris))
    })
    await Promise.all(asked)
  }

  closed(owner: LinkOwner): void {
    for (const session of owner.sessions) {
      const uris = this.#watches.get(session)
      for (const [uri, watcher] of uris ?? []) if (watcher === owner) uris?.set(uri, undefined)
    }
  }

  /** Whether the session is told of this resource on its own link. */
  isOwn(session: HostSession, uri: string): boolean {
    return this.#watches.get(session)?.get(uri) !== undefined
  }

  async #watch({ owner, link }: OwnedLink, uri: string, uris: Map<string, LinkOwner | undefined>): Promise<void> {
    if (owner.isolation !== 'session') return
    try {
      if ((await link.subscribe(uri)) && uris.has(uri)) uris.set(uri, owner)
    } catch (error) {
      this.#failed(error)
    }
  }
}
