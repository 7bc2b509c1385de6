/** The servers that a caller sees, for pages for people: states and sign-in links. */
import type { Identity } from '../auth/identity.ts'
import type { SignIns } from '../auth/outbound/sign-ins.ts'
import type { ServerCard } from '../catalog/server-card.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Fleet } from '../downstream/fleet.ts'
import type { Scope } from '../rpc/call.ts'
import { within } from '../time/within.ts'
import { LATEST_LEGACY } from '../wire/protocol/revisions.ts'
import type { Feed } from './lists/feed.ts'

/** How long a page waits for servers with a sign-in per caller. */
const TRY_MS = 1_000

export class ServerCards {
  readonly #fleet: Fleet
  readonly #feed: Pick<Feed, 'viewOf'>
  readonly #signIns: SignIns

  constructor(fleet: Fleet, feed: Pick<Feed, 'viewOf'>, signIns: SignIns) {
    this.#fleet = fleet
    this.#feed = feed
    this.#signIns = signIns
  }

  /** `scope`: the caller's scope; `undefined`: it sees nothing. */
  async of(identity: Identity, scope: Scope | undefined): Promise<readonly ServerCard[]> {
    if (scope === undefined) return []
    const seen = this.#seenBy(identity, scope)
    // Whether the caller must sign in is known once its own connection was tried.
    const tried = seen
      .filter(({ credential }) => credential?.interactive !== undefined)
      .map((downstream) => downstream.supervisor.tried())
    await within(TRY_MS, Promise.all(tried))
    const { rows } = this.#feed.viewOf({ scope, revision: LATEST_LEGACY, principal: identity.principal }).list('tools')
    return seen.map(({ options: { key, displayName }, health$ }) => {
      const { state, failure } = health$.value
      const isReady = state === 'healthy' || state === 'degraded'
      return {
        key,
        displayName,
        state: isReady ? 'ready' : state === 'starting' ? 'starting' : 'away',
        needsSignIn: failure?.facts.signIn === true,
        tools: rows.filter(({ server, entry }) => server.key === key && entry.isSignIn !== true).length,
      }
    })
  }

  /** The link for the caller's sign-in at a server; `undefined`: the server has no sign-in. */
  async signInAt(identity: Identity, scope: Scope | undefined, key: string): Promise<string | undefined> {
    const downstream = scope && this.#seenBy(identity, scope).find(({ options }) => options.key === key)
    const interactive = downstream?.credential?.interactive
    if (downstream === undefined || interactive === undefined) return undefined
    return (await this.#signIns.ask(interactive, downstream.options.displayName)).url
  }

  #seenBy({ principal }: Identity, scope: Scope): readonly Downstream[] {
    const view = this.#feed.viewOf({ scope, revision: LATEST_LEGACY, principal })
    return this.#fleet.downstreams$.value.flatMap(({ options: { key } }) =>
      view.sees(key) ? (this.#fleet.for(key, principal) ?? []) : [],
    )
  }
}
