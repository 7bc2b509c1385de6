/**
 * One configured server, put together from its parts: kept connected (`health/`), reached over links (`links/`), known (`lists/`), called
 * (`server-calls.ts`). What is known of it while it runs is one record (`health/server-state.ts`). Calls go in at `handle`; `health$` and
 * `inventory$` report what the server is and offers. The parts are handed out, and built in one direction: each uses only earlier ones.
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
import { SessionWatches } from './calls/session-watches.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { EraWatch } from './health/era-watch.ts'
import type { Watched } from './health/era-watch.ts'
import { UNSIGNED } from './health/health.ts'
import type { Health } from './health/health.ts'
import { MainLink } from './health/main-link.ts'
import { initialState, ServerStates } from './health/server-state.ts'
import { Supervisor } from './health/supervisor.ts'
import { carried } from './link-owner.ts'
import type { LinkOwner } from './link-owner.ts'
import { LinkReports } from './link-reports.ts'
import type { LinkReport } from './link-reports.ts'
import { callerLinkOpener } from './links/caller-link-opener.ts'
import { Dialer } from './links/dialer.ts'
import { Links } from './links/links.ts'
import { CallerLists } from './lists/caller-lists.ts'
import { Offers } from './lists/offers.ts'
import { OwnLists } from './lists/own-lists.ts'
import { signedIn, signInInventory } from './lists/sign-in-tool.ts'
import { inMemory } from './lists/store.ts'
import { MainSubscriptions } from './main-subscriptions.ts'
import type { ServerOptions, Sharing } from './options.ts'
import { LinkStarts } from './pacing/link-starts.ts'
import { Restarts } from './pacing/restarts.ts'
import { Personal } from './personal.ts'
import { ServerCalls } from './server-calls.ts'
import { ServerEras } from './server-eras.ts'
import { ServerErrors } from './server-errors.ts'
import { SessionRelay } from './session-relay.ts'

export class Downstream {
  #options: ServerOptions
  /** Monotonic time at which it was configured: what the list budget is counted from. */
  readonly startedMs = performance.now()
  /** Names it among all servers and principals. */
  readonly id: string
  /** The proof that goes with every request; `undefined`: none that changes. */
  readonly credential: Credential | undefined
  /** Where each principal has a connection of its own. */
  readonly personal: Personal<Downstream> | undefined
  /** What of its calls was translated, and what was impossible. */
  readonly fidelity: Fidelity
  /** Opens its processes and connections. */
  readonly dialer: Dialer
  readonly main: MainLink
  readonly supervisor: Supervisor
  /** Its lists, as they are and as they were approved. */
  readonly offers: Offers
  /** Its lists, as one caller sees them. */
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
  readonly #ownLists: OwnLists
  readonly #sessionWatches: SessionWatches
  readonly #eraWatch: EraWatch<Link>
  /** Of the legacy side of a server whose main link is modern. */
  readonly #legacyWatch: EraWatch<Watched>
  /** A request of the gateway was refused on a link of this era. */
  readonly #refused: (error: unknown, era: Era) => void
  readonly #errors: ServerErrors
  readonly #calls: ServerCalls
  #stopping: Promise<void> | undefined

  /** `principal`: the only one it serves. */
  constructor(options: ServerOptions, environment: DownstreamEnvironment, principal?: string) {
    const { backoff, freshMs, log, memory, sweeper } = environment
    const { key } = options
    const optionsNow = (): ServerOptions => this.#options
    const nowMs = (): number => sweeper.nowMs
    const reports = new LinkReports()
    this.#options = options
    this.#environment = environment
    this.id = principal === undefined ? key : `${key} ${principal}`
    this.credential = environment.credential(options, principal)
    this.personal = principal === undefined && isPerUser(options.credential) ? makePersonal(optionsNow, environment) : undefined

    const health = this.personal === undefined ? undefined : UNSIGNED
    const states = new ServerStates(initialState({ health, takesInitialize: memory.verdict(options)?.takesInitialize }))
    const main = new MainLink(states)
    this.#states = states
    this.main = main

    this.fidelity = new Fidelity(key, log)
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
    this.#sessionWatches = new SessionWatches((error) => handlers.logFault('a resource cannot be watched', String(error)))

    const dialer = new Dialer(options, environment, this.credential?.bearer, states, reports)
    this.dialer = dialer
    /** The main link of a modern server may not be all that it offers; a sole host's link is in its own era from the start. */
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
        log.info({ server: key, era: link.era }, 'the server does not speak this era any more; it is dialed again')
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
      changed: () => log.info({ server: key }, 'the server does not take initialize any more'),
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
      declared: dialer.superset(),
      open: (declared) => dialer.dial({ declared }, handlers.onMain()),
      openLegacy: (declared) => dialer.dialLegacy({ declared }, handlers.onMain()),
      mayBeLegacy: mayServeLegacy,
      logFault: (reason, sample) => handlers.logFault(reason, sample),
      failed: this.#refused,
    })
    this.offers = offers
    this.#ownLists = new OwnLists({
      linkOf: (owner) => links.of(owner),
      commonRead: () => offers.announcedRead(),
      common: () => offers.legacy.inventory$.value ?? offers.inventory$.value,
      read: (link) => offers.readOver(link),
      listed: (owner, inventory) => sendOwnLists(environment, optionsNow(), owner, inventory),
      freshMs,
    })
    this.callerLists = new CallerLists(offers, this.#ownLists, links)

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
      complaints: () => offers.inventory$.value?.warnings ?? [],
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

    reports.deliverTo((report) => this.#onReport(report))
    for (const part of [links, eras, eraWatch, this.#legacyWatch, this.personal]) if (part !== undefined) sweeper.watch(part)
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
  /** The main link, while it is up. */
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
  /** At least one host waits for changes. */
  get isWatched(): boolean {
    return !this.subscriptions.isEmpty
  }

  /** The one that calls of this principal go to. */
  for(principal: string): Downstream {
    return this.personal?.of(principal) ?? this
  }

  /** Starts connecting in the background; a lazy server whose inventory is stored waits for its first call. */
  start(): void {
    if (this.personal === undefined && (this.options.start !== 'lazy' || this.inventory$.value === undefined))
      this.supervisor.run()
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

  /** Waits for its lists as a call would. Throws the `Failure` of its state. */
  async listed(): Promise<void> {
    try {
      await withCredential(this.credential, () => this.supervisor.ready())
    } catch (error) {
      throw this.#errors.located(error)
    }
  }

  /**
   * Settles once it is known what the server says of itself to this caller, or cannot be now; `undefined`: nothing to wait for. Never
   * rejects. `budgetMs`: how long a legacy host waits for the legacy side of a server whose modern side is known.
   */
  introduced(caller: Pick<Caller, 'session'>, budgetMs: number): Promise<unknown> | undefined {
    const { eras, link } = this
    // Why it cannot be known is the answer to the calls that follow.
    if (eras.inventoryFor(caller) === undefined)
      return this.listed().then(
        () => this.introduced(caller, budgetMs),
        () => undefined,
      )
    const { activity, health } = this.#states.now
    const isComing = link !== undefined || (activity === 'dialing' && health.failures === 0)
    if (!isComing || !eras.isUnmet(caller)) return undefined
    return eras.meetLegacy(link === undefined ? this.listed() : Promise.resolve(), budgetMs)
  }

  /** The result of the tool for signing in: waits for its lists, and throws the `Failure` that asks for the sign-in. */
  async signedIn(): Promise<Outcome> {
    await this.listed()
    return signedIn(this.options, this.inventory$.value)
  }

  /** Skips the wait before the next attempt, and wakes a server that had been given up. */
  retryNow(): void {
    if (this.personal === undefined) this.supervisor.retryNow()
    else for (const downstream of this.personal.all) downstream.retryNow()
  }

  /** Other options, from a reload that asks for no restart: limits and time-outs hold from now on. */
  adopt(options: ServerOptions): void {
    const { hidden, onChange, locked } = this.options
    this.#options = options
    if (options.hidden !== hidden || options.onChange !== onChange || !isDeepStrictEqual(options.locked, locked))
      this.offers.vetAgain()
    this.dialer.adopt(options)
    this.#links.adopt(options)
    this.#calls.adopt(options)
    this.personal?.adopt(options)
  }

  /** What the server says of itself now, before any policy; `apps`: to hosts that run MCP Apps, too. Throws `Failure` if it cannot be asked. */
  async offered(apps: boolean): Promise<{ readonly all: Inventory; readonly apps: Inventory | undefined }> {
    const { failure } = this.health$.value
    if (this.link === undefined && failure !== undefined) throw failure
    await this.supervisor.ready()
    if (apps && this.options.apps) await this.wantApps()
    const { all, apps: forApps } = await this.offers.offered()
    if (all === undefined) throw new Failure('unreachable', 'nothing is known of the server', { executed: 'no' })
    return { all, apps: forApps }
  }

  /** A host that runs apps wants lists: settles once they are known, or cannot be now. A sole host's own link reads them already. */
  wantApps(): Promise<void> {
    return this.#environment.soleHost === undefined ? this.offers.apps.want() : Promise.resolve()
  }

  /** Ends when the calls under way have ended, at the latest after `drainMs`. Called again with 0, it ends at once. */
  stop(drainMs = 0): Promise<void> {
    if (drainMs === 0) this.#calls.endDrain()
    return (this.#stopping ??= this.#stop(drainMs))
  }

  async #stop(drainMs: number): Promise<void> {
    const { sweeper } = this.#environment
    const personal = this.personal?.stop(drainMs)
    if (this.personal !== undefined) sweeper.unwatch(this.personal)
    this.supervisor.drain()
    if (drainMs > 0 && this.#calls.inFlight > 0) await this.#calls.untilDrained(drainMs)
    sweeper.unwatch(this.#links)
    sweeper.unwatch(this.eras)
    sweeper.unwatch(this.#eraWatch)
    sweeper.unwatch(this.#legacyWatch)
    // What waited goes on in a later microtask, when the dialer refuses already.
    this.#linkStarts.close()
    await Promise.all([this.#links.close(), this.offers.close(), this.main.close(), this.dialer.close(), personal])
    await this.supervisor.ended()
    this.inventory$.complete()
  }

  async #connect(opened: (link: Link) => void, isWanted: () => boolean): Promise<void> {
    const sole = await this.#environment.soleHost
    this.#states.send({ type: 'sole-session', session: sole?.session })
    const declared = sole === undefined ? this.dialer.superset() : carried(sole)
    const host = { declared, clientInfo: sole?.clientInfo, revision: sole?.revision }
    const choice = { isWanted, prefersLegacy: sole?.session !== undefined }
    const link = await withCredential(this.credential, () => this.dialer.dialMain(host, this.#handlers.onMain(), choice))
    opened(link)
    await withCredential(this.credential, () => this.offers.read(link))
  }

  /** The main link is up. */
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
    if (isAgain || isSuccessor) reconnected(this.subscriptions)
    // A server that has nothing in this era may have it in the other.
    const isEmpty = Object.values(lists ?? {}).every(({ length }) => length === 0)
    if (link.era === 'modern' && isEmpty) void this.eras.wantLegacy()
  }

  #onReport(report: LinkReport): void {
    switch (report.type) {
      case 'opened':
        if (this.options.dynamicLists) this.#ownLists.announced(report.owner)
        return
      case 'closed':
        return this.#linkClosed(report.owner)
      case 'legacy-opened':
        void this.offers.legacy.taken()
        return
      case 'list-announced':
        this.#states.send(report)
        this.offers.outdated(report.list)
        this.#ownLists.announced(report.owner)
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
    this.#ownLists.forget(owner)
    this.#sessionWatches.closed(owner)
    const { announcer } = this.#states.now
    this.#states.send({ type: 'link-closed', owner })
    if (announcer === owner) this.offers.readSoon()
  }

  /**
   * What a call changes is reported on its link; many servers report it on no other (a server object per connection is the usual pattern
   * of SDKs). Where a session's own link watches the resource, the main one does not report it to that session (B284).
   */
  #updated(uri: string, params: Payload, owner: LinkOwner | undefined): void {
    const { updated } = this.#environment
    const isToldElsewhere = ({ session }: Caller): boolean => session !== undefined && this.#sessionWatches.isOwn(session, uri)
    if (owner === undefined) updated(this.id, uri, params, { isToldElsewhere })
    else updated(this.id, uri, params, { onLink: (caller) => isOnLink(caller, owner, this.#options.sharing) })
  }
}

/** Each principal's own server remembers nothing of what it is listed. */
const makePersonal = (options: () => ServerOptions, environment: DownstreamEnvironment): Personal<Downstream> => {
  const own = { ...environment, memory: inMemory(environment.memory) }
  return new Personal({
    options,
    make: (principal) => new Downstream(options(), own, principal),
    listed: (principal, inventory) => environment.personalListed(options().key, principal, inventory),
    nowMs: () => environment.sweeper.nowMs,
  })
}

/** Reports what the server lists on the link of these callers alone. */
const sendOwnLists = (
  { principalListed, sessionListed }: DownstreamEnvironment,
  { key, sharing }: ServerOptions,
  { isolation, sessions, principal }: LinkOwner,
  inventory: Inventory | undefined,
): void => {
  if (isolation === 'principal') principalListed(key, { principal, hasSessions: sharing === 'principal' }, inventory)
  else for (const session of sessions) sessionListed(key, session, inventory)
}

/** Whether calls of this caller go over the link of this owner. */
const isOnLink = ({ session, principal }: Caller, { isolation, sessions, ...owner }: LinkOwner, sharing: Sharing): boolean => {
  if (isolation === 'session') return session !== undefined && sessions.has(session)
  if (isolation === 'principal') return principal === owner.principal && (session === undefined || sharing === 'principal')
  return isolation === 'shared'
}
