/**
 * The composition root: the one place where the rooms meet. `startGateway` builds everything from a configuration and returns
 * what can be done with it; disposing it ends everything in the reverse order.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { AuditFile } from './audit-file.ts'
import type { AuditState } from './audit-file.ts'
import { LOCAL } from './auth/identity.ts'
import { credentialFor } from './auth/oauth/credential-for.ts'
import type { OAuthEnvironment } from './auth/oauth/environment.ts'
import { SafeFetch } from './auth/oauth/safe-fetch.ts'
import { SIGN_IN_TTL_MS, SignIns } from './auth/oauth/sign-ins.ts'
import { TokenStore } from './auth/oauth/store.ts'
import { Seal } from './auth/seal.ts'
import { SubjectTokens } from './auth/subject-tokens.ts'
import type { AuditSettings, Configuration } from './config/options.ts'
import { DEFAULT_BACKOFF } from './downstream/pacing/backoff.ts'
import type { BackoffOptions } from './downstream/pacing/backoff.ts'
import type { Log, SoleHost } from './downstream/environment.ts'
import { CapabilityCache } from './era/host/capability-cache.ts'
import { DEFAULT_SPARE } from './downstream/spare.ts'
import type { SpareOptions } from './downstream/spare.ts'
import { Fleet } from './downstream/fleet.ts'
import { makeOpeners } from './downstream/links/openers.ts'
import { RetryBudget } from './downstream/pacing/retry-budget.ts'
import { SharedLists } from './downstream/lists/shared-lists.ts'
import { openMemory } from './downstream/lists/store.ts'
import type { PolicyOptions } from './policy/options.ts'
import { ServerLogs } from './downstream/server-logs.ts'
import { JsonPoster } from './transport/http1/client/json-poster.ts'
import { Audit } from './gateway/audit.ts'
import { Faults } from './gateway/faults.ts'
import type { FaultCount } from './gateway/faults.ts'
import { Gateway } from './gateway/gateway.ts'
import { Admission } from './host/limits/admission.ts'
import { SharedRates } from './gateway/limits/shared-rates.ts'
import { warnOfToolsets } from './gateway/lists/toolset-warnings.ts'
import { Front } from './host/http/front.ts'
import { openInner } from './host/http/inner-listener.ts'
import { connectionsWithin, openGauges } from './host/limits/gauges.ts'
import { HostSightings } from './host/host-sightings.ts'
import type { ListenerContext } from './host/listener-context.ts'
import { Identities } from './host/identities.ts'
import { Overload } from './host/limits/overload.ts'
import { TOKEN_VARIABLE } from './host/http/status-page.ts'
import { SessionIds } from './host/session/session-ids.ts'
import { StdioListener } from './host/stdio/stdio-listener.ts'
import type { StdioOptions } from './host/stdio/stdio-listener.ts'
import type { HostOptions } from './host/options.ts'
import { Observer } from './observe/observer.ts'
import { Replicas } from './replicas/replicas.ts'
import type { ReplicaTimes } from './replicas/replicas.ts'
import type { EndpointPath, Layer } from './rpc/call.ts'
import { LimitCounts } from './rpc/limit-counts.ts'
import { UnexpectedErrors } from './rpc/unexpected-errors.ts'
import { Throttle } from './time/throttle.ts'
import { Sweeper } from './rpc/sweeper.ts'
import type { HeldBytes } from './transport/held-bytes.ts'
import { HttpClients } from './transport/http1/client/http-clients.ts'
import { createLauncher } from './transport/process/launcher.ts'
import { PidJournal } from './transport/process/pid-journal.ts'
import { sweep } from './transport/process/pid-sweep.ts'
import { HostPipe } from './transport/pipe/stdio-host.ts'
import { readEnds } from './wire/message/message-ends.ts'
import { GuardedStore } from './store/guarded-store.ts'
import type { StoreState } from './store/guarded-store.ts'
import type { Store } from './store/store.ts'
import type { StoreOptions } from './store/store-options.ts'
import { makeFolder } from './make-folder.ts'
import { operatorCommand } from './operator-command.ts'
import { Redactor } from './redactor.ts'
import { sealKeys } from './seal-key.ts'
import type { Tracing } from './tracing/tracing.ts'
import type { TracingOptions } from './tracing/options.ts'
import { VERSION } from './version.ts'

/** What of the process around it a gateway uses. */
export interface RuntimeEnvironment {
  readonly log: Log
  /** Learns the secrets of every configuration that is applied; one of its own by default. */
  readonly redactor?: Redactor
  /** Where helper programs are looked for. */
  readonly path: string | undefined
  /** Serve one host on these streams instead of listening (`trunkline stdio`). */
  readonly pipe?: HostStreams & { readonly path?: EndpointPath }
  readonly backoff?: BackoffOptions
  readonly spare?: SpareOptions
  /** Policies of the embedding program: each call passes them once, after authentication and rate limits, under its exposed name. */
  readonly policies?: readonly Layer[]
  readonly replicaTimes?: ReplicaTimes
  /** In place of what `store` names, and closed by its owner: shared by several gateways of one process. */
  readonly store?: Store
  /** This process is one of several of this machine that serve one configuration (`listen.workers`). */
  readonly member?: Member
}

