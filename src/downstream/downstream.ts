/**
 * One configured server, composed of its parts: main link (`health/`), links of callers (`links/`), lists (`lists/`), calls
 * (`server-calls.ts`). Its state at run time is one record (`health/server-state.ts`). `handle` takes calls; `health$` and `inventory$`
 * publish state and lists. Each part uses only parts that are built before it.
 */
import { isDeepStrictEqual } from 'node:util'
import type { BehaviorSubject } from 'rxjs'
import { withCredential } from '../auth/outbound/credential.ts'
import type { Credential } from '../auth/outbound/credential.ts'
import { isPerUser } from '../auth/credential-options.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { Link } from '../era/server/link.ts'
import type { Caller, Handler, Outcome } from '../rpc/call.ts'
import { Fidelity } from '../rpc/fidelity.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import { Failure } from '../wire/message/failure.ts'
import type { Payload } from '../wire/message/payload.ts'
import { LinkEventHandlers } from './calls/link-events.ts'
import { ServerRequests } from './calls/server-requests.ts'
import type { SessionWatches } from './calls/session-watches.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { EraChanges } from './links/era-changes.ts'
import { UNSIGNED } from './health/health.ts'
import type { Health } from './health/health.ts'
import { IdleStop } from './health/idle-stop.ts'
import { MainLink } from './health/main-link.ts'
import { initialState, ServerStates } from './health/server-state.ts'
import { Supervisor } from './health/supervisor.ts'
import { carried } from './link-owner.ts'
import type { LinkOwner } from './link-owner.ts'
import { LinkReports } from './link-reports.ts'
import type { LinkReport } from './link-reports.ts'
import { callerLinkOpener } from './links/caller-link-opener.ts'
import { Dialer, SUPERSET } from './links/dialer.ts'
import { Links } from './links/links.ts'
import { CallerLists } from './lists/caller-lists.ts'
import { Offers } from './lists/offers.ts'
import { LinkLists } from './lists/link-lists.ts'
import { signedIn, signInInventory } from './lists/sign-in-tool.ts'
import { inMemory } from './lists/store.ts'
import { MainSubscriptions } from './main-subscriptions.ts'
import type { ServerLimits, ServerOptions, Sharing } from './options.ts'
import { LinkStarts } from './pacing/link-starts.ts'
import { Restarts } from './pacing/restarts.ts'
import { Personal } from './personal.ts'
import { ServerCalls } from './server-calls.ts'
import { ServerEras } from './server-eras.ts'
import { ServerErrors } from './server-errors.ts'
import { SessionRelay } from './session-relay.ts'

/** Limits by which a reading of the lists leaves out definitions. */
const LIST_LIMITS = [
  'maxMessageBytes',
  'maxTools',
  'maxEntries',
  'maxPages',
  'maxTextBytes',
  'maxSchemaBytes',
  'maxSchemaDepth',
] as const satisfies readonly (keyof ServerLimits)[]

/** A principal with a connection of its own; `fidelity`: the record of the server. */
interface Single {
  readonly principal: string
  readonly fidelity: Fidelity
}

export class Downstream {
  #options: ServerOptions
  /** Monotonic time of the configuration, from which the list budget is counted. */
  readonly startedMs = performance.now()
  /** The key; with the principal, if each principal has its own connection. */
  readonly id: string
  /** The changing credential of each request; `undefined`: the server needs none. */
  readonly credential: Credential | undefined
  /** The connections of principals, if each has its own. */
  readonly personal: Personal<Downstream> | undefined
  readonly fidelity: Fidelity
  readonly dialer: Dialer
  readonly main: MainLink
  readonly supervisor: Supervisor
  readonly offers: Offers
  readonly callerLists: CallerLists
  readonly eras: ServerEras
  readonly subscriptions: MainSubscriptions
  readonly sessions: SessionRelay
  /** Throws `Failure`, `ServerError` or `Refusal`. */
  readonly handle: Handler
  readonly #environment: DownstreamEnvironment
  readonly #states: ServerStates
  readonly #handlers: LinkEventHandlers
  readonly #links: Links
  readonly #linkStarts: LinkStarts
  readonly #restarts: Restarts
  readonly #linkLists: LinkLists
  readonly #sessionWatches: SessionWatches
  readonly #eraChanges: EraChanges
  readonly #errors: ServerErrors
  readonly #calls: ServerCalls
  /** Parts that are swept until the server is stopped. */
  readonly #swept: readonly Sweepable[]
  #stopping: Promise<void> | undefined

