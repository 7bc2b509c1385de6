/**
 * The composition root: the only place where modules meet. `startGateway` builds everything from a configuration, in the order of this
 * list, and returns the running gateway; disposing it ends everything in reverse order. The parts are in `app/`:
 *
 *     secrets, limits, keys   used by all others
 *     store, replicas         shared with other processes
 *     sign-ins, credentials   ours at servers
 *     fleet                   every server
 *     gateway                 one call to one server
 *     context                 for listeners
 *     audit, policy, traces   replaced by a reload
 *     front, pipes            connections of hosts
 */
import { randomBytes } from 'node:crypto'
import { AuditLog } from './app/audit-log.ts'
import { watchedBy } from './app/call-watchers.ts'
import type { RuntimeEnvironment } from './app/environment.ts'
import { HostPipes } from './app/host-pipes.ts'
import type { ServedPipe } from './app/host-pipes.ts'
import { callNumbers } from './app/member.ts'
import { openStore } from './app/open-store.ts'
import { PolicyInForce } from './app/policy-in-force.ts'
import { applyConfiguration, exchangesTokens, holdAtMost, learnSecrets } from './app/reload.ts'
import type { Running } from './app/running.ts'
import { shutDown } from './app/shutdown.ts'
import { makeStateDir, openJournal, openSightings } from './app/state-folder.ts'
import { TraceExport } from './app/trace-export.ts'
import { watchOverload } from './app/watched-overload.ts'
import { credentialFor } from './auth/oauth/credential-for.ts'
import type { OAuthEnvironment } from './auth/oauth/environment.ts'
import { SafeFetch } from './auth/oauth/safe-fetch.ts'
import { SIGN_IN_TTL_MS, SignIns } from './auth/oauth/sign-ins.ts'
import { TokenStore } from './auth/oauth/token-store.ts'
import { Seal } from './auth/seal.ts'
import { SubjectTokens } from './auth/subject-tokens.ts'
import type { Configuration } from './config/options.ts'
import type { SoleHost } from './downstream/environment.ts'
import { Fleet } from './downstream/fleet.ts'
import { makeOpeners } from './downstream/links/openers.ts'
import { SharedLists } from './downstream/lists/shared-lists.ts'
import { openMemory } from './downstream/lists/store.ts'
import { DEFAULT_BACKOFF } from './downstream/pacing/backoff.ts'
import { RetryBudget } from './downstream/pacing/retry-budget.ts'
import { ServerLogs } from './downstream/server-logs.ts'
import { DEFAULT_SPARE } from './downstream/spare.ts'
import { CapabilityCache } from './era/host/capability-cache.ts'
import { Faults } from './gateway/faults.ts'
import { Gateway } from './gateway/gateway.ts'
import { SharedRates } from './gateway/limits/shared-rates.ts'
import { warnOfToolsets } from './gateway/lists/toolset-warnings.ts'
import { Front } from './host/http/front.ts'
import { openInner } from './host/http/inner-listener.ts'
import { TOKEN_VARIABLE } from './host/http/pages/status-page.ts'
import { EndpointInfos } from './host/endpoint-info.ts'
import { Admission } from './host/limits/admission.ts'
import type { ListenerContext } from './host/listener-context.ts'
import { SessionIds } from './host/session/session-ids.ts'
import { Observer } from './observe/observer.ts'
import { operatorCommand } from './operator-command.ts'
import { Redactor } from './redactor.ts'
import { Replicas } from './replicas/replicas.ts'
import { LimitCounts } from './rpc/limit-counts.ts'
import { Sweeper } from './rpc/sweeper.ts'
import { UnexpectedErrors } from './rpc/unexpected-errors.ts'
import { sealKeys } from './seal-key.ts'
import { HttpClients } from './transport/http1/client/http-clients.ts'
import { createLauncher } from './transport/process/launcher.ts'
import { sweep } from './transport/process/pid-sweep.ts'
import { USER_AGENT } from './user-agent.ts'
import { VERSION } from './version.ts'

const IDENTITY = { name: 'trunkline', title: 'Trunkline', version: VERSION }