/** One of several processes of a machine: replicas of each other, which pass on what belongs to another one. */
export interface Member {
  /** Names it among them; the supervisor is 0. */
  readonly index: number
  /** The same for all, 32 bytes each. */
  readonly keys: readonly Buffer[]
  /** When the supervisor started, wall clock in milliseconds. Numbers of calls count from there, so that those of all members have one order. */
  readonly sinceMs: number
}

/** Numbers of calls go up by this, so that each member has its own; odd, so that tables by their last bits stay even. */
export const MEMBER_STRIDE = 61
const REFS_PER_MS = 100

/** Numbers for calls of one member: unique among all, in the order of time. */
const memberRefs = ({ index, sinceMs }: Member): (() => number) => {
  let latest = 0
  return () => {
    latest = Math.max(latest + 1, (Date.now() - sinceMs) * REFS_PER_MS)
    return latest * MEMBER_STRIDE + index
  }
}

/** The two directions of a host's pipe. */
export interface HostStreams {
  readonly input: Readable
  readonly output: Writable
}

/** A gateway that runs. */
export interface Running extends AsyncDisposable {
  readonly gateway: Gateway
  readonly fleet: Fleet
  readonly front: Front
  readonly hub: ListenerContext
  /** What was passed on to other replicas; `undefined`: there are none. */
  readonly replicas: Replicas | undefined
  /** How the store is; `undefined`: none is configured. */
  readonly store: StoreState | undefined
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** What servers wrote. */
  readonly logs: ServerLogs
  /** The one in force. */
  readonly configuration: Configuration
  /** What is injected into calls on purpose, and how often it was. */
  readonly faults: readonly FaultCount[]
  /** What was captured and counted of calls while it was switched on. */
  readonly observer: Observer
  /** Calls are captured and counted until the returned function is called; several may ask for it. */
  watchCalls(): () => void
  /** How the audit log is doing; `undefined`: none is kept. */
  readonly audit: AuditState | undefined
  /**
   * Serves one more host, on a pipe; resolves when it has left and what it asked is answered, or given up. Rejects with
   * `NoEndpoint` where the path names nothing. `isRelay`: the words of `wire/protocol/relay` are understood there.
   */
  attach(streams: HostStreams, path: EndpointPath, isRelay?: boolean): Promise<void>
  /** `stop` was called. */
  readonly isStopping: boolean
  /** Settles when the host of a stdio listener has disconnected. */
  readonly hostLeft: Promise<void>
  /** Resolves, with the reason, once the process cannot recover: its owner calls `stop` and starts it again (F-30). */
  readonly exhausted: Promise<string>
  /**
   * Makes another configuration the one in force: what it does not change goes on as it is. `restart`: keys of changed servers.
   * Rejects with the system's error, or with `ConfigError`, and changes nothing, when an address cannot be bound or a file opened.
   */
  apply(configuration: Configuration, restart: ReadonlySet<string>): Promise<void>
  /** Reopens the files this process writes, which rotation may have renamed. Rejects with `ConfigError` and keeps the old files. */
  reopen(): Promise<void>
  /** Ends within the drain time, or within `withinMs` if that is shorter: open calls first, then the servers. */
  stop(withinMs?: number): Promise<void>
}

/** The path of a pipe names no server or toolset, or a server of which toolsets leave nothing. */
export class NoEndpoint extends Error {
  constructor(path: EndpointPath) {
    super(`there is no endpoint ${JSON.stringify(path)}`)
    this.name = 'NoEndpoint'
  }
}