  /** `watches`: what sessions watch at the server, and at its predecessors of the same key. `single`: absent for all callers. */
  constructor(options: ServerOptions, environment: DownstreamEnvironment, watches: SessionWatches, single?: Single) {
    const { log, sweeper, freshMs } = environment
    const { key } = options
    const principal = single?.principal
    this.#options = options
    this.#environment = environment
    this.#sessionWatches = watches
    this.id = principal === undefined ? key : `${key} ${principal}`
    this.credential = environment.credential(options, principal)
    this.fidelity = single?.fidelity ?? new Fidelity(key, log)
    this.personal = principal === undefined && isPerUser(options.credential) ? this.#makePersonal() : undefined

    const { id, credential } = this
    const nowMs = (): number => sweeper.nowMs
    const reports = new LinkReports()
    const common = { id, principal, options: () => this.#options, environment, credential, watches, reports, log, nowMs }

    const health = this.personal === undefined ? undefined : UNSIGNED
    const { takesInitialize } = environment.memory.verdict(options) ?? {}
    const states = new ServerStates(initialState({ health, takesInitialize }))
    const main = new MainLink(states)
    const requests = new ServerRequests(common.options, this.fidelity)
    const handlers = new LinkEventHandlers({ ...common, states, requests, callCount: () => this.inFlight })
    const dialer = new Dialer(options, environment, credential?.bearer, states, reports)
    const dialing = { ...common, states, main, requests, handlers, dialer }

    const restarts = new Restarts(() => this.#options.limits.maxRestarts, nowMs)
    const starts = new LinkStarts(environment.backoff, nowMs, restarts, (failure) => dialer.isCrash(failure))
    const links = new Links(options, {
      open: callerLinkOpener({ ...dialing, starts }),
      sessionSeen: () => dialer.sessionSeen(),
      closed: (owner) => reports.send({ type: 'closed', owner }),
      isShared: () => main.current?.transport !== 'http',
      nowMs,
    })
    const eraChanges = new EraChanges({ ...dialing, links })
    const offers = new Offers({ ...dialing, links, eraChanges })
    const linkLists = new LinkLists({
      isInUse: (owner) => links.has(owner),
      linkOf: (owner) => links.of(owner),
      commonRead: () => offers.announcedRead(),
      common: () => offers.legacy.inventory$.value ?? offers.inventory$.value,
      read: (link) => offers.readOver(link),
      listed: (owner, inventory) => this.#linkListed(owner, inventory),
      freshMs,
    })
    const complaints = (): readonly string[] => offers.inventory$.value?.warnings ?? []
    offers.inventory$.subscribe(() => states.send({ type: 'listed', complaints: complaints() }))

    const supervisor = new Supervisor({
      ...dialing,
      restarts,
      mayConnect: () => Promise.all([environment.startAfter, environment.soleHost]),
      connect: (opened, isWanted) => this.#connect(opened, isWanted),
      isCrash: (failure) => dialer.isCrash(failure),
      complaints,
      up: (link, isAgain) => this.#announce(link, isAgain),
      failed: () => this.noteMissing(),
      givenUp: ({ facts }) => offers.withdraw(facts.signIn === true ? signInInventory(this.#options) : undefined),
    })
    const serving = { ...dialing, links, offers, eraChanges, supervisor }
    const eras = new ServerEras(serving)
    const errors = new ServerErrors({ ...serving, eras })
    this.#calls = new ServerCalls({ ...serving, eras, errors })
    this.handle = this.#calls.handle
    this.subscriptions = new MainSubscriptions({ ...serving, errors })
    this.sessions = new SessionRelay({ ...serving, eras })
    this.callerLists = new CallerLists(offers, linkLists, links)

    this.main = main
    this.dialer = dialer
    this.offers = offers
    this.supervisor = supervisor
    this.eras = eras
    this.#states = states
    this.#handlers = handlers
    this.#links = links
    this.#linkStarts = starts
    this.#restarts = restarts
    this.#linkLists = linkLists
    this.#eraChanges = eraChanges
    this.#errors = errors

    this.#swept = [links, eras, eraChanges, this.#makeIdleStop()]
    for (const part of this.#swept) sweeper.watch(part)
    if (this.personal !== undefined) sweeper.watch(this.personal)
    reports.deliverTo((report) => this.#onReport(report))
    credential?.onChange?.(() => supervisor.retryNow())
    // Shown by `ps`, the log and the lists, as if the connection were opened now.
    credential?.onEnd?.((failure) => main.current && main.giveUp(main.current, failure))
  }

  /** The servers of single principals; their lists are not stored. */
  #makePersonal(): Personal<Downstream> {
    const environment = { ...this.#environment, memory: inMemory(this.#environment.memory) }
    const { fidelity } = this
    return new Personal({
      options: () => this.#options,
      make: (principal) => new Downstream(this.#options, environment, this.#sessionWatches, { principal, fidelity }),
      listed: (principal, inventory) => environment.personalListed(this.#options.key, principal, inventory),
      nowMs: () => environment.sweeper.nowMs,
    })
  }

  #makeIdleStop(): IdleStop {
    const { soleHost, sweeper } = this.#environment
    const source = {
      options: () => this.#options,
      // The main link of the only host of a pipe is its own.
      isUsed: () => soleHost !== undefined || this.link === undefined || this.isUsed,
      usedMs: () => this.usedMs,
      stop: () => {
        for (const lists of [this.offers.apps, this.offers.legacy]) lists.rest()
        this.supervisor.rest()
      },
    }
    return new IdleStop(source, sweeper.nowMs)
  }

  get options(): ServerOptions {
    return this.#options
  }
  get health$(): BehaviorSubject<Health> {
    return this.#states.health$
  }
  get inventory$(): BehaviorSubject<Inventory | undefined> {
    return this.offers.inventory$
  }
  /** The main link while calls may use it. */
  get link(): Link | undefined {
    return this.main.current
  }
  get linkCount(): number {
    const further = [this.link, this.offers.apps.link, this.offers.legacy.link].filter((link) => link !== undefined)
    return further.length + this.#links.size
  }
  get inFlight(): number {
    return this.#calls.inFlight
  }

  /** Calls that wait for a free slot (`limits.concurrency`). */
  get queued(): number {
    return this.#calls.queued
  }
  /** Outages since the start, those of all principals. */
  get outages(): number {
    return this.health$.value.failures + (this.personal?.outages ?? 0)
  }
  /** Processes that ended by themselves since the start, those of all callers. */
  get crashes(): number {
    return this.#restarts.crashes + (this.personal?.crashes ?? 0)
  }
  /** Whether a host watches resources or tasks. */
  get isWatched(): boolean {
    return !this.subscriptions.isEmpty
  }

  /** Whether a call, a link of a caller or a host that watches needs the connection now. */
  get isUsed(): boolean {
    return this.inFlight > 0 || this.#links.size > 0 || this.isWatched
  }
  /** Monotonic time of the last use; in the future for a task that a modern server keeps. */
  get usedMs(): number {
    return this.#calls.usedMs
  }

  /** This object, and those of single principals. */
  get all(): readonly Downstream[] {
    return [this, ...(this.personal?.all ?? [])]
  }

  /** The server object for calls of this principal. */
  for(principal: string): Downstream {
    return this.personal?.of(principal) ?? this
  }

  /** Starts connecting in the background; a lazy server whose inventory is stored waits for its first call. */
  start(): void {
    if (this.personal === undefined && (this.options.start !== 'lazy' || this.inventory$.value === undefined))
      this.supervisor.run()
  }

  /** A lazy server with known lists that its next use starts (`lifecycle.start`). */
  get isResting(): boolean {
    return this.personal === undefined && this.health$.value.state === 'starting' && !this.supervisor.isRunning
  }

  /** Whether lists wait for this server: its inventory is unknown, it is starting, and it has not failed before. */
  get isAwaited(): boolean {
    const { state, failures } = this.health$.value
    const isFirst = this.inventory$.value === undefined && state === 'starting' && failures === 0
    return isFirst && !this.#environment.memory.hasFailed(this.options)
  }

  /** Stores that the inventory was not read in time, so that lists do not wait for it at the next start. */
  noteMissing(): void {
    if (this.inventory$.value === undefined) this.#environment.memory.keepFailed(this.options)
  }

  /** Waits for the server's lists like a call. Throws the `Failure` of its state. */
  async listed(): Promise<void> {
    try {
      await withCredential(this.credential, () => this.supervisor.ready())
    } catch (error) {
      throw this.#errors.located(error)
    }
  }

  /**
   * Settles once the inventory for this caller is known, or cannot be read now; `undefined`: nothing to wait for. Never rejects.
   * `budgetMs`: how long a host waits for its own era of a server of which the other era is known.
   */
  introduced(caller: Pick<Caller, 'session'>, budgetMs: number): Promise<unknown> | undefined {
    const { eras, link } = this
    // A failure is reported to the calls that follow.
    if (eras.inventoryFor(caller) === undefined)
      return this.listed().then(
        () => this.introduced(caller, budgetMs),
        () => undefined,
      )
    const { activity, health } = this.#states.now
    const isComing = link !== undefined || (activity === 'dialing' && health.failures === 0)
    if (!isComing || !eras.isUnmet(caller)) return undefined
    const isRead = link !== undefined && this.#environment.soleHost === undefined
    return eras.meet(caller, isRead ? Promise.resolve() : this.listed(), budgetMs)
  }

  /** The result of the sign-in tool: waits for the lists, and throws the `Failure` that asks for the sign-in. */
  async signedIn(): Promise<Outcome> {
    await this.listed()
    return signedIn(this.options, this.inventory$.value)
  }

  /** Connects now: skips the wait before the next attempt, also for a failed server. */
  retryNow(): void {
    if (this.personal === undefined) this.supervisor.retryNow()
    else for (const downstream of this.personal.all) downstream.retryNow()
  }

  /** Applies options of a reload that needs no restart. */
  adopt(options: ServerOptions): void {
    const { dynamicLists, hidden, onChange, locked, limits, start } = this.options
    this.#options = options
    if (LIST_LIMITS.some((limit) => options.limits[limit] !== limits[limit])) this.offers.readSoon()
    if (options.start !== start) this.start()
    if (options.dynamicLists && !dynamicLists) for (const owner of this.#links.owners) this.#linkLists.announced(owner)
    if (options.hidden !== hidden || options.onChange !== onChange || !isDeepStrictEqual(options.locked, locked))
      this.offers.vetAgain()
    this.dialer.adopt(options)
    this.#links.adopt(options)
    this.#calls.adopt(options)
    this.personal?.adopt(options)
  }

  /** Reads the current inventory, before any policy; `apps`: also that for hosts that run MCP Apps. Throws `Failure` if not connected. */
  async offered(apps: boolean): Promise<{ readonly all: Inventory; readonly apps: Inventory | undefined }> {
    const { failure } = this.health$.value
    if (this.link === undefined && failure !== undefined) throw failure
    await this.supervisor.ready()
    if (apps && this.options.apps) await this.wantApps()
    const { all, apps: forApps } = await this.offers.offered()
    if (all === undefined) throw new Failure('unreachable', 'nothing is known of the server', { executed: 'no' })
    return { all, apps: forApps }
  }

  /** Settles once the lists for hosts that run MCP Apps are known, or cannot be read now. The main link of an only host has them already. */
  wantApps(): Promise<void> {
    return this.#environment.soleHost === undefined ? this.offers.apps.want() : Promise.resolve()
  }

  /** Stops the server once pending calls have ended, at the latest after `drainMs`. A second call with 0 stops it at once. */
  stop(drainMs = 0): Promise<void> {
    if (drainMs === 0) {
      this.#calls.endDrain()
      void this.personal?.stop(0)
    }
    return (this.#stopping ??= this.#stop(drainMs))
  }

  async #stop(drainMs: number): Promise<void> {
    const { sweeper } = this.#environment
    const personal = this.personal?.stop(drainMs)
    if (this.personal !== undefined) sweeper.unwatch(this.personal)
    this.supervisor.drain()
    this.#linkLists.close()
    if (drainMs > 0 && this.#calls.inFlight > 0) await this.#calls.untilDrained(drainMs)
    for (const part of this.#swept) sweeper.unwatch(part)
    // Waiting starts continue in a later microtask, when the dialer is already closed.
    this.#linkStarts.close()
    await Promise.all([this.#links.close(), this.offers.close(), this.main.close(), this.dialer.close(), personal])
    await this.supervisor.ended()
    this.credential?.close()
    this.inventory$.complete()
  }

  async #connect(opened: (link: Link) => void, isWanted: () => boolean): Promise<void> {
    const sole = await this.#environment.soleHost
    this.#states.send({ type: 'sole-session', session: sole?.session })
    const declared = sole === undefined ? SUPERSET : carried(sole)
    const host = { declared, clientInfo: sole?.clientInfo, revision: sole?.revision }
    const choice = { isWanted, prefersLegacy: sole?.session !== undefined }
    const link = await withCredential(this.credential, () => this.dialer.dialMain(host, this.#handlers.onMain(), choice))
    opened(link)
    await withCredential(this.credential, () => this.offers.read(link))
  }

  /** The main link is ready for calls. */
  #announce(link: Link, isAgain: boolean): void {
    const { log, isSuccessor, reconnected } = this.#environment
    const { lists } = this.inventory$.value ?? {}
    const { soleSession } = this.#states.now
    const facts = {
      server: this.options.key,
      revision: link.revision,
      transport: link.transport,
      tools: lists?.tools.length ?? 0,
    }
    log.info(facts, 'server is ready')
    this.offers.follow(link)
    if (isAgain && soleSession !== undefined) void this.#sessionWatches.again(soleSession, link)
    if (soleSession?.logLevel !== undefined) void link.setLevel(soleSession.logLevel)
    if (isAgain || isSuccessor) reconnected(this.subscriptions)
    // A server without entries in this era may have them in the other.
    const isEmpty = Object.values(lists ?? {}).every(({ length }) => length === 0)
    if (link.era === 'modern' && isEmpty) void this.eras.wantLegacy()
  }

  #onReport(report: LinkReport): void {
    switch (report.type) {
      case 'opened':
        if (this.options.dynamicLists) this.#linkLists.announced(report.owner)
        return
      case 'closed':
        return this.#linkClosed(report.owner)
      case 'legacy-opened':
        void this.offers.legacy.taken()
        return
      case 'list-announced':
        this.#states.send(report)
        this.offers.outdated(report.list)
        this.#linkLists.announced(report.owner, report.list)
        return
      case 'updated':
        return this.#updated(report.uri, report.params, report.owner)
      case 'task-ended':
        return this.#links.taskEnded(report.id, report.owner)
      case 'legacy-refused':
        this.#links.retireAll()
        this.offers.forgetLegacy()
        return
      case 'refused':
        this.#eraChanges.refused(report.error, report.era)
    }
  }

  #linkListed({ isolation, sessions, principal }: LinkOwner, inventory: Inventory | undefined): void {
    const { principalListed, sessionListed } = this.#environment
    const { key, sharing } = this.#options
    if (isolation === 'principal') principalListed(key, { principal, hasSessions: sharing === 'principal' }, inventory)
    else for (const session of sessions) sessionListed(key, session, inventory)
  }

  #linkClosed(owner: LinkOwner): void {
    this.#linkLists.forget(owner)
    if (!this.#environment.isEnding()) this.#sessionWatches.closed(owner)
    const { announcer } = this.#states.now
    this.#states.send({ type: 'link-closed', owner })
    if (announcer === owner) this.offers.readSoon()
  }

  /**
   * Many servers report a change only on the link of the call that caused it, since SDKs usually create a server object per connection. If
   * a session's own link watches the resource, updates on the main link are not sent to that session (B284).
   */
  #updated(uri: string, params: Payload, owner: LinkOwner | undefined): void {
    const { updated } = this.#environment
    const isToldElsewhere = ({ session }: Caller): boolean => session !== undefined && this.#sessionWatches.isOwn(session, uri)
    if (owner === undefined) updated(this.id, uri, params, { isToldElsewhere })
    else updated(this.id, uri, params, { onLink: (caller) => isOnLink(caller, owner, this.#options.sharing) })
  }
}

/** Whether calls of this caller use the link of this owner. */
const isOnLink = ({ session, principal }: Caller, { isolation, sessions, ...owner }: LinkOwner, sharing: Sharing): boolean => {
  if (isolation === 'session') return session !== undefined && sessions.has(session)
  if (isolation === 'principal') return principal === owner.principal && (session === undefined || sharing === 'principal')
  return isolation === 'shared'
}
