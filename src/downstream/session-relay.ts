/** Relays log level, roots, notifications and watched resources of legacy sessions to one server. */
import type { Link } from '../era/server/link.ts'
import type { Caller, HostSession } from '../rpc/call.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import { Failure } from '../wire/message/failure.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { LinkEventHandlers } from './calls/link-events.ts'
import type { ServerRequests } from './calls/server-requests.ts'
import type { SessionWatches } from './calls/session-watches.ts'
import type { DownstreamEnvironment } from './environment.ts'
import type { MainLink } from './health/main-link.ts'
import type { ServerStates } from './health/server-state.ts'
import type { Supervisor } from './health/supervisor.ts'
import { levelFor } from './link-owner.ts'
import type { Links } from './links/links.ts'
import type { ServerOptions } from './options.ts'
import type { ServerEras } from './server-eras.ts'

interface SessionRelaySource {
  readonly options: () => ServerOptions
  readonly environment: Pick<DownstreamEnvironment, 'soleHost'>
  readonly states: ServerStates
  readonly main: MainLink
  readonly supervisor: Supervisor
  readonly links: Links
  readonly eras: ServerEras
  readonly watches: SessionWatches
  readonly requests: ServerRequests
  readonly handlers: LinkEventHandlers
}

export class SessionRelay {
  readonly #source: SessionRelaySource

  constructor(source: SessionRelaySource) {
    this.#source = source
  }

  /** Whether a session's calls go over a link that no other host uses. */
  hasOwnLinkFor(session: HostSession): boolean {
    const { environment, options } = this.#source
    return this.#isSole(session) || (environment.soleHost === undefined && options().sharing === 'session')
  }

  /** Whether the session has a link of its own to the server. */
  hasLinkOf(session: HostSession): boolean {
    return this.#source.links.ofSession(session).length > 0
  }

  /** Stores that a session at a bridge watches a resource over its own link, so that it is watched again over the next link. */
  watches(session: HostSession, uri: string): void {
    const { links, watches } = this.#source
    watches.note(session, uri, links.withOwners(session)[0]?.owner)
  }

  /** How many other resources of the server the session watches. */
  watchesBeside(session: HostSession, uri: string): number {
    return this.#source.watches.othersThan(session, uri)
  }

  watchesNoMore(session: HostSession, uri: string): void {
    this.#source.watches.note(session, uri, undefined, false)
  }

  /** Watches a resource, to which the gateway has subscribed, on the session's own links as well. */
  async watchFor(session: HostSession, uri: string): Promise<void> {
    const { links, watches } = this.#source
    await watches.add(session, uri, links.withOwners(session))
  }

  unwatchFor(session: HostSession, uri: string): void {
    const { links, watches } = this.#source
    watches.remove(session, uri, links.withOwners(session))
  }

  /** Stores that a session was sent to a URL of this server. `id`: the server's id of the elicitation. */
  sentAway(id: string, session: HostSession | undefined): void {
    if (session !== undefined) this.#source.requests.sentAway(id, session)
  }

  levelChanged(session: HostSession, level: LogLevel): void {
    const { links, main } = this.#source
    if (this.#isSole(session)) setLevel(main.current, level)
    for (const { owner, link } of links.withOwners(session)) setLevel(link, levelFor(owner, level))
  }

  rootsChanged(session: HostSession): void {
    const { links, main } = this.#source
    if (this.#isSole(session)) main.current?.rootsChanged()
    for (const link of links.ofSession(session)) link.rootsChanged()
  }

  /** Relays a notification of a host at a bridge over its own link, after `allowed`; dropped if that rejects or sending fails. */
  notified(caller: Caller, method: string, params: Payload | undefined, allowed: Promise<unknown> | undefined): void {
    Promise.resolve(allowed)
      .then(() => this.#linkFor(caller))
      .then((link) => link.notify(method, params))
      .catch((error: unknown) =>
        this.#source.handlers.logFault('a notification of a host was dropped', `${method}: ${String(error)}`),
      )
  }

  async #linkFor(caller: Caller): Promise<Link> {
    const { environment, eras, links, main, options, supervisor } = this.#source
    const current = main.current ?? (await supervisor.ready())
    await eras.settled(caller)
    if (eras.eraFor(caller) === 'modern' || environment.soleHost !== undefined) return current
    if (options().sharing === 'call') throw new Failure('state', 'each call has a link of its own', { executed: 'no' })
    return links.opened(caller)
  }

  #isSole(session: HostSession): boolean {
    return session === this.#source.states.now.soleSession
  }
}

/** Does not wait for the server's answer: the gateway has answered the host already. */
const setLevel = (link: Link | undefined, level: LogLevel | undefined): void => {
  if (link !== undefined && level !== undefined) void link.setLevel(level)
}
