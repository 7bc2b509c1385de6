/**
 * The routing core: one call to one server, many inventories to one list, changes to all hosts.
 *
 *     host ──► era/host/modern-host ─┐                                   ┌─► era/server/legacy-downstream ──► server
 *              era/host/legacy-host ─┴─► layers ─► router ─► downstream ─┴─► era/server/modern-downstream ──► server
 *                                     │         │
 *                                     │         └─ catalog snapshot: exposed name → server, original
 *                                     └─ each wraps the next: asking legacy hosts, and what the configuration switches on
 *
 * A call goes down this line once and its outcome comes back up it once.
 */
import type { Identity } from '../auth/identity.ts'
import type { SignIns } from '../auth/oauth/sign-ins.ts'
import type { Seal } from '../auth/seal.ts'
import { appsSettings } from '../catalog/view/apps.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ServerCard } from '../catalog/server-card.ts'
import { joinInstructions } from '../catalog/view/instructions.ts'
import { findTool } from '../catalog/view/routes.ts'
import type { Reconnected, UpdateAudience } from '../downstream/environment.ts'
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
import { isAtLeast, LATEST_LEGACY } from '../wire/protocol/revisions.ts'
import { Access } from './access.ts'
import type { Audit } from './audit.ts'
import { isAsItCame, isListedDirectly } from './lists/bridges.ts'
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

/** What several replicas share. */
export interface Shared {
  /** This one, as the others find it. */
  readonly home: string | undefined
  readonly store: Store | undefined
}

export class Gateway {
  /** What every call passes: another one when a reload switches layers on or off. */
  handle: Handler
  readonly feed: Feed
  readonly parking: Parking
  readonly rates: Rates
  #audit: Audit | undefined
  #tracing: Layer | undefined
  /** Policies of the program that embeds the gateway, outermost first. */
  readonly #policies: readonly Layer[]
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
  /** What callers may do of what they see. */
  readonly access = new Access()
  #options: GatewayOptions
  #scopes: Scopes
  #isStopping = false

