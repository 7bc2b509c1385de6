/**
 * The routing core: one call to one server, many inventories to one list, changes to all hosts.
 *
 *     host ──► host/modern ─┐                                   ┌─► era/server/legacy-link ──► server
 *              host/legacy ─┴─► layers ─► router ─► downstream ─┴─► era/server/modern-link ──► server
 *                                 │         │
 *                                 │         └─ catalog snapshot: exposed name → server, original
 *                                 └─ each wraps the next: asking legacy hosts, and layers that are configured
 *
 * A call passes this line once from left to right, its outcome once from right to left.
 */
import type { Identity } from '../auth/identity.ts'
import type { SignIns } from '../auth/outbound/sign-ins.ts'
import type { Seal } from '../auth/seal.ts'
import { appsSettings } from '../catalog/view/apps.ts'
import { changedKinds } from '../catalog/inventory.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ServerCard } from '../catalog/server-card.ts'
import { joinInstructions } from '../catalog/view/instructions.ts'
import { findTool } from '../catalog/view/routes.ts'
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Reconnected, ServerReports } from '../downstream/environment.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Fleet } from '../downstream/fleet.ts'
import type { LinkOwner } from '../downstream/link-owner.ts'
import type { Offers } from '../era/host/modern-host.ts'
import { askLegacyHosts } from '../era/host/legacy-rounds.ts'
import { Parking } from '../era/host/parking.ts'
import type { DecisionService } from '../policy/decision-service.ts'
import type { Policy } from '../policy/policy.ts'
import type { Observer } from '../observe/observer.ts'
import { Refusal, stack } from '../rpc/call.ts'
import type { Call, Caller, ChangeListener, EndpointPath, Handler, Layer, Outcome, Scope } from '../rpc/call.ts'
import { APPS_EXTENSION, withoutTasks } from '../wire/protocol/extensions.ts'
import { Failure } from '../wire/message/failure.ts'
import { METHODS } from '../wire/protocol/methods.ts'
import type { ChangedList, LogLevel } from '../wire/protocol/methods.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Payload } from '../wire/message/payload.ts'
import { isAtLeast, isModernRevision, LATEST_LEGACY } from '../wire/protocol/revisions.ts'
import { Access } from './access.ts'
import type { Audit } from './audit.ts'
import { isRelayedUnchanged, isListedDirectly } from './bridges.ts'
import { Confirmations } from './rounds/confirm.ts'
import { Discovery } from './discovery.ts'
import { Feed } from './lists/feed.ts'
import { hiddenBy } from './names/hidden-by.ts'
import { LateNames } from './names/late-names.ts'
import { Owners } from './names/owners.ts'
import { Lists } from './lists/lists.ts'
import type { GatewayOptions } from './options.ts'
import { Rates } from './limits/rates.ts'
import { Rounds } from './rounds/rounds.ts'
import { Overflow } from './limits/overflow.ts'
import { Router } from './router.ts'
import { ServerCards } from './server-cards.ts'
import { Scopes } from './lists/scopes.ts'
import { SignInRounds } from './rounds/sign-in.ts'
import { ResourceSubscriptions } from './resource-subscriptions.ts'
import type { Subscriber } from './subscriptions.ts'
import type { TaskSubscriber } from './tasks/task-listeners.ts'
import { Tasks } from './tasks/tasks.ts'
import type { Store } from '../store/store.ts'

interface GatewaySource {
  readonly fleet: Fleet
  readonly seal: Seal
  readonly signIns: SignIns
  /** Called with each limit that was reached. */
  readonly reached: (option: string) => void
  /** The layers of the program that embeds the gateway. */
  readonly embedded: readonly Layer[] | undefined
  /** The name of this replica for the others. */
  readonly home: string | undefined
  /** What replicas share. */
  readonly store: Store | undefined
}

