/**
 * Resources that legacy sessions watch at a server with a link per session. The server reports what a call changes only on the link of
 * the call, so that a session's resources are also watched on its own link (BRIDGING 3.8; B284).
 */
import type { Link } from '../../era/server/link.ts'
import { isBridge } from '../../rpc/call.ts'
import type { HostSession } from '../../rpc/call.ts'
import { Payload } from '../../wire/message/payload.ts'
import { within } from '../../time/within.ts'
import type { LinkOwner, OwnedLink } from '../link-owner.ts'

/** How long a call, or a subscription of a host, waits for the answers of the server to these (B286). */
const ANSWER_WAIT_MS = 1_000

export class SessionWatches {
  /** By session: original URIs, each with the owner of the link that watches it; `undefined`: only the main link. */
  readonly #watches = new WeakMap<HostSession, Map<string, LinkOwner | undefined>>()
  readonly #failed: (error: unknown) => void

  /** `failed` is called with the error if a link refuses a subscription. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  async add(session: HostSession, uri: string, links: readonly OwnedLink[]): Promise<void> {
    let uris = this.#watches.get(session)
    if (uris === undefined) this.#watches.set(session, (uris = new Map()))
    if (uris.has(uri)) return
    uris.set(uri, undefined)
    await within(ANSWER_WAIT_MS, Promise.all(links.map((own) => this.#watch(own, uri, uris))))
  }

  remove(session: HostSession, uri: string, links: readonly OwnedLink[]): void {
    const uris = this.#watches.get(session)
    const watcher = uris?.get(uri)
    uris?.delete(uri)
    const own = links.find(({ owner }) => owner === watcher)
    own?.link.unsubscribe(uri).catch(this.#failed)
  }

  /** Stores that the server has accepted the subscription of a session at a bridge, or its end. */
  note(session: HostSession, uri: string, owner: LinkOwner | undefined, isWatched = true): void {
    const uris = this.#watches.get(session) ?? new Map<string, LinkOwner | undefined>()
    this.#watches.set(session, uris)
    if (isWatched) uris.set(uri, owner)
    else uris.delete(uri)
  }

  /** How many other resources the session watches. */
  othersThan(session: HostSession, uri: string): number {
    const uris = this.#watches.get(session)
    return uris === undefined ? 0 : uris.size - (uris.has(uri) ? 1 : 0)
  }

  /** Watches the resources of the only host of a pipe again on a new main link; they may have changed meanwhile. */
  async again(session: HostSession, link: Link): Promise<void> {
    for (const uri of this.#watches.get(session)?.keys() ?? []) {
      try {
        if (await link.subscribe(uri)) session.updated(Payload.of({ uri }))
      } catch (error) {
        this.#failed(error)
      }
    }
  }

  /** Watches the resources of the link's sessions on a new link, before its first call. */
  async opened(own: OwnedLink): Promise<void> {
    const asked = [...own.owner.sessions].flatMap((session) => {
      const uris = this.#watches.get(session)
      return uris === undefined ? [] : [...uris.keys()].map((uri) => this.#watch(own, uri, uris))
    })
    await within(ANSWER_WAIT_MS, Promise.all(asked))
  }

  /** A link was closed. At a bridge nothing else watches its resources: the host is notified that they may have changed. */
  closed(owner: LinkOwner): void {
    for (const session of owner.sessions) {
      const uris = this.#watches.get(session)
      for (const [uri, watcher] of uris ?? []) {
        if (watcher !== owner) continue
        uris?.set(uri, undefined)
        if (isBridge(session.scope)) session.updated(Payload.of({ uri }))
      }
    }
  }

  /** Whether the session gets updates of this resource on its own link. */
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
