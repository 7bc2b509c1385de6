/**
 * One configured server: kept connected (`upkeep.ts`), known (`offers.ts`) and within its limits. Calls go in at `handle`; what
 * the server is and offers comes out at `health$` and `inventory$`. The main link carries lists, completion and subscriptions;
 * calls of hosts use links of their own where the server is legacy (`links.ts`).
 */
import { isDeepStrictEqual } from 'node:util'
import type { BehaviorSubject } from 'rxjs'
import { withCredential } from '../auth/oauth/credential.ts'
import type { Credential } from '../auth/oauth/credential.ts'
import { isPerUser } from '../auth/oauth/options.ts'
import type { Inventory, ListKind } from '../catalog/inventory.ts'
import type { LockChange } from '../catalog/lock/lock.ts'
import type { Link, LinkEvents } from '../era/server/link.ts'
import { isBridge, ServerError } from '../rpc/call.ts'
import type { Call, Caller, HostSession, Outcome } from '../rpc/call.ts'
import { Fidelity } from '../rpc/fidelity.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { capabilityOf } from '../wire/protocol/methods.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import { Asking } from './calls/server-requests.ts'
import { Dialer } from './links/dialer.ts'
import type { DownstreamEnvironment, ServerProcess } from './environment.ts'
import { EraWatch } from './health/era-watch.ts'
import { Hearing } from './calls/link-events.ts'
import { UNSIGNED } from './health/health.ts'
import type { Health } from './health/health.ts'
import { carried, levelFor } from './link-owner.ts'
import type { LinkOwner } from './link-owner.ts'
import { LinkStarts } from './pacing/link-starts.ts'
import { Links } from './links/links.ts'
import type { Use } from './links/links.ts'
import { namedIn, Offers } from './lists/offers.ts'
import type { Learned } from './lists/offers.ts'
import type { ServerOptions, Sharing } from './options.ts'
import { OwnLists } from './lists/own-lists.ts'
import { Restarts } from './pacing/restarts.ts'
import { Personal } from './personal.ts'
import { again, isForgotten, isMismatch } from './pacing/retries.ts'
import { SessionWatches } from './calls/session-watches.ts'
import { signedIn, signInInventory } from './lists/sign-in-tool.ts'
import { Slots } from './pacing/slots.ts'
import { forgetful } from './lists/store.ts'
import { Upkeep } from './health/upkeep.ts'

/** How calls end whose link goes; while we stop, it went because of us. */
const LOST: ReadonlySet<FailureKind> = new Set(['lost', 'exited', 'unreachable'])
/** Methods whose answer does not depend on who asks: they go over the main link. */
const ON_MAIN_LINK = new Set(['completion/complete'])

export class Downstream {
  #options: ServerOptions
  /** Monotonic time at which it was configured: what the list budget is counted from. */
  readonly startedMs = performance.now()
  /** What of its calls was translated, and what was impossible. */
  readonly fidelity: Fidelity
  readonly #environment: DownstreamEnvironment
  readonly #linkStarts: LinkStarts
  readonly #asking: Asking
  readonly #dialer: Dialer
  readonly #eraWatch: EraWatch
  readonly #hearing: Hearing
  readonly #links: Links
  readonly #offers: Offers
  readonly #ownLists: OwnLists
  readonly #sessionWatches: SessionWatches
  readonly #slots: Slots
  readonly #upkeep: Upkeep
  /** Names it among all servers and principals. */
  readonly id: string
  /** The proof that goes with every request; `undefined`: none that changes. */
  readonly credential: Credential | undefined
  /** Where each principal has a connection of his own. */
  readonly personal: Personal<Downstream> | undefined
  /** Resources and tasks that are followed. */
  readonly #followed = new Set<string>()
  /** By URI: what becomes of subscriptions that the server is being asked for. */
  readonly #subscribing = new Map<string, Promise<boolean>>()
  /** The link that all callers share, once the server has announced a change on it: its lists are everybody's. */
  #announcer: LinkOwner | undefined
  /** Of a stdio front whose host is legacy: the main link is its own. */
  #soleSession: HostSession | undefined
  /** Monotonic time at which legacy hosts last used a server of both eras. */
  #legacyUsedMs = 0
  readonly #legacyRest = { sweep: (): void => this.#restLegacy() }
  #stopping: Promise<void> | undefined
  #drained: () => void = () => undefined

