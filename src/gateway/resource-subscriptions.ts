/**
 * Subscriptions to resources by hosts of both eras: finds the server of a URI, checks whether the caller may watch it, and subscribes at
 * the server (BRIDGING 3.8). `Subscriptions` counts the subscribers.
 *
 * At a bridge the request is relayed, and updates arrive over the link of that host (B277).
 */
import { exposedUri, findResource } from '../catalog/view/routes.ts'
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Reconnected, UpdateAudience } from '../downstream/environment.ts'
import type { Fleet } from '../downstream/fleet.ts'
import { complete, Refusal } from '../rpc/call.ts'
import type { Call, Caller, HostSession, Outcome } from '../rpc/call.ts'
import { noteDenial, noteRoute } from '../rpc/record.ts'
import { memberOf } from '../values/json-object.ts'
import { Failure } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'
import type { Access } from './access.ts'
import { isWatchedDirectly, mayBeUnlisted } from './bridges.ts'
import type { Feed } from './lists/feed.ts'
import { Subscriptions, tooMany } from './subscriptions.ts'
import type { Subscriber } from './subscriptions.ts'

interface ResourceSubscriptionsParts {
  readonly feed: Pick<Feed, 'viewOf'>
  readonly fleet: Fleet
  readonly access: Access
  /** Relays a request at a bridge to its server. */
  readonly relay: (call: Call) => Promise<Outcome>
  /** Resources that one subscriber may watch (`limits.subscriptions`). */
  readonly max: () => number
}

/** A resource and the server that has it. */
interface Found {
  readonly route: Route
  readonly downstream: Downstream
}

const NO_PARAMS = Payload.of({})

export class ResourceSubscriptions {
  readonly #parts: ResourceSubscriptionsParts
  readonly #subscriptions: Subscriptions

  constructor(parts: ResourceSubscriptionsParts) {
    this.#parts = parts
    this.#subscriptions = new Subscriptions(parts.max)
  }

  /** Whether subscriptions are offered; `undefined`: unknown, since legacy servers may offer them without declaring them. */
  isOffered(caller: Caller, uri: string): boolean | undefined {
    const inventory = this.#find(caller, uri)?.downstream.eras.inventoryFor(caller)
    const isDeclared = memberOf(inventory?.capabilities['resources'], 'subscribe') === true
    return isDeclared || inventory === undefined || isModernRevision(inventory.revision) ? isDeclared : undefined
  }

  /** Subscribes for `subscriptions/listen`. False: the server does not offer it, or the policy denies it. */
  async add(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean> {
    const found = this.#find(caller, uri)
    if (found === undefined) return false
    try {
      await this.#check({ method: 'resources/subscribe', target: uri, params: NO_PARAMS, caller }, found)
    } catch (error) {
      if (error instanceof Failure) return false
      throw error
    }
    return this.#add(subscriber, caller, uri, found)
  }

  /** Handles `resources/subscribe` and `resources/unsubscribe` of legacy hosts. `bridged`: the server of a bridge. */
  async serve(call: Call, bridged: Downstream | undefined): Promise<Outcome> {
    const { caller, target } = call
    const { session } = caller
    if (bridged !== undefined && session !== undefined && isWatchedDirectly(bridged, this.#parts.feed.viewOf(caller), caller))
      return this.#watchDirectly(call, bridged, session)
    if (target === undefined || session === undefined) throw new Refusal(-32602, 'params.uri must be a string')
    if (call.method === 'resources/unsubscribe') this.#leave(session, target)
    else await this.#subscribe(call, target, session)
    return complete(Payload.of({}))
  }

  release(subscriber: Subscriber): void {
    this.#subscriptions.release(subscriber)
  }

  /** A server reported a changed resource. */
  updated(id: string, uri: string, params: Payload, audience: UpdateAudience): void {
    this.#subscriptions.updated(id, uri, params, audience)
  }

  /** A server is connected again after a loss. */
  restore(downstream: Reconnected): Promise<void> {
    return this.#subscriptions.restore(downstream)
  }

  async #subscribe(call: Call, uri: string, session: HostSession): Promise<void> {
    const found = this.#find(call.caller, uri)
    if (found === undefined) {
      noteDenial(call, 'unknown')
      throw new Refusal(-32002, `Resource not found: ${uri}`, { data: { uri } })
    }
    noteRoute(call, found.route.serverKey, found.route.original)
    await this.#check(call, found)
    let isOffered: boolean
    try {
      isOffered = await this.#add(session, call.caller, uri, found)
    } catch (error) {
      this.#subscriptions.remove(session, found.downstream.id, found.route.original, uri)
      throw error
    }
    if (!isOffered) throw new Refusal(-32602, `${uri} is not subscribable`)
  }

  async #add(subscriber: Subscriber, caller: Caller, uri: string, { route: { original }, downstream }: Found): Promise<boolean> {
    const { access, feed } = this.#parts
    const { options } = downstream
    // Scope and facts of a session change with its token.
    const { session } = caller
    const callerNow = (): Caller => (session === undefined ? caller : { ...caller, scope: session.scope, facts: session.facts })
    const viewNow = (): View => feed.viewOf(callerNow())
    const isOffered = await this.#subscriptions.add(subscriber, downstream.subscriptions, original, {
      caller,
      exposed: uri,
      isShown: (other) => viewNow().showsUri(options, other) && access.mayWatch(callerNow(), viewNow(), options, other),
      expose: (other) => exposedUri(viewNow(), options, other),
    })
    if (isOffered && session !== undefined) await downstream.sessions.watchFor(session, original)
    return isOffered
  }

  /** Also leaves a resource that its server no longer lists. */
  #leave(session: HostSession, uri: string): void {
    for (const { server, original } of this.#subscriptions.under(session, uri)) {
      const isLeft = this.#subscriptions.remove(session, server, original, uri)
      if (isLeft) this.#parts.fleet.find(server)?.sessions.unwatchFor(session, original)
    }
  }

  async #check(call: Pick<Call, 'method' | 'target' | 'params' | 'caller' | 'record'>, found: Found): Promise<void> {
    await this.#parts.access.check({ call, ...found, view: this.#parts.feed.viewOf(call.caller) })
  }

  /** Relays the subscription; updates arrive over the same link. */
  async #watchDirectly(call: Call, downstream: Downstream, session: HostSession): Promise<Outcome> {
    const uri = call.target ?? ''
    if (call.method === 'resources/unsubscribe') {
      downstream.sessions.watchesNoMore(session, uri)
      // For a session restored from an earlier process, the main link watches the resource, too.
      this.#subscriptions.remove(session, downstream.id, uri)
    } else if (downstream.sessions.watchesBeside(session, uri) >= this.#parts.max()) throw tooMany(this.#parts.max())
    const outcome = await this.#parts.relay(call)
    if (call.method === 'resources/subscribe') downstream.sessions.watches(session, uri)
    return outcome
  }

  /** The server of a resource; at a bridge its server, for unlisted resources as well. */
  #find(caller: Caller, uri: string): Found | undefined {
    const { feed, fleet } = this.#parts
    const view = feed.viewOf(caller)
    const listed = findResource(view, uri)
    const key = listed?.serverKey ?? caller.scope.server
    const downstream = key === undefined ? undefined : fleet.for(key, caller.principal)
    if (key === undefined || downstream === undefined) return undefined
    if (listed !== undefined) return { route: listed, downstream }
    const isForwarded = mayBeUnlisted({ method: 'resources/read', target: uri, caller }, downstream, view)
    return isForwarded ? { route: { serverKey: key, original: uri, entry: undefined }, downstream } : undefined
  }
}