  /** `reached` hears of each limit that was. */
  constructor(
    fleet: Fleet,
    seal: Seal,
    signIns: SignIns,
    options: GatewayOptions,
    reached: (option: string) => void,
    policies: readonly Layer[] = [],
    shared: Shared = { home: undefined, store: undefined },
  ) {
    this.#policies = policies
    this.#fleet = fleet
    this.#options = options
    this.feed = new Feed(fleet.downstreams$, options, reached)
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
    const rounds = new Rounds(seal, () => this.#options.parking.ttlMs)
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
    this.parking = new Parking(seal, () => this.#options.parking, reached, shared.home)
    this.#discovery = new Discovery(this.feed, (caller) => this.#lists.known(caller), this.access)
    this.#confirmations = new Confirmations(seal, this.feed, rounds, () => this.#options.parking.ttlMs, shared.store)
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

  /** The one server there is, where the merged endpoint shows all of it under its own names (BRIDGING 3.21). */
  #soleServer(scope: Scope): string | undefined {
    if (this.#options.prefix !== 'never' || this.feed.toolsets.of(scope) !== undefined) return undefined
    const [only, ...others] = this.#fleet.downstreams$.value
    return others.length === 0 ? only?.options.key : undefined
  }

  instructions(caller: Caller): string | undefined {
    const { scope, principal } = caller
    const view = this.feed.viewOf({ scope, revision: LATEST_LEGACY })
    if (scope.server === undefined || view.toolset !== undefined) return joinInstructions(view, this.#options)
    const downstream = this.#fleet.for(scope.server, principal)
    return downstream?.options.instructions === true ? this.bridged(caller)?.instructions : undefined
  }

  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined {
    const { server } = caller.scope
    return server === undefined ? undefined : this.#fleet.for(server, caller.principal)?.eras.inventoryFor(caller)
  }

  introduced(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<unknown> | undefined {
    const { server } = caller.scope
    const downstream = server === undefined ? undefined : this.#fleet.for(server, caller.principal)
    return downstream?.introduced(caller, this.#options.listBudgetMs)
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

  changes(caller: Caller, listener: ChangeListener): () => void {
    if (!this.#isStopping) return this.feed.changes(caller, listener)
    listener.ended?.()
    return () => undefined
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

  followTask(subscriber: TaskSubscriber, caller: Caller, id: string): void {
    this.#tasks.follow(subscriber, caller, id)
  }

  /** A server says that a list changed: hosts at a bridge that read it over the same link are told at once (B277). */
  listAnnounced(key: string, list: ChangedList, owner: LinkOwner | undefined): void {
    this.feed.announced(list, (caller) => {
      if (caller.scope.server !== key) return false
      const downstream = this.#fleet.for(key, caller.principal)
      if (downstream === undefined || this.access.policy !== undefined) return false
      if (!isListedDirectly(downstream, this.feed.viewOf(caller), caller)) return false
      const { session } = caller
      if (owner !== undefined) return session !== undefined && owner.sessions.has(session)
      return session === undefined || !downstream.sessions.hasLinkOf(session)
    })
  }

  /** A server says that a task changed; `owner`: of the link it said it on, unless that serves everybody. */
  taskChanged(id: string, task: Payload, owner: LinkOwner | undefined): void {
    this.#tasks.changed(id, task, owner).catch(() => undefined)
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
    const { server } = caller.scope
    if (server !== undefined) this.#fleet.for(server, caller.principal)?.sessions.notified(caller, method, params)
  }

  /** A server says that a resource changed. */
  updated(id: string, uri: string, params: Payload, audience: UpdateAudience): void {
    this.#subscriptions.updated(id, uri, params, audience)
  }

  /** A server is back after a loss. */
  async restored(downstream: Reconnected): Promise<void> {
    this.#tasks.restore(downstream)
    await this.#subscriptions.restore(downstream)
  }

  /** Other options, from a reload. */
  apply(options: GatewayOptions): void {
    this.#options = options
    this.rates.apply(options.rates)
    this.handle = this.#stacked()
    this.feed.refresh(this.#fleet.downstreams$.value, options)
    this.#scopes = new Scopes(this.feed.toolsets, options.scopes)
  }

  /** Calls from now on are written down there, or not any more. */
  keepRecord(audit: Audit | undefined): void {
    this.#audit = audit
    this.handle = this.#stacked()
  }

  /** Calls from now on pass this layer, which traces them, or none. */
  trace(layer: Layer | undefined): void {
    this.#tracing = layer
    this.handle = this.#stacked()
  }

  /** Calls and lists from now on follow this policy, or none. */
  judgeBy(policy: Policy | undefined, service?: DecisionService): void {
    this.access.policy = policy
    this.access.service = service
    this.handle = this.#stacked()
  }

  /** Whether callers are to bring what rules read of them (`Caller.facts`). */
  get wantsFacts(): boolean {
    return this.access.policy !== undefined
  }

  /** Calls from now on are watched there, or not any more. */
  observe(observer: Observer | undefined): void {
    this.#observer = observer
    this.handle = this.#stacked()
  }

  /** The toolset that a scope means, `default` included; the names of several with blanks between. */
  toolsetOf(scope: Scope): string | undefined {
    return this.feed.toolsets.of(scope)?.name
  }

  homeOf(requestState: string): string | undefined {
    const parked = this.parking.ownerOf(requestState)
    if (parked !== undefined) return parked
    const inner = this.#confirmations.innerState(requestState)
    return inner === undefined ? undefined : this.parking.ownerOf(inner)
  }

  /** The rule that keeps from its caller what a call names; `undefined`: there is no such thing at all. */
  hiddenBy(call: Call): string | undefined {
    return hiddenBy(call, this.feed, this.#fleet.downstreams$.value)
  }

  /** Takes no new calls; change streams end with their closing result. */
  stop(): void {
    this.#isStopping = true
    this.parking.close()
    this.feed.close()
    this.#overflow.close()
  }

  /** The layers in the order in which a call meets them: none that nothing is configured for. */
  #stacked(): Handler {
    const { toolsets } = this.#options
    const isSearching = toolsets.some(({ discovery }) => discovery !== 'full')
    const isConfirming = toolsets.some(({ confirm }) => confirm.length > 0)
    const isAsking = this.access.policy?.confirms === true
    const layers = [
      isSearching ? this.#discovery.unwrap : undefined,
      this.#observer?.layer,
      this.#tracing,
      this.#audit?.layer,
      this.#refuseWhileStopping,
      this.rates.limitsCallers ? this.rates.layer : undefined,
      ...this.#policies,
      askLegacyHosts,
      isConfirming || isAsking ? this.#confirmations.layer(isAsking) : undefined,
      this.parking.layer,
      isSearching ? this.#discovery.answer : undefined,
      this.#overflow.layer,
    ].filter((layer) => layer !== undefined)
    return stack(layers, (call) => this.#route(call))
  }

  /**
   * Stands outside of the layers that repeat a call: a further round of a call that was taken before is not a new one (F-22). A host that
   * brings back a round had a call at the server already, and what became of that is not known.
   */
  readonly #refuseWhileStopping: Layer = (inner) => (call) => {
    if (!this.#isStopping) return inner(call)
    const executed = call.params.isAbsent('requestState') ? 'no' : 'unknown'
    return Promise.reject(new Failure('shutting_down', 'no new calls while stopping', { executed, retryable: true }))
  }

  /** Not async itself, as most of what a call passes: every link of the chain that only hands on costs a promise. */
  #route(call: Call): Promise<Outcome> {
    const handling = METHODS[call.method]?.handling
    if (handling === 'list') return this.#lists.serve(call)
    if (handling === 'forward') return this.#router.forward(this.#options.tasks ? call : withoutExtension(call))
    const bridged = this.#bridgedServer(call.caller)
    const settling = bridged?.eras.settled(call.caller)
    return settling === undefined ? this.#routeByEra(call, bridged) : settling.then(() => this.#routeByEra(call, bridged))
  }

  /** What is done at a bridge depends on the era in which its server is spoken to for this host. `bridged`: that server. */
  #routeByEra(call: Call, bridged: Downstream | undefined): Promise<Outcome> {
    const handling = METHODS[call.method]?.handling
    if (handling === 'task') return this.#task(call, bridged)
    if (handling === undefined || call.method === 'logging/setLevel') return this.#router.relay(call)
    return this.#subscriptions.serve(call, bridged)
  }

  /** Task methods do not exist for hosts to which tasks were not declared (B174). */
  #task(call: Call, bridged: Downstream | undefined): Promise<Outcome> {
    const { session, revision } = call.caller
    const isKnown = this.#options.tasks && (session === undefined || isAtLeast(revision, '2025-11-25'))
    if (!isKnown) throw new Refusal(-32601, `Method not found: ${call.method}`, { status: 404 })
    // A legacy host at a bridge and its legacy server have a link for themselves.
    const isBetweenLegacyPeers = bridged !== undefined && session !== undefined && isAsItCame(call.caller, bridged)
    return isBetweenLegacyPeers ? this.#router.relay(call) : this.#tasks.serve(call)
  }

  #bridgedServer({ scope, principal }: Caller): Downstream | undefined {
    return scope.server === undefined ? undefined : this.#fleet.for(scope.server, principal)
  }
}

/** To a server the host is then one that knows no tasks. */
const withoutExtension = (call: Call): Call => ({
  ...call,
  caller: { ...call.caller, capabilities: withoutTasks(call.caller.capabilities) },
})