/** Rejects with the system's error where an address cannot be bound, and with `NoEndpoint` where the pipe's path names nothing. */
export const startGateway = async (configuration: Configuration, environment: RuntimeEnvironment): Promise<Running> => {
  const { log, redactor = new Redactor(), member, pipe } = environment
  const { host: hostOptions, gateway: gatewayOptions } = configuration
  const inForce = { configuration }
  const credentials = new Redactor()
  learnSecrets({ redactor, credentials }, configuration)
  const audit = await AuditLog.open(configuration.audit, log)
  const sweeper = new Sweeper({
    failed: (error) => log.error({ error: error instanceof Error ? error.stack : String(error) }, 'a periodic task failed'),
  })
  const limits = new LimitCounts(log)
  const logs = new ServerLogs()
  const stateDir = makeStateDir(configuration.stateDir, log)
  const seal = new Seal({ keys: member?.keys ?? sealKeys(configuration.stateKeys, stateDir, log) })
  const nextRef = callNumbers(member)

  const instance = randomBytes(12).toString('base64url')
  const startedAtMs = Date.now()
  const store = await openStore(configuration.store, environment.store, log)
  const clients = new HttpClients()
  const inner = member && (await openInner(hostOptions, clients.bodies))
  const url = inner?.url ?? configuration.replicaUrl
  const { replicaTimes: times } = environment
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

  const safeFetch = new SafeFetch({ userAgent: USER_AGENT })
  const subjects = new SubjectTokens((principal) => fleet.subjectChanged(principal))
  const oauth: OAuthEnvironment = {
    fetch: safeFetch.through(() => inForce.configuration.proxies),
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
    () => front.addresses.origin(),
    undefined,
    (name) => replicas?.keepHome(name, SIGN_IN_TTL_MS) ?? Promise.resolve(),
  )

  // Processes start after the sweep of those that an earlier run left behind; listeners do not wait for it (DECISIONS 1).
  const swept = stateDir === undefined ? Promise.resolve(0) : sweep(stateDir)
  const journal = await openJournal(stateDir, log)
  const launch = createLauncher({
    ...(environment.path !== undefined && { path: environment.path }),
    ...(journal !== undefined && { journal }),
    maxInheritedFd: Math.max(2, ...hostOptions.inherited),
  })
  const faults = configuration.allowsFaults ? new Faults(log) : undefined
  faults?.apply(configuration.faults)
  if (faults !== undefined) sweeper.watch(faults)
  const memory = openMemory(stateDir, log, store && new SharedLists(store, seal))
  const soleHost = Promise.withResolvers<SoleHost>()
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
    maxStarts: () => inForce.configuration.gateway.maxStarts,
    hasCredential: (json) => credentials.hideJson(json) !== json,
    retries: new RetryBudget(() => inForce.configuration.gateway.retryPercent),
    memory,
    backoff: environment.backoff ?? DEFAULT_BACKOFF,
    spare: environment.spare ?? DEFAULT_SPARE,
    legacyTtlMs: gatewayOptions.legacyTtlMs,
    legacyPollMs: gatewayOptions.legacyPollMs,
    freshMs: () => inForce.configuration.gateway.freshMs,
    soleHost: pipe === undefined ? undefined : soleHost.promise,
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
    linkOpened: (link, options) => traces.linkOpened(link, options),
    reconnected: (downstream) => void gateway.restored(downstream),
  })
  const gateway: Gateway = new Gateway(fleet, seal, signIns, gatewayOptions, limits.hit, environment.policies, {
    home: replicas?.home,
    store,
  })
  const sharedRates = store && new SharedRates(store, gateway.rates)
  warnOfToolsets(gateway.feed, log, operatorCommand(configuration.named, 'tools'))

  const { overload, maxDescriptors, exhausted } = watchOverload(() => context.options.limits, log)
  sweeper.watch(overload)
  const sightings = openSightings(stateDir, log)
  const sessionIds = new SessionIds({
    seal,
    folder: stateDir,
    member: member?.index,
    maxMs: () => context.options.limits.sessionMaxMs,
    home: replicas?.home,
    store,
    log,
  })
  const context: { -readonly [K in keyof ListenerContext]: ListenerContext[K] } = {
    limits,
    unexpected: new UnexpectedErrors(log),
    get admission() {
      return admission
    },
    core: gateway,
    endpointInfos: new EndpointInfos(IDENTITY),
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
    maxDescriptors,
    denied: undefined,
    sessionOpened: undefined,
    sighted:
      sightings && ((host, listing) => sightings.record(host, listing && gateway.feed.viewOf(listing).list('tools').rows.length)),
    observer: undefined,
    guides: async (address, takesToken) => {
      const { connectGuides } = await import('./host-files/guides.ts')
      return connectGuides(address, takesToken ? TOKEN_VARIABLE : undefined)
    },
    hideJson: redactor.hideJson,
    command: (...words) => operatorCommand(configuration.named, ...words),
    nextRef,
  }
  const admission = new Admission(context)
  const observer = new Observer({
    options: () => inForce.configuration.observe,
    // Only texts with escapes need parsing to find escaped secrets.
    hide: (text) => (/\\[u/]/.test(text) ? redactor.hideJson(text) : redactor.hide(text)),
    toolsetOf: (scope) => gateway.toolsetOf(scope),
    passed: limits.passed,
    nextRef,
  })

  holdAtMost(clients.bodies.held, hostOptions)
  audit.record({ gateway, context, hideJson: redactor.hideJson })
  const traces = new TraceExport({ gateway, context, redactor, log, instance })
  await traces.apply(configuration.tracing)
  const policy = new PolicyInForce({ gateway, proxies: () => inForce.configuration.proxies, log })
  await policy.apply(configuration.policy)

  await memory.learn(configuration.servers)
  const front: Front = new Front(context, sweeper, oauth.fetch)
  inner?.serve((request) => front.receiveInner(request))
  const pipes = new HostPipes(context)
  const closeShared = async (): Promise<void> => {
    await inner?.close()
    await clients.close()
    await safeFetch[Symbol.asyncDispose]()
    await policy[Symbol.asyncDispose]()
    journal?.[Symbol.dispose]()
    await sightings?.[Symbol.asyncDispose]()
    await audit[Symbol.asyncDispose]()
    sweeper[Symbol.dispose]()
  }
  if (pipe === undefined)
    await front.listen().catch(async (error: unknown) => {
      await closeShared()
      throw error
    })
  subjects.want(exchangesTokens(configuration))
  // Requests may arrive from here on, so the servers are known before anything else is awaited.
  fleet.apply(configuration.servers)
  await replicas?.start(() => front.releaseTakenOver())

  const close = async (): Promise<void> => {
    sessionIds.close()
    replicas?.close()
    sharedRates?.close()
    if (environment.store === undefined) await store?.[Symbol.asyncDispose]()
    await traces[Symbol.asyncDispose]()
    observer[Symbol.dispose]()
    await closeShared()
  }
  const ending = {
    context,
    front,
    pipes,
    replicas,
    gateway,
    fleet,
    giveUpSoleHost: () => soleHost.resolve({ capabilities: {}, session: undefined, hops: 0 }),
    close,
  }
  let ended: Promise<void> | undefined
  const stop = (withinMs?: number): Promise<void> => (ended ??= shutDown(ending, withinMs))
  const serveSole = async ({ path = {}, ...streams }: NonNullable<typeof pipe>): Promise<ServedPipe> => {
    try {
      return pipes.serve(streams, path, { introduced: soleHost.resolve })
    } catch (error) {
      await stop()
      throw error
    }
  }
  const sole = pipe && (await serveSole(pipe))
  const parts = {
    audit,
    credentials,
    faults,
    fleet,
    front,
    gateway,
    context,
    inForce,
    logs,
    memory,
    policy,
    redactor,
    subjects,
    traces,
  }
  return {
    gateway,
    fleet,
    front,
    context,
    replicas,
    get store() {
      return store?.state
    },
    limits,
    logs,
    observer,
    watchCalls: watchedBy(observer, context, gateway),
    get configuration() {
      return inForce.configuration
    },
    get faults() {
      return faults?.counts ?? []
    },
    get audit() {
      return audit.state
    },
    exhausted,
    hostLeft: sole?.hostLeft ?? new Promise(() => undefined),
    get isStopping() {
      return ended !== undefined
    },
    attach: (streams, path, isRelay = false) => pipes.attach(streams, path, isRelay),
    apply: (next, restart) => applyConfiguration({ ...parts, isBound: pipe === undefined }, next, restart),
    reopen: () => audit.reopen(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}