const IDENTITY = { name: 'trunkline', title: 'Trunkline', version: VERSION }
const USER_AGENT = `${IDENTITY.name}/${VERSION}`
/** Below this a gateway of many sessions may run out of them (F-29). */
const FEW_DESCRIPTORS = 4_096
/** The last of the drain time belongs to the servers' processes. */
const CHILDREN_STOP_MS = 6_000

const RELAY_MS = 1_000

/** Rejects with the system's error where an address cannot be bound, and with `NoEndpoint` where the pipe's path names nothing. */
export const startGateway = async (configuration: Configuration, surroundings: RuntimeEnvironment): Promise<Running> => {
  const { log, redactor = new Redactor() } = surroundings
  redactor.learn(configuration.secrets)
  redactor.retainMs = configuration.observe.capture.maxAgeMs
  const credentials = new Redactor(configuration.credentials)
  const { host: hostOptions, gateway: gatewayOptions } = configuration
  let current = configuration
  let auditFile = configuration.audit && (await AuditFile.open(configuration.audit, log))
  const sweeper = new Sweeper({
    failed: (error) => log.error({ error: error instanceof Error ? error.stack : String(error) }, 'a periodic task failed'),
  })
  const limits = new LimitCounts(log)
  const logs = new ServerLogs()
  const stateDir = makeStateDir(configuration.stateDir, log)
  const { member } = surroundings
  const seal = new Seal({ keys: member?.keys ?? sealKeys(configuration.stateKeys, stateDir, log) })
  const instance = randomBytes(12).toString('base64url')
  const startedAtMs = Date.now()
  const store = await openStore(configuration.store, surroundings.store, log)
  const clients = new HttpClients()
  const inner = member && (await openInner(hostOptions, clients.bodies))
  const url = inner?.url ?? configuration.replicaUrl
  const { replicaTimes: times } = surroundings
  const replicas =
    url === undefined
      ? undefined
      : new Replicas({
          self: { instance, url },
          seal,
          store,
          log,
          isLocal: inner !== undefined,
          facts: () => ({ version: VERSION, sessions: front.sessionCount, startedAtMs }),
          ...(times !== undefined && { times }),
        })
  const introduction = Promise.withResolvers<SoleHost>()
  // Spawning waits for the sweep of what an earlier run left behind; answering does not (DECISIONS 1).
  const swept = stateDir === undefined ? Promise.resolve(0) : sweep(stateDir)
  const journal = stateDir === undefined ? undefined : await openJournal(stateDir, log)
  const launch = createLauncher({
    ...(surroundings.path !== undefined && { path: surroundings.path }),
    ...(journal !== undefined && { journal }),
    maxInheritedFd: Math.max(2, ...hostOptions.inherited),
  })
  const safeFetch = new SafeFetch({ userAgent: USER_AGENT })
  const subjects = new SubjectTokens((principal) => fleet.subjectChanged(principal))
  const oauth: OAuthEnvironment = {
    fetch: safeFetch.through(() => current.proxies),
    store: new TokenStore(
      seal,
      stateDir,
      (error) => log.warn({ error: String(error) }, 'tokens cannot be kept (state.dir): they end with this process'),
      store,
    ),
    now: Date.now,
    subject: (principal) => subjects.of(principal),
    subjectRefused: (principal, token) => subjects.refuse(principal, token),
    secrets: redactor.hold,
  }
  const signIns = new SignIns(
    () => front.origin(),
    undefined,
    (name) => replicas?.keepHome(name, SIGN_IN_TTL_MS) ?? Promise.resolve(),
  )
  const faults = configuration.allowsFaults ? new Faults(log) : undefined
  faults?.apply(configuration.faults)
  if (faults !== undefined) sweeper.watch(faults)
  const memory = openMemory(stateDir, log, store && new SharedLists(store, seal))
  const fleet: Fleet = new Fleet({
    sweeper,
    identity: IDENTITY,
    instance,
    log,
    logs,
    openers: makeOpeners({
      launcher: async (...args) => (await swept, launch(...args)),
      clients,
      userAgent: USER_AGENT,
      log,
      logs,
      counts: limits,
    }),
    limits,
    maxStarts: () => current.gateway.maxStarts,
    hasCredential: (json) => credentials.hideJson(json) !== json,
    retries: new RetryBudget(() => current.gateway.retryPercent),
    memory,
    backoff: surroundings.backoff ?? DEFAULT_BACKOFF,
    spare: surroundings.spare ?? DEFAULT_SPARE,
    legacyTtlMs: gatewayOptions.legacyTtlMs,
    legacyPollMs: gatewayOptions.legacyPollMs,
    freshMs: () => current.gateway.freshMs,
    soleHost: surroundings.pipe === undefined ? undefined : introduction.promise,
    credential: (options, principal) =>
      credentialFor(options, principal, { ...oauth, fetch: safeFetch.through(() => options.proxies) }),
    personalListed: (key, principal, inventory) => gateway.feed.personalListed(key, principal, inventory),
    updated: (id, uri, params, audience) => gateway.updated(id, uri, params, audience),
    principalListed: (key, to, inventory) => gateway.feed.principalListed(key, to, inventory),
    sessionListed: (key, session, inventory) => gateway.feed.sessionListed(key, session, inventory),
    hasLegacyHosts: () => gateway.feed.hasLegacyWatcher,
    listAnnounced: (key, list, owner) => gateway.listAnnounced(key, list, owner),
    taskChanged: (id, task, owner) => gateway.taskChanged(id, task, owner),
    ...(faults !== undefined && { faultsOf: (server) => faults.layerOf(server) }),
    linkOpened: (link, options) => tracing?.linkOpened(link, options),
    reconnected: (downstream) => void gateway.restored(downstream),
  })
  const gateway: Gateway = new Gateway(fleet, seal, signIns, gatewayOptions, limits.hit, surroundings.policies, {
    home: replicas?.home,
    store,
  })
  const sharedRates = store && new SharedRates(store, gateway.rates)
  warnOfToolsets(gateway.feed, log, operatorCommand(configuration.named, 'tools'))
  const gauges = openGauges()
  if ((gauges.maxDescriptors ?? Infinity) < FEW_DESCRIPTORS)
    log.warn(
      { limit: gauges.maxDescriptors, connections: connectionsWithin(gauges.maxDescriptors) },
      `few file descriptors (ulimit -n): ${FEW_DESCRIPTORS} and more are of use`,
    )
  const exhaustion = Promise.withResolvers<string>()
  const overload = new Overload(() => hub.options.limits, gauges, {
    changed: (shedding, reason) => {
      const what = ['nothing is refused any more', 'new sessions are refused', 'new calls are refused'][shedding]
      if (shedding === 0) log.info({}, `no overload: ${what}`)
      else log.warn({ reason }, `overload: ${what}`)
    },
    exhausted: exhaustion.resolve,
  })
  sweeper.watch(overload)
  const sightings =
    stateDir === undefined
      ? undefined
      : new HostSightings(stateDir, (error) =>
          log.warn({ error: String(error) }, 'hosts that connect cannot be written down (state.dir): connect will not see them'),
        )
  let refs = 0
  const nextRef = member === undefined ? () => ++refs : memberRefs(member)
  const sessionIds = new SessionIds({
    seal,
    folder: stateDir,
    member: member?.index,
    maxMs: () => hub.options.limits.sessionMaxMs,
    home: replicas?.home,
    store,
    log,
  })
  const hub: { -readonly [K in keyof ListenerContext]: ListenerContext[K] } = {
    limits,
    unexpected: new UnexpectedErrors(log),
    get admission() {
      return admission
    },
    core: gateway,
    identities: new Identities(IDENTITY),
    capabilityCache: new CapabilityCache(),
    options: hostOptions,
    log,
    bodies: clients.bodies,
    sessionIds,
    store,
    replicas,
    subjects,
    signIns,
    seal,
    overload,
    maxDescriptors: gauges.maxDescriptors,
    denied: undefined,
    sessionOpened: undefined,
    sighted:
      sightings && ((host, listing) => sightings.see(host, listing && gateway.feed.viewOf(listing).list('tools').rows.length)),
    observer: undefined,
    guides: async (url, takesToken) => {
      const { connectGuides } = await import('./host-files/guides.ts')
      return connectGuides(url, takesToken ? TOKEN_VARIABLE : undefined)
    },
    hideJson: redactor.hideJson,
    command: (...words) => operatorCommand(configuration.named, ...words),
    nextRef,
  }
  const admission = new Admission(hub)
  const observer = new Observer({
    options: () => current.observe,
    // A secret can be spelled with escapes only where there are some; that takes parsing.
    hide: (text) => (/\\[u/]/.test(text) ? redactor.hideJson(text) : redactor.hide(text)),
    toolsetOf: (scope) => gateway.toolsetOf(scope),
    passed: limits.passed,
    nextRef: hub.nextRef,
  })
  let watchers = 0
  const watchCalls = (): (() => void) => {
    const observe = (count: number): void => {
      watchers += count
      hub.observer = watchers === 0 ? undefined : observer
      if (watchers < 2) gateway.observe(hub.observer)
    }
    observe(1)
    let isWatching = true
    return () => {
      if (isWatching) observe(-1)
      isWatching = false
    }
  }
  holdAtMost(clients.bodies.held, hostOptions)
  const keepRecord = (settings: AuditSettings | undefined): void => {
    const { hideJson } = redactor
    const toolsetOf = gateway.toolsetOf.bind(gateway)
    const hiddenBy = gateway.hiddenBy.bind(gateway)
    const audit = settings && auditFile && new Audit({ sink: auditFile, bodies: settings.bodies, hideJson, toolsetOf, hiddenBy })
    gateway.keepRecord(audit)
    hub.denied = audit?.denied
  }
  keepRecord(configuration.audit)
  let tracing: Tracing | undefined
  /** Traces from now on as these options say, or not any more; what is left of the ones before is sent first. */
  const keepTraces = async (options: TracingOptions | undefined): Promise<void> => {
    const before = tracing
    tracing = options && (await openTracing(options, { gateway, redactor, log, instance }))
    gateway.trace(tracing?.layer)
    hub.sessionOpened = tracing?.sessionOpened
    await before?.[Symbol.asyncDispose]()
  }
  await keepTraces(configuration.tracing)
  let poster: JsonPoster | undefined
  const serviceWarnings = new Throttle(SERVICE_WARNING_MS)
  const warnOfService = (error: string): void => {
    if (serviceWarnings.due() !== undefined) log.warn({ error }, 'the policy service does not answer (policy.service)')
  }
  /** Calls and lists from now on follow this policy. */
  const keepPolicy = async (options: PolicyOptions | undefined): Promise<void> => {
    const before = poster
    const opened = options && (await openPolicy(options))
    const service = options?.service
    poster = service && new JsonPoster(service, () => current.proxies)
    const decisions = service && poster && opened && new opened.DecisionService(service, poster, { failed: warnOfService })
    gateway.judgeBy(opened?.policy, decisions)
    await before?.[Symbol.asyncDispose]()
  }
  await keepPolicy(configuration.policy)
  await memory.learn(configuration.servers)
  const front: Front = new Front(hub, sweeper, oauth.fetch)
  inner?.serve((request) => front.receiveInner(request))
  const dispose = async (): Promise<void> => {
    await inner?.close()
    await clients.close()
    await safeFetch[Symbol.asyncDispose]()
    await poster?.[Symbol.asyncDispose]()
    journal?.[Symbol.dispose]()
    await sightings?.[Symbol.asyncDispose]()
    await auditFile?.[Symbol.asyncDispose]()
    sweeper[Symbol.dispose]()
  }
  if (surroundings.pipe === undefined)
    await front.listen().catch(async (error: unknown) => {
      await dispose()
      throw error
    })
  subjects.want(exchangesTokens(configuration))
  // Requests may come from here on: the servers are known before anything else is waited for.
  fleet.apply(configuration.servers)
  await replicas?.start(() => front.yieldTaken())
  const pipes = new Set<Piped>()
  const { pipe } = surroundings

  const answered = async (inFlight: () => number, withinMs = Infinity, spentMs = 0): Promise<void> => {
    const drainMs = Math.min(hub.options.drainMs - spentMs, withinMs)
    const deadlineMs = performance.now() + Math.max(0, drainMs - CHILDREN_STOP_MS)
    while (inFlight() > 0 && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const release = async (piped: Piped): Promise<void> => {
    piped.listener.close()
    await piped.pipe.close()
    pipes.delete(piped)
  }
  const end = async (withinMs?: number): Promise<void> => {
    const startMs = performance.now()
    // A process that ends because of its own fault (`withinMs`) does not wait until proxies notice it.
    await front.announceEnd(withinMs === undefined ? Math.max(0, hub.options.drainMs - CHILDREN_STOP_MS) : 0)
    await replicas?.handOver()
    // Nothing is parked any more: the answer could not come back.
    gateway.parking.close()
    await Promise.all([front.stopAccepting(), relaysHold([...pipes])])
    front.drain()
    gateway.stop()
    const spentMs = performance.now() - startMs
    await answered(() => [...pipes].reduce((sum, { listener }) => sum + listener.inFlight, front.inFlight), withinMs, spentMs)
    const servers = fleet.stop()
    // A host that left without a word leaves servers waiting for what it can do.
    introduction.resolve({ capabilities: {}, session: undefined, hops: 0 })
    // What is still under way ends with its link, and its host is told so before the connection goes (F-22).
    await servers
    await new Promise(setImmediate)
    await Promise.all([front.close(), ...[...pipes].map(release)])
    sessionIds.close()
    replicas?.close()
    sharedRates?.close()
    if (surroundings.store === undefined) await store?.[Symbol.asyncDispose]()
    await tracing?.[Symbol.asyncDispose]()
    observer[Symbol.dispose]()
    await dispose()
  }
  let ending: Promise<void> | undefined
  const stop = (withinMs?: number): Promise<void> => (ending ??= end(withinMs))
  const serveSole = async ({ path = {}, ...streams }: NonNullable<typeof pipe>): Promise<Piped> => {
    const scope = gateway.scopeFor(LOCAL, path)
    if (scope === undefined) {
      await stop()
      throw new NoEndpoint(path)
    }
    const sole = servePipe(streams, { scope, introduced: introduction.resolve }, hub)
    pipes.add(sole)
    return sole
  }
  const sole = pipe && (await serveSole(pipe))
  return {
    gateway,
    fleet,
    front,
    hub,
    replicas,
    get store() {
      return store?.state
    },
    limits,
    logs,
    observer,
    watchCalls,
    get configuration() {
      return current
    },
    get faults() {
      return faults?.counts ?? []
    },
    get audit() {
      return auditFile?.state
    },
    exhausted: exhaustion.promise,
    hostLeft: sole?.hostLeft ?? new Promise(() => undefined),
    get isStopping() {
      return ending !== undefined
    },
    attach: async (streams, path, isRelay = false) => {
      const scope = gateway.scopeFor(LOCAL, path)
      if (scope === undefined) throw new NoEndpoint(path)
      const piped = servePipe(streams, { scope, introduced: () => undefined, isRelay }, hub)
      pipes.add(piped)
      await piped.hostLeft
      await answered(() => piped.listener.inFlight)
      await release(piped)
    },
    apply: async (next, restart) => {
      redactor.learn(next.secrets)
      redactor.retainMs = next.observe.capture.maxAgeMs
      credentials.learn(next.credentials)
      await memory.learn(next.servers)
      const isSameFile = isDeepStrictEqual(current.audit, next.audit)
      const nextFile = isSameFile ? auditFile : next.audit && (await AuditFile.open(next.audit, log))
      if (pipe === undefined)
        await front.rebind(next.host).catch(async (error: unknown) => {
          if (!isSameFile) await nextFile?.[Symbol.asyncDispose]()
          throw error
        })
      if (!isSameFile) {
        const before = auditFile
        auditFile = nextFile
        keepRecord(next.audit)
        await before?.[Symbol.asyncDispose]()
      }
      // Before anything of the next configuration is seen: what it forbids is not open for a moment.
      if (!isDeepStrictEqual(current.policy, next.policy)) await keepPolicy(next.policy)
      if (!isDeepStrictEqual(current.tracing, next.tracing)) await keepTraces(next.tracing)
      hub.options = next.host
      subjects.want(exchangesTokens(next))
      holdAtMost(clients.bodies.held, next.host)
      if (!isDeepStrictEqual(current.faults, next.faults)) faults?.apply(next.faults)
      current = next
      fleet.apply(next.servers, restart, next.host.drainMs)
      logs.retain(new Set(next.servers.map(({ key }) => key)))
      gateway.apply(next.gateway)
    },
    reopen: async () => auditFile?.reopen(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}

/** The library of its expressions is read where there is one. */
const openPolicy = async (options: PolicyOptions) => {
  const [{ Policy }, { DecisionService }] = await Promise.all([
    import('./policy/policy.ts'),
    import('./policy/decision-service.ts'),
  ])
  return { policy: new Policy(options), DecisionService }
}

/** Minimum time between warnings that the policy service does not answer. */
const SERVICE_WARNING_MS = 60_000

/** What relays have sent by then has come, and they send no more requests; after `RELAY_MS` at the latest. */
const relaysHold = async (pipes: readonly Piped[]): Promise<void> => {
  const late = new Promise<void>((resolve) => setTimeout(resolve, RELAY_MS).unref())
  await Promise.race([Promise.all(pipes.map(({ listener }) => listener.drain())), late])
}

/** Traces are never worth the service: where they cannot be kept, that is told, and calls go on without. */
const openTracing = async (
  options: TracingOptions,
  { gateway, redactor, log, instance }: { gateway: Gateway; redactor: Redactor; log: Log; instance: string },
): Promise<Tracing | undefined> => {
  try {
    const { startTracing } = await import('./tracing/tracing.ts')
    const { hide, hideJson } = redactor
    const toolsetOf = gateway.toolsetOf.bind(gateway)
    return await startTracing(options, { log, version: VERSION, instance, toolsetOf, hide, hideJson })
  } catch (error) {
    log.error({ error: String(error) }, 'no traces are kept: OpenTelemetry cannot be loaded (telemetry.otlp)')
    return undefined
  }
}

/** How long a start waits for the store: after that it goes on without, until the store is there. */
const STORE_START_MS = 1_000

/** `undefined`: none is configured. A store that is away ends no start. */
const openStore = async (
  options: StoreOptions | undefined,
  given: Store | undefined,
  log: Log,
): Promise<GuardedStore | undefined> => {
  const guarded = (store: Store): GuardedStore =>
    new GuardedStore(store, {
      changed: (isDown, reason) => {
        if (isDown) log.warn({ reason }, 'the shared store is away: sessions stay at their replicas (store)')
        else log.info({}, 'the shared store is back')
      },
    })
  if (given !== undefined) return guarded(given)
  if (options === undefined) return undefined
  const { RedisStore } = await import('./store/redis-store.ts')
  const store = new RedisStore(options, log)
  const late = new Promise<false>((resolve) => setTimeout(resolve, STORE_START_MS, false).unref())
  if ((await Promise.race([store.connected, late])) === false)
    log.warn({}, 'the shared store does not answer: starting without (store)')
  return guarded(store)
}

/** Memory for messages stays within a quarter of the heap, whatever is configured. */
const holdAtMost = (held: HeldBytes, { limits }: HostOptions): void => {
  held.max = Math.min(limits.maxInFlightBytes, Math.floor(getHeapStatistics().heap_size_limit / 4))
}

const exchangesTokens = ({ servers }: Configuration): boolean => servers.some(({ credential }) => credential?.mode === 'exchange')

type Piped = ReturnType<typeof servePipe>

const servePipe = (streams: HostStreams, options: Omit<StdioOptions, 'principal'>, hub: ListenerContext) => {
  const pipe = new HostPipe(streams.input, streams.output, {
    maxLineBytes: hub.options.limits.maxBodyBytes,
    stallMs: hub.options.limits.writeStallMs,
    bodies: hub.bodies,
  })
  const listener = new StdioListener(pipe, { ...options, principal: LOCAL.principal }, hub)
  const hostLeft = new Promise<void>((resolve) => {
    pipe.open({
      line: (line) => listener.receive(line),
      overflow: (head, tail) => listener.overflow(readEnds(head, tail).id),
      ended: () => resolve(),
    })
  })
  return { pipe, listener, hostLeft }
}

const makeStateDir = (folder: string | undefined, log: Log): string | undefined => {
  if (folder === undefined) return undefined
  try {
    makeFolder(folder)
    chmodSync(folder, 0o700)
    return folder
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'the state folder cannot be used (state.dir); going on in memory')
    return undefined
  }
}

/** A disk that is full, or not ours to write, takes a safety net away, never the service (F-26). */
const openJournal = async (folder: string, log: Log): Promise<PidJournal | undefined> => {
  try {
    return await PidJournal.open(folder)
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'processes cannot be written down (state.dir): none is swept after a crash')
    return undefined
  }
}
