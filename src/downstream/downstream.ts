/**
 * One configured server, composed of its parts: main link (`health/`), links of callers (`links/`), lists (`lists/`), calls
 * (`server-calls.ts`). Its state at run time is one record (`health/server-state.ts`). `handle` takes calls; `health$` and `inventory$`
 * publish state and lists. Each part uses only parts that are built before it.
 */
import { isDeepStrictEqual } from 'node:util'
import type { BehaviorSubject } from 'rxjs'
import { withCredential } from '../auth/oauth/credential.ts'
import type { Credential } from '../auth/oauth/credential.ts'
import { isPerUser } from '../auth/oauth/credential-options.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { Link } from '../era/server/link.ts'
import type { Caller, Handler, Outcome } from '../rpc/call.ts'
import { Fidelity } from '../rpc/fidelity.ts'
import { Failure } from '../wire/message/failure.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import { LinkEventHandlers } from './calls/link-events.ts'
import { ServerRequests } from './calls/server-requests.ts'
import type { SessionWatches } from './calls/session-watches.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { EraWatch } from './health/era-watch.ts'
import type { Watched } from './health/era-watch.ts'
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
  readonly #linkLists: LinkLists
  readonly #sessionWatches: SessionWatches
  readonly #eraWatch: EraWatch<Link>
  /** Watches the legacy side of a server whose main link is modern. */
  readonly #legacyWatch: EraWatch<Watched>
  /** Called when a request of the gateway was refused on a link of this era. */
  readonly #refused: (error: unknown, era: Era) => void
  readonly #errors: ServerErrors
  readonly #calls: ServerCalls
  readonly #idleStop: IdleStop
  #stopping: Promise<void> | undefined

  /**
   * `watches`: what sessions watch at the server, and at its predecessors of the same key. `principal`: the only principal it serves; absent:
   * all. `fidelity`: the record of the server, for one of a single principal.
   */
  constructor(
    options: ServerOptions,
    environment: DownstreamEnvironment,
    watches: SessionWatches,
    principal?: string,
    fidelity?: Fidelity,
  ) {
    const { backoff, freshMs, log, memory, sweeper } = environment
    const { key } = options
    const optionsNow = (): ServerOptions => this.#options
    const nowMs = (): number => sweeper.nowMs
    const reports = new LinkReports()
    this.#options = options
    this.#environment = environment
    this.id = principal === undefined ? key : `${key} ${principal}`
    this.credential = environment.credential(options, principal)
    this.fidelity = fidelity ?? new Fidelity(key, log)
    const hasPersonal = principal === undefined && isPerUser(options.credential)
    this.personal = hasPersonal ? makePersonal(optionsNow, environment, watches, this.fidelity) : undefined

    const health = this.personal === undefined ? undefined : UNSIGNED
    const states = new ServerStates(initialState({ health, takesInitialize: memory.verdict(options)?.takesInitialize }))
    const main = new MainLink(states)
    this.#states = states
    this.main = main

    const requests = new ServerRequests(optionsNow, this.fidelity)
    const handlers = new LinkEventHandlers({
      id: this.id,
      options: optionsNow,
      environment,
      requests,
      states,
      reports,
      callCount: () => this.inFlight,
    })
    this.#handlers = handlers
    this.#sessionWatches = watches

    const dialer = new Dialer(options, environment, this.credential?.bearer, states, reports)
    this.dialer = dialer
    /** Whether a modern server may have a legacy side. Not for the only host of a pipe, whose main link has the host's era. */
    const mayServeLegacy = (): boolean => environment.soleHost === undefined && dialer.mayBeLegacy
    const restarts = new Restarts(() => optionsNow().limits.maxRestarts, nowMs)
    const starts = new LinkStarts(backoff, nowMs, restarts)
    this.#linkStarts = starts
    const links = new Links(options, {
      open: callerLinkOpener({
        options: optionsNow,
        dialer,
        main,
        handlers,
        starts,
        watches: this.#sessionWatches,
        reports,
        log,
      }),
      sessionSeen: () => dialer.sessionSeen(),
      closed: (owner) => reports.send({ type: 'closed', owner }),
      isShared: () => main.current?.transport !== 'http',
      nowMs,
    })
    this.#links = links

    const eraWatch = new EraWatch({
      link: () => main.current,
      probe: () => dialer.probe(),
      changed: (link) => {
        log.info({ server: key, era: link.era }, 'the server no longer speaks this era; it is dialed again')
        dialer.dropVerdict()
        links.retireAll()
        main.giveUp(link)
      },
      nowMs,
    })
    this.#eraWatch = eraWatch
    const legacySide: Watched = { era: 'legacy', transport: options.url === undefined ? 'pipe' : 'http' }
    this.#legacyWatch = new EraWatch({
      link: () => (dialer.takesInitialize ? legacySide : undefined),
      probe: () => dialer.probeLegacy(handlers.onMain()),
      // The probe has reported it.
      changed: () => log.info({ server: key }, 'the server no longer takes initialize'),
      nowMs,
    })
    const isLegacyRefused = (error: unknown): Promise<boolean> => this.#legacyWatch.isChange(error, legacySide)
    this.#refused = (error, era) =>
      void (era === 'legacy' && main.current?.era === 'modern' ? isLegacyRefused(error) : eraWatch.isChange(error, main.current))

    const offers = new Offers({
      options: optionsNow,
      environment,
      main: () => main.current,
      listing: () => (states.now.announcer && links.of(states.now.announcer)) ?? main.current,
      over: (link, use) => main.over(link, use),
      declared: SUPERSET,
      open: (declared) => dialer.dial({ declared }, handlers.onMain()),
      openLegacy: (declared) => dialer.dialLegacy({ declared }, handlers.onMain()),
      mayBeLegacy: mayServeLegacy,
      logFault: (reason, sample) => handlers.logFault(reason, sample),
      failed: this.#refused,
    })
    this.offers = offers
    this.#linkLists = new LinkLists({
      linkOf: (owner) => links.of(owner),
      commonRead: () => offers.announcedRead(),
      common: () => offers.legacy.inventory$.value ?? offers.inventory$.value,
      read: (link) => offers.readOver(link),
      listed: (owner, inventory) => reportLinkLists(environment, optionsNow(), owner, inventory),
      freshMs,
    })
    this.callerLists = new CallerLists(offers, this.#linkLists, links)

    const complaints = (): readonly string[] => offers.inventory$.value?.warnings ?? []
    offers.inventory$.subscribe(() => states.send({ type: 'listed', complaints: complaints() }))

    const supervisor = new Supervisor({
      options: optionsNow,
      principal,
      environment,
      restarts,
      states,
      main,
      mayConnect: () => Promise.all([environment.startAfter, environment.soleHost]),
      connect: (opened, isWanted) => this.#connect(opened, isWanted),
      isCrash: (failure) => dialer.isCrash(failure),
      complaints,
      up: (link, isAgain) => this.#announce(link, isAgain),
      failed: () => this.noteMissing(),
      givenUp: ({ facts }) => offers.withdraw(facts.signIn === true ? signInInventory(optionsNow()) : undefined),
    })
    this.supervisor = supervisor

    const { credential, id } = this
    const eras = new ServerEras({ options: optionsNow, dialer, main, links, offers, mayServeLegacy })
    const errors = new ServerErrors({ options: optionsNow, states, eras, environment })
    const common = { options: optionsNow, environment, credential, main, supervisor, eras, errors, eraWatch, links, offers }
    this.eras = eras
    this.#errors = errors
    this.#calls = new ServerCalls({ ...common, mayServeLegacy, isLegacyRefused })
    this.handle = this.#calls.handle
    this.subscriptions = new MainSubscriptions({ ...common, id })
    this.sessions = new SessionRelay({ ...common, states, watches: this.#sessionWatches, requests, handlers })

    const idleSource = {
      options: optionsNow,
      // The main link of the only host of a pipe is its own.
      isUsed: () => environment.soleHost !== undefined || main.current === undefined || this.isUsed,
      usedMs: () => this.usedMs,
      stop: () => {
        for (const lists of [offers.apps, offers.legacy]) lists.rest()
        supervisor.rest()
      },
    }
    this.#idleStop = new IdleStop(idleSource, nowMs())

    reports.deliverTo((report) => this.#onReport(report))
    for (const part of [links, eras, eraWatch, this.#legacyWatch, this.#idleStop, this.personal])
      if (part !== undefined) sweeper.watch(part)
    credential?.onChange?.(() => supervisor.retryNow())
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
    sweeper.unwatch(this.#links)
    sweeper.unwatch(this.eras)
    sweeper.unwatch(this.#eraWatch)
    sweeper.unwatch(this.#idleStop)
    sweeper.unwatch(this.#legacyWatch)
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
        this.#refused(report.error, report.era)
    }
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

/** The servers of single principals; their lists are not stored. */
const makePersonal = (
  options: () => ServerOptions,
  environment: DownstreamEnvironment,
  watches: SessionWatches,
  fidelity: Fidelity,
): Personal<Downstream> => {
  const own = { ...environment, memory: inMemory(environment.memory) }
  return new Personal({
    options,
    make: (principal) => new Downstream(options(), own, watches, principal, fidelity),
    listed: (principal, inventory) => environment.personalListed(options().key, principal, inventory),
    nowMs: () => environment.sweeper.nowMs,
  })
}

const reportLinkLists = (
  { principalListed, sessionListed }: DownstreamEnvironment,
  { key, sharing }: ServerOptions,
  { isolation, sessions, principal }: LinkOwner,
  inventory: Inventory | undefined,
): void => {
  if (isolation === 'principal') principalListed(key, { principal, hasSessions: sharing === 'principal' }, inventory)
  else for (const session of sessions) sessionListed(key, session, inventory)
}

/** Whether calls of this caller use the link of this owner. */
const isOnLink = ({ session, principal }: Caller, { isolation, sessions, ...owner }: LinkOwner, sharing: Sharing): boolean => {
  if (isolation === 'session') return session !== undefined && sessions.has(session)
  if (isolation === 'principal') return principal === owner.principal && (session === undefined || sharing === 'principal')
  return isolation === 'shared'
}