/** Members without a description are those of `Core`, which listeners use: `host/core.ts` describes them. */
export class Gateway {
  /** Handles every call; replaced when a reload switches layers on or off. */
  handle: Handler
  readonly feed: Feed
  readonly parking: Parking
  readonly rates: Rates
  #audit: Audit | undefined
  #tracing: Layer | undefined
  /** The layers of the program that embeds the gateway; each is called once, so that it may keep state. Absent: there is none. */
  readonly #embedded: Handler | undefined
  /** The layers inside of them. */
  #inner: Handler
  #observer: Observer | undefined
  readonly #fleet: Fleet
  readonly #cards: ServerCards
  readonly #lists: Lists
  readonly #router: Router
  readonly #tasks: Tasks
  readonly #subscriptions: ResourceSubscriptions
  readonly #discovery: Discovery
  readonly #overflow: Overflow
  readonly #confirmations: Confirmations
  readonly access = new Access()
  #options: GatewayOptions
  #scopes: Scopes
  #isStopping = false

  constructor(options: GatewayOptions, { fleet, seal, signIns, reached, embedded = [], home, store }: GatewaySource) {
    this.#inner = (call) => this.#route(call)
    this.#embedded = embedded.length === 0 ? undefined : stack(embedded, (call) => this.#inner(call))
    this.#fleet = fleet
    this.#options = options
    this.feed = new Feed(fleet.downstreams$, options, reached, this.access)
    this.#lists = new Lists(
      this.feed,
      () => fleet.downstreams$.value,
      seal,
      () => this.#options,
      this.access,
    )
    this.#tasks = new Tasks(seal, this.feed, fleet, () => this.#options.tasks)
    this.#overflow = new Overflow(() => this.#options.results, reached)
    const late = new LateNames({
      feed: this.feed,
      downstreams: () => fleet.downstreams$.value,
      known: (caller) => this.#lists.known(caller),
    })
    const ttlMs = (): number => this.#options.parking.ttlMs
    const rounds = new Rounds(seal, ttlMs)
    this.rates = new Rates(options.rates, (scope) => this.toolsetOf(scope))
    const signInRounds = new SignInRounds(signIns, seal)
    this.#cards = new ServerCards(fleet, this.feed, signIns)
    this.#router = new Router({
      feed: this.feed,
      owners: new Owners(this.feed, late, rounds, signInRounds, fleet),
      rounds,
      signIns: signInRounds,
      tasks: this.#tasks,
      rates: this.rates,
      overflow: this.#overflow,
      access: this.access,
      fleet,
    })
    this.#subscriptions = new ResourceSubscriptions({
      feed: this.feed,
      fleet,
      access: this.access,
      relay: (call) => this.#router.relay(call),
      max: () => this.#options.maxSubscriptions,
    })
    this.parking = new Parking(seal, () => this.#options.parking, reached, home)
    this.#discovery = new Discovery(this.feed, (caller) => this.#lists.known(caller), this.access)
    const checkPolicy = async (call: Call, route: Route, view: View): Promise<void> => {
      const downstream = fleet.for(route.serverKey, call.caller.principal)
      // Confirmed, since the toolset asks the person anyway.
      if (downstream !== undefined) await this.access.check({ call: { ...call, isConfirmed: true }, route, downstream, view })
    }
    this.#confirmations = new Confirmations({ seal, feed: this.feed, rounds, ttlMs, checkPolicy, store })
    this.#scopes = new Scopes(this.feed.toolsets, options.scopes)
    this.handle = this.#stacked()
  }

  scopeFor(identity: Identity, path: EndpointPath): Scope | undefined {
    const scope = this.#scopes.of(identity, path)
    if (scope === undefined) return undefined
    if (scope.server === undefined) {
      const sole = this.#soleServer(scope)
      return sole === undefined ? scope : this.#scopes.merged(scope, sole)
    }
    const isThere = this.#fleet.get(scope.server) !== undefined
    return isThere && this.feed.viewOf({ scope, revision: LATEST_LEGACY }).sees(scope.server) ? scope : undefined
  }

  servers(identity: Identity): Promise<readonly ServerCard[]> {
    return this.#cards.of(identity, this.scopeFor(identity, {}))
  }

  signInAt(identity: Identity, key: string): Promise<string | undefined> {
    return this.#cards.signInAt(identity, this.scopeFor(identity, {}), key)
  }

  /** The only server, if the merged endpoint shows all of it under its original names (BRIDGING 3.21). */
  #soleServer(scope: Scope): string | undefined {
    if (this.#options.prefix !== 'never' || this.feed.toolsets.of(scope) !== undefined) return undefined
    const [only, ...others] = this.#fleet.downstreams$.value
    return others.length === 0 ? only?.options.key : undefined
  }

  instructions(caller: Caller): string | undefined {
    const { scope } = caller
    const view = this.feed.viewOf({ scope, revision: LATEST_LEGACY })
    const isShown = (server: string): boolean => this.access.showsAnyOf(server, view, caller)
    if (scope.server === undefined || view.toolset !== undefined) return joinInstructions(view, this.#options, isShown)
    const hasOwn = this.#fleet.bridged(caller)?.options.instructions === true && isShown(scope.server)
    return hasOwn ? this.bridged(caller)?.instructions : undefined
  }

  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined {
    return this.#fleet.bridged(caller)?.eras.inventoryFor(caller)
  }

  introduced(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<unknown> | undefined {
    return this.#fleet.bridged(caller)?.introduced(caller, this.#options.listBudgetMs)
  }

  greeted({ scope, principal }: Pick<Caller, 'scope' | 'principal'>): Promise<unknown> | undefined {
    return this.#lists.greeted(scope, principal)
  }

  isStarting(scope: Scope): boolean {
    return this.#lists.isStarting(scope)
  }

  paramHeaders(caller: Caller, tool: string): readonly ParamHeader[] {
    return findTool(this.feed.viewOf(caller), tool)?.entry?.paramHeaders ?? []
  }

  watchLists(caller: Caller, listener: ChangeListener): void {
    if (this.#isStopping) listener.ended?.()
    else this.feed.watchers.watch(caller, listener)
  }

  unwatchLists(listener: ChangeListener): void {
    this.feed.watchers.unwatch(listener)
  }

  get maxSubscriptions(): number {
    return this.#options.maxSubscriptions
  }

  maySubscribe(caller: Caller, uri: string): boolean | undefined {
    return this.#subscriptions.isOffered(caller, uri)
  }

  subscribe(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean> {
    return this.#subscriptions.add(subscriber, caller, uri)
  }

  unsubscribe(subscriber: Subscriber & TaskSubscriber): void {
    this.#subscriptions.release(subscriber)
    this.#tasks.release(subscriber)
  }

  offers(scope: Scope): Offers {
    const view = this.feed.viewOf({ scope, revision: LATEST_LEGACY, capabilities: { extensions: APPS_EXTENSION } })
    return { tasks: this.#options.tasks, apps: appsSettings(view) }
  }

  get gateways(): readonly string[] {
    return this.#fleet.gateways
  }

  get offersTasks(): boolean {
    return this.#options.tasks
  }

  ownTasks(caller: Caller, ids: readonly string[]): string[] {
    return this.#tasks.own(caller, ids)
  }

  followTask(subscriber: TaskSubscriber, caller: Caller, id: string): Promise<boolean> {
    return this.#tasks.follow(subscriber, caller, id)
  }

  /** Receives what servers report. */
  get reports(): Omit<ServerReports, 'linkOpened'> {
    const { feed } = this
    return {
      personalListed: (key, principal, inventory) => feed.personalListed(key, principal, inventory),
      sessionListed: (key, session, inventory) => feed.sessionListed(key, session, inventory),
      principalListed: (key, to, inventory) => feed.principalListed(key, to, inventory),
      listAnnounced: (key, list, owner) => this.#listAnnounced(key, list, owner),
      updated: (id, uri, params, audience) => this.#subscriptions.updated(id, uri, params, audience),
      taskChanged: (id, task, owner) => void this.#tasks.changed(id, task, owner).catch(() => undefined),
      reconnected: (downstream) => void this.#restored(downstream),
      hasLegacyHosts: () => feed.watchers.some(({ revision }) => !isModernRevision(revision)),
    }
  }

  /** A server announced a changed list: notifies hosts at a bridge that read the list over the same link (B277). */
  #listAnnounced(key: string, list: ChangedList, owner: LinkOwner | undefined): void {
    this.feed.watchers.announce(list, (caller) => {
      if (caller.scope.server !== key) return false
      const downstream = this.#fleet.for(key, caller.principal)
      if (downstream === undefined || this.access.policy !== undefined) return false
      if (!isListedDirectly(downstream, this.feed.viewOf(caller), caller)) return false
      const { session } = caller
      if (owner !== undefined) return session !== undefined && owner.sessions.has(session)
      return session === undefined || !downstream.sessions.hasLinkOf(session)
    })
  }

  levelChanged({ session, principal }: Caller, level: LogLevel): void {
    if (session === undefined) return
    for (const downstream of this.#fleet.all(principal)) downstream.sessions.levelChanged(session, level)
  }

  rootsChanged(caller: Caller): void {
    if (caller.session === undefined) return
    for (const downstream of this.#fleet.all(caller.principal)) downstream.sessions.rootsChanged(caller.session)
  }

  notified(caller: Caller, method: string, params: Payload | undefined): void {
    this.#router.notify(caller, method, params)
  }

  /** A server is connected again after a loss. */
  async #restored(downstream: Reconnected): Promise<void> {
    this.#tasks.restore(downstream)
    await this.#subscriptions.restore(downstream)
  }

  /** Applies options of a reload. */
  apply(options: GatewayOptions): void {
    this.#options = options
    this.rates.apply(options.rates)
    this.access.policy?.forget()
    this.handle = this.#stacked()
    this.#refresh()
  }

  /** Builds the catalog again. Where the content of results may be replaced, it may not match an output schema. */
  #refresh(): void {
    const outputSchemas = !this.access.inspectsResults
    this.feed.refresh(this.#fleet.downstreams$.value, { ...this.#options, outputSchemas })
    this.#scopes = new Scopes(this.feed.toolsets, this.#options.scopes)
  }

  /** Sets the audit log of further calls; `undefined`: none. */
  auditBy(audit: Audit | undefined): void {
    this.#audit = audit
    this.handle = this.#stacked()
  }

  /** Sets the layer that traces further calls; `undefined`: none. */
  trace(layer: Layer | undefined): void {
    this.#tracing = layer
    this.handle = this.#stacked()
  }

  /** Sets the policy of further calls and lists, and notifies the hosts whose lists it changes; `undefined`: none. */
  judgeBy(policy: Policy | undefined, service?: DecisionService): void {
    const before = this.access.copy()
    this.access.policy = policy
    this.access.service = service
    this.handle = this.#stacked()
    if (this.access.inspectsResults !== before.inspectsResults) this.#refresh()
    if (policy === undefined && before.policy === undefined) return
    const now = this.access.copy()
    const isDifferent = (caller: Caller, list: ChangedList, view: View): boolean =>
      changedKinds(list).some((kind) => !now.showsSame(before, view, kind, caller))
    void this.feed.watchers.announceWhere(isDifferent).catch(() => undefined)
  }

  /** Whether callers must have `Caller.facts`, which rules read. */
  get wantsFacts(): boolean {
    return this.access.policy !== undefined
  }

  /** Sets the observer of further calls; `undefined`: none. */
  observe(observer: Observer | undefined): void {
    this.#observer = observer
    this.handle = this.#stacked()
  }

  /** The toolset of a scope, `default` included; several names are separated by blanks. */
  toolsetOf(scope: Scope): string | undefined {
    return this.feed.toolsets.of(scope)?.name
  }

  homeOf(requestState: string): string | undefined {
    const parked = this.parking.ownerOf(requestState)
    if (parked !== undefined) return parked
    const inner = this.#confirmations.innerState(requestState)
    return inner === undefined ? undefined : this.parking.ownerOf(inner)
  }

  /** The rule that hides the name in a call from its caller; `undefined`: the name does not exist. */
  hiddenBy(call: Call): string | undefined {
    return hiddenBy(call, this.feed, this.#fleet.downstreams$.value)
  }

  /** Refuses new calls and ends change streams with their closing result. */
  stop(): void {
    this.#isStopping = true
    this.parking.close()
    // The catalog is still updated, for pending calls that wait for an inventory.
    this.feed.watchers.close()
    this.#overflow.close()
  }

  /** Composes the configured layers, in the order in which a call passes them. */
  #stacked(): Handler {
    const { toolsets } = this.#options
    const isSearching = toolsets.some(({ discovery }) => discovery !== 'full')
    const isConfirming = toolsets.some(({ confirm }) => confirm.length > 0)
    const isAsking = this.access.policy?.confirms === true
    const outer = [
      isSearching ? this.#discovery.unwrap : undefined,
      this.#observer?.layer,
      this.#tracing,
      this.#audit?.layer,
      this.#refuseWhileStopping,
      this.rates.limitsCallers ? this.rates.layer : undefined,
    ]
    const inner = [
      askLegacyHosts,
      isConfirming || isAsking ? this.#confirmations.layer(isAsking) : undefined,
      this.parking.layer,
      isSearching ? this.#discovery.answer : undefined,
      this.#overflow.layer,
    ]
    const route: Handler = (call) => this.#route(call)
    if (this.#embedded === undefined) return stack(present([...outer, ...inner]), route)
    this.#inner = stack(present(inner), route)
    return stack(present(outer), this.#embedded)
  }

  /**
   * Outside of the layers that repeat a call: a further round of an accepted call is not a new call (F-22). For a host that brings back a
   * round it is unknown whether the server has executed the call.
   */
  readonly #refuseWhileStopping: Layer = (inner) => (call) => {
    if (!this.#isStopping) return inner(call)
    const executed = call.params.isAbsent('requestState') ? 'no' : 'unknown'
    return Promise.reject(new Failure('shutting_down', 'no new calls while stopping', { executed, retryable: true }))
  }

  /** Not async: each async function on the path of a call costs a promise. */
  #route(call: Call): Promise<Outcome> {
    const handling = METHODS[call.method]?.handling
    if (handling === 'list') return this.#lists.serve(call)
    if (handling === 'forward') return this.#router.forward(this.#options.tasks ? call : withoutExtension(call))
    const bridged = this.#fleet.bridged(call.caller)
    const settling = bridged?.eras.settled(call.caller)
    return settling === undefined ? this.#routeByEra(call, bridged) : settling.then(() => this.#routeByEra(call, bridged))
  }

  /** `bridged`: the server of a bridge, whose era for this host is known now. */
  #routeByEra(call: Call, bridged: Downstream | undefined): Promise<Outcome> {
    const handling = METHODS[call.method]?.handling
    if (handling === 'task') return this.#task(call, bridged)
    if (handling === undefined || call.method === 'logging/setLevel') return this.#router.relay(call)
    return this.#subscriptions.serve(call, bridged)
  }

  /** Throws `Refusal` for hosts to which tasks were not declared (B174). */
  #task(call: Call, bridged: Downstream | undefined): Promise<Outcome> {
    const { session, revision } = call.caller
    const isKnown = this.#options.tasks && (session === undefined || isAtLeast(revision, '2025-11-25'))
    if (!isKnown) throw new Refusal(-32601, `Method not found: ${call.method}`, { status: 404 })
    // A legacy host at a bridge has its own link to its legacy server.
    const isBetweenLegacyPeers = bridged !== undefined && session !== undefined && isRelayedUnchanged(call.caller, bridged)
    return isBetweenLegacyPeers ? this.#router.relay(call) : this.#tasks.serve(call)
  }
}

const present = (layers: readonly (Layer | undefined)[]): readonly Layer[] => layers.filter((layer) => layer !== undefined)

/** The call of a host without the tasks extension. */
const withoutExtension = (call: Call): Call => ({
  ...call,
  caller: { ...call.caller, capabilities: withoutTasks(call.caller.capabilities) },
})