  /** `principal`: of whom alone it is. */
  constructor(options: ServerOptions, environment: DownstreamEnvironment, principal?: string) {
    this.#options = options
    this.#environment = environment
    this.id = principal === undefined ? options.key : `${options.key} ${principal}`
    this.credential = environment.credential(options, principal)
    this.personal = principal === undefined && isPerUser(options.credential) ? this.#makePersonal(environment) : undefined
    this.fidelity = new Fidelity(options.key, environment.log)
    this.#asking = new Asking(() => this.options, this.fidelity)
    this.#dialer = new Dialer(options, environment, this.credential?.bearer)
    this.#slots = new Slots(options.limits.maxConcurrent, options.limits.maxQueued)
    const restarts = new Restarts(
      () => this.options.limits.maxRestarts,
      () => environment.sweeper.nowMs,
    )
    this.#linkStarts = new LinkStarts(environment.backoff, () => environment.sweeper.nowMs, restarts)
    this.#links = new Links(options, {
      open: (owner) => this.#openLink(owner),
      sessionSeen: () => this.#dialer.sessionSeen(),
      closed: (owner) => this.#linkClosed(owner),
      isShared: () => this.link?.transport !== 'http',
      nowMs: () => environment.sweeper.nowMs,
    })
    this.#hearing = new Hearing({
      id: this.id,
      key: options.key,
      environment,
      maxLogMessages: () => this.#options.limits.maxLogMessages,
      maxLogBytes: () => this.#options.limits.maxStderrBytes,
      asking: this.#asking,
      soleSession: () => this.#soleSession,
      outdated: (list, owner) => {
        if (owner?.isolation === 'shared') this.#announcer = owner
        this.#offers.outdated(list)
        this.#ownLists.announced(owner)
      },
      updated: (uri, params, owner) => this.#updated(uri, params, owner),
      taskEnded: (id, owner) => this.#links.taskEnded(id, owner),
      refused: (error) => void this.#eraWatch.isChange(error, this.link),
    })
    this.#eraWatch = new EraWatch({
      link: () => this.link,
      probe: () => this.#dialer.probe(),
      changed: (link) => this.#changeEra(link),
      nowMs: () => environment.sweeper.nowMs,
    })
    this.#offers = new Offers({
      options: () => this.options,
      environment,
      main: () => this.link,
      listing: () => (this.#announcer === undefined ? undefined : this.#links.of(this.#announcer)) ?? this.link,
      over: (link, use) => this.#upkeep.over(link, use),
      declared: this.#dialer.superset(),
      open: (declared) => this.#dialer.dial({ declared }, this.#hearing.onMain()),
      openLegacy: (declared) => this.#dialer.dialLegacy({ declared }, this.#hearing.onMain()),
      mayBeLegacy: () => this.#mayBeLegacy,
      logFault: (reason, sample) => this.#hearing.logFault(reason, sample),
      failed: (error) => void this.#eraWatch.isChange(error, this.link),
    })
    this.#sessionWatches = new SessionWatches((error) => this.#hearing.logFault('a resource cannot be watched', String(error)))
    this.#ownLists = new OwnLists({
      linkOf: (owner) => this.#links.of(owner),
      commonRead: () => this.#offers.announcedRead(),
      common: () => this.legacyInventory$.value ?? this.inventory$.value,
      read: (link) => this.#offers.readOver(link),
      listed: (owner, inventory) => this.#listed(owner, inventory),
      freshMs: environment.freshMs,
    })
    this.#upkeep = new Upkeep({
      options: () => this.options,
      principal,
      environment,
      restarts,
      mayConnect: () => Promise.all([environment.startAfter, environment.soleHost]),
      connect: (opened, isWanted) => this.#connect(opened, isWanted),
      isCrash: (failure) => this.#dialer.isCrash(failure),
      complaints: () => this.inventory$.value?.warnings ?? [],
      up: (link, isAgain) => this.#announce(link, isAgain),
      failed: () => this.noteMissing(),
      givenUp: ({ facts }) => this.#offers.withdraw(facts.signIn === true ? signInInventory(this.options) : undefined),
    })
    environment.sweeper.watch(this.#links)
    environment.sweeper.watch(this.#legacyRest)
    this.credential?.onChange?.(() => this.#upkeep.retryNow())
    if (this.personal === undefined) return
    this.health$.next(UNSIGNED)
    environment.sweeper.watch(this.personal)
  }

  get options(): ServerOptions {
    return this.#options
  }
  get health$(): BehaviorSubject<Health> {
    return this.#upkeep.health$
  }
  get inventory$(): BehaviorSubject<Inventory | undefined> {
    return this.#offers.inventory$
  }
  /** What hosts that run apps are listed, where that was read; differs from `inventory$` only if the server makes a difference. */
  get appsInventory$(): BehaviorSubject<Inventory | undefined> {
    return this.#offers.apps.inventory$
  }
  /** What legacy hosts are listed by a server of both eras, where that was read (BRIDGING 3.0 rule 0). */
  get legacyInventory$(): BehaviorSubject<Inventory | undefined> {
    return this.#offers.legacy.inventory$
  }
  /** The main link, while it is up. */
  get link(): Link | undefined {
    return this.#upkeep.link
  }
  /** The gateways that its calls are led through, beside ours. */
  get gateways(): readonly string[] {
    return this.#upkeep.gateways
  }
  get linkCount(): number {
    const further = [this.link, this.#offers.apps.link, this.#offers.legacy.link].filter((link) => link !== undefined)
    return further.length + this.#links.size
  }
  /** The processes that run for it. */
  get processes(): readonly Pick<ServerProcess, 'pid' | 'startedAt'>[] {
    return this.#dialer.processes
  }
  get inFlight(): number {
    return this.#slots.inUse
  }

  /** At least one host waits for changes. */
  get isWatched(): boolean {
    return this.#followed.size > 0
  }

  /** The one that calls of this principal go to. */
  for(principal: string): Downstream {
    return this.personal?.of(principal) ?? this
  }

  /** The last lines on stderr, oldest first; of a process that has ended, too (F-08). */
  stderrTail(count: number): readonly string[] {
    return this.#dialer.stderrTail(count)
  }

  /** Starts connecting in the background; a lazy server whose inventory is stored waits for its first call. */
  start(): void {
    if (this.personal === undefined && (this.options.start !== 'lazy' || this.inventory$.value === undefined)) this.#upkeep.run()
  }

  /** Lists wait for it: nothing is known of it yet, and nothing says that waiting would be in vain. */
  get isAwaited(): boolean {
    const { state, failures } = this.health$.value
    const isFirst = this.inventory$.value === undefined && state === 'starting' && failures === 0
    return isFirst && !this.#environment.memory.hasFailed(this.options)
  }

  /** It was waited for in vain: the next start does not do it again. */
  noteMissing(): void {
    if (this.inventory$.value === undefined) this.#environment.memory.keepFailed(this.options)
  }

  /** Brings the next attempt forward where it is down; waits for nothing. */
  hurry(): void {
    this.#upkeep.hurry()
  }

  /** Its own lists are known, be they stored ones; what stands in their place until someone has signed in does not count. */
  get hasLists(): boolean {
    return this.inventory$.value?.lists.tools.some(({ isSignIn: isOurs }) => isOurs === true) === false
  }

  /** Waits for its lists as a call would. Throws the `Failure` of its state. */
  async listed(): Promise<void> {
    try {
      await withCredential(this.credential, () => this.#upkeep.ready())
    } catch (error) {
      throw this.#located(error)
    }
  }

  /** The result of the tool for signing in: waits for its lists, and throws the `Failure` that asks for the sign-in. */
  async signedIn(): Promise<Outcome> {
    await this.listed()
    return signedIn(this.options, this.inventory$.value)
  }

  /** Settles once one attempt has been made to reach it; never rejects. */
  async tried(): Promise<void> {
    await this.#upkeep.ready().catch(() => undefined)
  }

  /** Skips the wait before the next attempt, and wakes a server that had been given up. */
  retryNow(): void {
    if (this.personal === undefined) this.#upkeep.retryNow()
    else for (const downstream of this.personal.all) downstream.retryNow()
  }

  /** Other options, from a reload that asks for no restart: limits and time-outs hold from now on. */
  adopt(options: ServerOptions): void {
    const { hidden, onChange, locked } = this.options
    this.#options = options
    if (options.hidden !== hidden || options.onChange !== onChange || !isDeepStrictEqual(options.locked, locked))
      this.#offers.vetAgain()
    this.#dialer.adopt(options)
    this.#links.adopt(options)
    this.#slots.resize(options.limits.maxConcurrent, options.limits.maxQueued)
    this.personal?.adopt(options)
  }

  /** Takes changed definitions as the true ones, of one tool or of all; resolves with the tools, once they are served. */
  approve(tool?: string): Promise<readonly string[]> {
    return this.#offers.approve(tool)
  }

  /** What the server says of itself now, before any policy; `apps`: to hosts that run MCP Apps, too. Throws `Failure` if it cannot be asked. */
  async offered(apps: boolean): Promise<{ readonly all: Inventory; readonly apps: Inventory | undefined }> {
    const { failure } = this.health$.value
    if (this.link === undefined && failure !== undefined) throw failure
    await this.#upkeep.ready()
    if (apps && this.options.apps) await this.wantApps()
    const { all, apps: forApps } = await this.#offers.offered()
    if (all === undefined) throw new Failure('unreachable', 'nothing is known of the server', { executed: 'no' })
    return { all, apps: forApps }
  }

  /** What of it is not as it was approved. */
  changes(): LockChange[] {
    return this.#offers.changes(this.options)
  }

  /** What is known of its lists, before any policy: what hosts would be served under other options is made of it. */
  get learned(): Learned {
    return this.#offers.learned
  }

  /** A host that runs apps wants lists: settles once they are known, or cannot be now. A sole host's own link reads them already. */
  wantApps(): Promise<void> {
    return this.#environment.soleHost === undefined ? this.#offers.apps.want() : Promise.resolve()
  }

  /**
   * A legacy host wants lists: settles once it is known what a server of both eras lists it, or cannot be now. `undefined`: that is
   * known, or the server speaks one era alone.
   */
  wantLegacy(): Promise<void> | undefined {
    return this.#mayBeLegacy && this.link?.era === 'modern' ? this.#offers.legacy.want() : undefined
  }

  /** The main link of a modern server may not be all that it offers; a sole host's link is in its own era from the start. */
  get #mayBeLegacy(): boolean {
    return this.#environment.soleHost === undefined && this.#dialer.mayBeLegacy
  }

  /** Closes the link for legacy lists of a server of both eras once no legacy host has used it for long. */
  #restLegacy(): void {
    const { nowMs } = this.#environment.sweeper
    if (this.#links.size > 0 || this.#offers.legacy.link === undefined) this.#legacyUsedMs = nowMs
    else if (nowMs - this.#legacyUsedMs >= this.options.idleStopMs) this.#offers.legacy.rest()
  }

  /** The era in which calls of this caller reach the server, as far as is known. */
  eraFor({ session }: Pick<Caller, 'session'>): Era | undefined {
    const era = this.link?.era
    return era === 'modern' && session !== undefined && this.#dialer.takesInitialize && this.#mayBeLegacy ? 'legacy' : era
  }

  /**
   * Settles once it is known in which era calls of this caller reach a server whose main link is modern, or that cannot be known now;
   * `undefined`: it is known. The first legacy host finds it out, by the link that its calls need.
   */
  eraSettled(caller: Caller): Promise<unknown> | undefined {
    const isKnown =
      caller.session === undefined || this.link?.era !== 'modern' || this.#dialer.takesInitialize || !this.#mayBeLegacy
    if (isKnown) return undefined
    const opening = this.#options.sharing === 'call' ? this.#offers.legacy.want() : this.#links.opened(caller)
    return opening.catch(() => undefined)
  }

  /** What the server says of itself to this caller. */
  inventoryFor(caller: Pick<Caller, 'session'>): Inventory | undefined {
    const isOther = this.eraFor(caller) !== this.link?.era
    return (isOther ? this.legacyInventory$.value : undefined) ?? this.inventory$.value
  }

  /** The revision that is spoken to the server for this caller. */
  revisionFor(caller: Pick<Caller, 'session'>): Revision | undefined {
    return this.eraFor(caller) === this.link?.era ? this.link?.revision : this.legacyInventory$.value?.revision
  }

  readonly handle = async (call: Call): Promise<Outcome> => {
    try {
      const waiting = this.#slots.take(call.signal)
      if (waiting !== undefined) await waiting
      call.record?.slotted?.()
    } catch (error) {
      throw this.#located(error)
    }
    let main: Link | undefined
    const attemptLater = async (): Promise<Outcome> => this.#attempt(call, (main = await this.#upkeep.ready()))
    try {
      if (this.credential !== undefined) return await withCredential(this.credential, attemptLater)
      main = this.link
      return await (main === undefined ? attemptLater() : this.#attempt(call, main))
    } catch (error) {
      return await this.#again(error, call, main).catch((last: unknown) => {
        throw this.#located(last, this.eraFor(call.caller), call)
      })
    } finally {
      this.#slots.release()
      if (this.#slots.inUse === 0) this.#drained()
    }
  }

  async #attemptLater(call: Call): Promise<Outcome> {
    return this.#attempt(call, await this.#upkeep.ready())
  }

  #attempt(call: Call, main: Link): Promise<Outcome> {
    if (main.era === 'modern') return this.#goesLegacy(call) ? this.#attemptLegacy(call, main) : this.#send(call, main)
    if (this.#environment.soleHost !== undefined || (ON_MAIN_LINK.has(call.method) && !isBridge(call.caller.scope)))
      return this.#upkeep.over(main, () => this.#send(call, main))
    return this.#links.lease(call, this.#onLink)
  }

  /** Each request is a span of its own where the call has a trace. */
  #send(call: Call, link: Link): Promise<Outcome> {
    const { key, url, timeouts } = this.#options
    const faulty = this.#environment.faultsOf?.({ key, era: link.era, idleMs: timeouts.idleMs })
    const handle = faulty?.(link.handle) ?? link.handle
    const send = call.trace?.sending({ key, url, revision: link.revision }, handle) ?? handle
    return send(call)
  }

  /** Before the call, its server is told the log level, where that is another. */
  readonly #onLink: Use = (call, link, level) =>
    level === undefined ? this.#send(call, link) : link.setLevel(level).then(() => this.#send(call, link))

  /** A round of an answer that came over the modern link goes on there. */
  #goesLegacy({ caller, resume }: Call): boolean {
    return caller.session !== undefined && resume === undefined && this.#mayBeLegacy
  }

  /** Over the caller's own legacy link to a server of both eras; over the main link where it turns out to speak one alone. */
  async #attemptLegacy(call: Call, main: Link): Promise<Outcome> {
    const { link } = this.#offers.legacy
    try {
      if (link !== undefined && ON_MAIN_LINK.has(call.method) && !isBridge(call.caller.scope))
        return await this.#send(call, link).catch((error: unknown) => this.#pastForgotten(error, call, link))
      return await this.#links.lease(call, this.#onLink)
    } catch (error) {
      if (!(error instanceof ModernOnly)) throw error
      return this.#send({ ...call, takesStreams: false }, main)
    }
  }

  /**
   * The server has forgotten the session of the link that lists its legacy side: another is opened when it is needed, and the call goes
   * over the caller's own link, whose session may be forgotten as well, as after a restart of the server (5.3).
   */
  #pastForgotten(error: unknown, call: Call, link: Link): Promise<Outcome> {
    if (!isForgotten(error)) throw error
    this.#offers.legacy.rest(link)
    return this.#links.lease(call, this.#onLink)
  }

  /** `main`: the main link when `call` was sent. */
  async #again(error: unknown, call: Call, main: Link | undefined): Promise<Outcome> {
    if (await this.#eraWatch.isChange(error, main)) return this.#attemptLater(call)
    // Only modern requests over HTTP have headers that mirror arguments; of others it is an error of the tool, which has run (B231).
    const hasHeaders = this.link?.transport === 'http' && this.eraFor(call.caller) === 'modern'
    if (!hasHeaders || !isMismatch(error, call))
      return again(error, call, this.#environment.retries, () => this.#attemptLater(call))
    await this.#offers.read()
    const entry = this.inventory$.value?.lists.tools.find(({ original }) => original === call.target)
    return this.#attemptLater({ ...call, paramHeaders: entry?.paramHeaders ?? [] })
  }

  /** The server is another one now: what is known of its era is dropped, and it is dialed again at once (B268). */
  #changeEra(link: Link): void {
    const { log } = this.#environment
    log.info({ server: this.options.key, era: link.era }, 'the server does not speak this era any more; it is dialed again')
    this.#dialer.dropVerdict()
    this.#links.leaveAll()
    this.#upkeep.giveUp(link)
  }

  /** Processes that end soon are not started again at once; what is only connected to may be. */
  async #openLink(owner: LinkOwner): Promise<Link> {
    const open = (): Promise<Link> => this.#openNow(owner, this.#hearing.onLinkOf(owner))
    const { url, timeouts, dynamicLists } = this.#options
    const link = await (url === undefined ? this.#linkStarts.open(owner.key, timeouts.connectTimeoutMs, open) : open())
    if (dynamicLists) this.#ownLists.announced(owner)
    await this.#sessionWatches.opened({ owner, link })
    return link
  }

  /**
   * What a call changes is told on its link; many servers tell no other (a server object per connection is the usual pattern of SDKs).
   * Where a session's own link watches the resource, the main one does not tell that session (B284).
   */
  #updated(uri: string, params: Payload, owner: LinkOwner | undefined): void {
    const { updated } = this.#environment
    const isToldElsewhere = ({ session }: Caller): boolean => session !== undefined && this.#sessionWatches.isOwn(session, uri)
    if (owner === undefined) updated(this.id, uri, params, { isToldElsewhere })
    else updated(this.id, uri, params, { onLink: (caller) => isOnLink(caller, owner, this.#options.sharing) })
  }

  /** Whether a session's calls go over a link that no other host uses. */
  hasOwnLinkFor(session: HostSession): boolean {
    return session === this.#soleSession || (this.#environment.soleHost === undefined && this.#options.sharing === 'session')
  }

  /** A session at a bridge watches a resource over its own link: it does again over the next one. */
  watches(session: HostSession, uri: string): void {
    this.#sessionWatches.note(session, uri, this.#links.withOwners(session)[0]?.owner)
  }

  watchesNoMore(session: HostSession, uri: string): void {
    this.#sessionWatches.note(session, uri, undefined, false)
  }

  /** A session watches a resource that `subscribe` watches for the gateway. */
  async watchFor(session: HostSession, uri: string): Promise<void> {
    await this.#sessionWatches.add(session, uri, this.#links.withOwners(session))
  }

  unwatchFor(session: HostSession, uri: string): void {
    this.#sessionWatches.remove(session, uri, this.#links.withOwners(session))
  }

  #linkClosed(owner: LinkOwner): void {
    this.#ownLists.forget(owner)
    this.#sessionWatches.closed(owner)
    if (this.#announcer !== owner) return
    this.#announcer = undefined
    this.#offers.readSoon()
  }

  /** What the server lists on the link of these callers alone. */
  #listed({ isolation, sessions, principal }: LinkOwner, inventory: Inventory | undefined): void {
    const { key, sharing } = this.#options
    const { principalListed, sessionListed } = this.#environment
    if (isolation === 'principal') principalListed(key, { principal, hasSessions: sharing === 'principal' }, inventory)
    else for (const session of sessions) sessionListed(key, session, inventory)
  }

  /**
   * Settles once a list is as new as this caller expects when it asks for it (B285); never rejects. `undefined`: nothing to wait for.
   */
  freshen(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind): Promise<unknown> | undefined {
    const common = this.#offers.freshen(kind)
    if (this.#links.size === 0) return common
    const own = this.#links.ofCaller(caller).map(({ owner, link }) => this.#ownLists.freshen(owner, link))
    const pending = [common, ...own].filter((one) => one !== undefined)
    return pending.length === 0 ? undefined : Promise.all(pending)
  }

  /** Whether the server lists this to the caller, be it left out of what hosts are served. */
  lists(caller: Pick<Caller, 'session' | 'principal'>, kind: ListKind, original: string): boolean {
    const isNamed = namedIn(kind, original)
    return (
      this.#offers.lists(kind, original) || this.#links.ofCaller(caller).some(({ owner }) => this.#ownLists.names(owner, isNamed))
    )
  }

  async #openNow(owner: LinkOwner, events: LinkEvents): Promise<Link> {
    if (this.link?.era !== 'modern') return this.#dialer.dial(owner, events)
    const link = await this.#dialer.dialLegacy(owner, events)
    if (link === undefined) throw new ModernOnly()
    void this.#offers.legacy.want()
    return link
  }

  /** `era`: in which it was said, of a server's own error; `call`: in answer to what. */
  #located(error: unknown, era = this.link?.era, call?: Call): unknown {
    if (error instanceof ServerError)
      return error.at({ server: this.options.key, era, ...(call !== undefined && { status: this.#statusOf(error, call, era) }) })
    if (!(error instanceof Failure)) return error
    const isOurs = this.#stopping !== undefined && LOST.has(error.kind)
    const failure = isOurs ? new Failure('shutting_down', 'the server was stopped', error.facts, error) : error
    // A server that ends with the gateway is no matter of its own.
    return failure.kind === 'shutting_down' && this.#environment.isEnding() ? failure : failure.at(this.options)
  }

  /**
   * The HTTP status of a server's error. A pipe has none, and that of a legacy server says nothing of JSON-RPC: there a -32601 is about
   * what the request names, and not about its method, where the server declares the capability that the method belongs to.
   */
  #statusOf({ status, code }: ServerError, { method, caller }: Call, era: Era | undefined): number | undefined {
    if (this.link?.transport === 'http' && era === 'modern') return status ?? 200
    const capability = capabilityOf(method)
    const isDeclared = capability !== undefined && this.inventoryFor(caller)?.capabilities[capability] !== undefined
    return code === -32601 && isDeclared ? 200 : undefined
  }

  /** Watches a resource for the gateway; false if the server does not offer that. Throws `Failure` if it cannot be asked now. */
  subscribe(uri: string): Promise<boolean> {
    this.#followed.add(`resource ${uri}`)
    const asked = this.#subscribing.get(uri)
    if (asked !== undefined) return asked
    const asking = this.#subscribe(uri).finally(() => {
      if (this.#subscribing.get(uri) === asking) this.#subscribing.delete(uri)
    })
    this.#subscribing.set(uri, asking)
    return asking
  }

  /** Like a call that was not executed it is sent again where the session, or the era, turns out to be another (5.3, B268). */
  async #subscribe(uri: string): Promise<boolean> {
    let main: Link | undefined
    const attempt = async (): Promise<boolean> => {
      const link = (main = await this.#upkeep.ready())
      return this.#upkeep.over(link, () => link.subscribe(uri))
    }
    const ask = (): Promise<boolean> => withCredential(this.credential, attempt)
    try {
      return await ask().catch(async (error: unknown) => {
        if (!isForgotten(error) && !(await this.#eraWatch.isChange(error, main))) throw error
        return ask()
      })
    } catch (error) {
      if (error instanceof ServerError) return false
      throw this.#located(error)
    }
  }

  async unsubscribe(uri: string): Promise<void> {
    this.#followed.delete(`resource ${uri}`)
    this.#subscribing.delete(uri)
    await this.link?.unsubscribe(uri)
  }

  /** Asks to be told of a task's changes. */
  async followTask(id: string): Promise<void> {
    this.#followed.add(`task ${id}`)
    await withCredential(this.credential, async () => (await this.#upkeep.ready()).followTask(id))
  }

  async unfollowTask(id: string): Promise<void> {
    this.#followed.delete(`task ${id}`)
    await this.link?.unfollowTask(id)
  }

  /** A session was told to visit a URL of this server, known to the server by `id`. */
  sentAway(id: string, session: HostSession | undefined): void {
    if (session !== undefined) this.#asking.sentAway(id, session)
  }

  levelChanged(session: HostSession, level: LogLevel): void {
    if (session === this.#soleSession) this.#tellLevel(this.link, level)
    for (const { owner, link } of this.#links.withOwners(session)) this.#tellLevel(link, levelFor(owner, level))
  }

  /** What the server makes of it is no matter of the host's: it has its answer, and filters for itself. */
  #tellLevel(link: Link | undefined, level: LogLevel | undefined): void {
    if (link !== undefined && level !== undefined) void link.setLevel(level)
  }

  /** Passes on what a host at a bridge says, over its session's own link, which is opened for it. What cannot be delivered is dropped. */
  notified(caller: Caller, method: string, params: Payload | undefined): void {
    this.#linkFor(caller)
      .then((link) => link.notify(method, params))
      .catch((error: unknown) => this.#hearing.logFault('a notification of a host was dropped', `${method}: ${String(error)}`))
  }

  async #linkFor(caller: Caller): Promise<Link> {
    const main = this.link ?? (await this.#upkeep.ready())
    await this.eraSettled(caller)
    return this.eraFor(caller) === 'modern' || this.#environment.soleHost !== undefined ? main : this.#links.opened(caller)
  }

  /** Whether the session has a link of its own to the server. */
  hasLinkOf(session: HostSession): boolean {
    return this.#links.ofSession(session).length > 0
  }

  rootsChanged(session: HostSession): void {
    if (session === this.#soleSession) this.link?.rootsChanged()
    for (const link of this.#links.ofSession(session)) link.rootsChanged()
  }

  /** Ends when the calls under way have ended, at the latest after `drainMs`. Asked again without patience, it ends at once. */
  stop(drainMs = 0): Promise<void> {
    if (drainMs === 0) this.#drained()
    return (this.#stopping ??= this.#stop(drainMs))
  }

  async #stop(drainMs: number): Promise<void> {
    const personal = this.personal?.stop(drainMs)
    if (this.personal !== undefined) this.#environment.sweeper.unwatch(this.personal)
    this.#upkeep.drain()
    if (drainMs > 0 && this.#slots.inUse > 0) await this.#untilDrained(drainMs)
    this.#environment.sweeper.unwatch(this.#links)
    this.#environment.sweeper.unwatch(this.#legacyRest)
    await Promise.all([this.#links.close(), this.#offers.close(), this.#upkeep.close(), this.#dialer.close(), personal])
    await this.#upkeep.ended()
    this.inventory$.complete()
  }

  #untilDrained(drainMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, drainMs)
      this.#drained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #connect(opened: (link: Link) => void, isWanted: () => boolean): Promise<void> {
    const sole = await this.#environment.soleHost
    this.#soleSession = sole?.session
    const declared = sole === undefined ? this.#dialer.superset() : carried(sole)
    const prefersLegacy = sole?.session !== undefined
    const link = await withCredential(this.credential, () =>
      this.#dialer.dialMain({ declared, clientInfo: sole?.clientInfo, revision: sole?.revision }, this.#hearing.onMain(), {
        isWanted,
        prefersLegacy,
      }),
    )
    opened(link)
    await withCredential(this.credential, () => this.#offers.read(link))
  }

  get #isEmpty(): boolean {
    return Object.values(this.inventory$.value?.lists ?? {}).every(({ length }) => length === 0)
  }

  #makePersonal(environment: DownstreamEnvironment): Personal<Downstream> {
    const own = { ...environment, memory: forgetful(environment.memory) }
    return new Personal({
      options: () => this.options,
      make: (principal) => new Downstream(this.options, own, principal),
      listed: (principal, inventory) => environment.personalListed(this.options.key, principal, inventory),
      nowMs: () => environment.sweeper.nowMs,
    })
  }

  /** The main link is up. */
  #announce(link: Link, isAgain: boolean): void {
    const { log, isSuccessor, reconnected } = this.#environment
    const { key } = this.options
    const tools = this.inventory$.value?.lists.tools.length ?? 0
    log.info({ server: key, revision: link.revision, transport: link.transport, tools }, 'server is ready')
    this.#offers.follow(link)
    if (isAgain && this.#soleSession !== undefined) void this.#sessionWatches.again(this.#soleSession, link)
    if (isAgain || isSuccessor) reconnected(this)
    // A server that has nothing in this era may have it in the other.
    if (link.era === 'modern' && this.#isEmpty) void this.wantLegacy()
  }
}

/** Whether calls of this caller go over the link of this owner. */
const isOnLink = ({ session, principal }: Caller, { isolation, sessions, ...owner }: LinkOwner, sharing: Sharing): boolean => {
  if (isolation === 'session') return session !== undefined && sessions.has(session)
  if (isolation === 'principal') return principal === owner.principal && (session === undefined || sharing === 'principal')
  return isolation === 'shared'
}

/** A server whose main link is modern takes no `initialize`. */
class ModernOnly extends Error {}
