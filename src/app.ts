/**
 * The composition root: the only place where modules meet. `startGateway` builds everything from a configuration, in the order of this
 * list, and returns the running gateway; disposing it ends everything in reverse order. The parts are in `app/`:
 *
 *     foundation              used by all others: secrets, limits, keys, state
 *     membership              other processes that share sessions
 *     credentials             ours at servers
 *     servers                 every server
 *     gateway                 one call to one server
 *     hosts                   what listeners get, and the listeners
 *     audit, policy, traces   replaced by a reload
 */
import { AuditLog } from './app/audit-log.ts'
import { watchedBy } from './app/call-watchers.ts'
import type { RuntimeEnvironment } from './app/environment.ts'
import { openFoundation } from './app/foundation.ts'
import type { ServedPipe } from './app/host-pipes.ts'
import { openHosts } from './app/hosts.ts'
import { callNumbers } from './app/member.ts'
import { joinReplicas } from './app/membership.ts'
import { PolicyInForce } from './app/policy-in-force.ts'
import { applyConfiguration } from './app/reload.ts'
import type { Running } from './app/running.ts'
import { openCredentials } from './app/server-credentials.ts'
import { openServers } from './app/servers.ts'
import { shutDown } from './app/shutdown.ts'
import { TraceExport } from './app/trace-export.ts'
import type { Configuration } from './config/options.ts'
import { Gateway } from './gateway/gateway.ts'
import { SharedRates } from './gateway/limits/shared-rates.ts'
import { warnOfToolsets } from './gateway/lists/toolset-warnings.ts'
import { Observer } from './observe/observer.ts'
import { operatorCommand } from './operator-command.ts'

/** Rejects with the system's error where an address cannot be bound, and with `NoEndpoint` where the pipe's path names nothing. */
export const startGateway = async (configuration: Configuration, environment: RuntimeEnvironment): Promise<Running> => {
  const { log, member, ownInFlight, pipe } = environment
  const audit = await AuditLog.open(configuration.audit, log)
  const foundation = await openFoundation(configuration, environment)
  const { inForce, redactor, limits, seal, store } = foundation
  const membership = await joinReplicas(foundation)
  const { replicas } = membership
  const credentials = openCredentials(foundation, replicas)
  const servers = await openServers(foundation, credentials)
  const { fleet, logs, memory, faults } = servers
  const gateway = new Gateway(configuration.gateway, {
    fleet,
    seal,
    signIns: credentials.signIns,
    reached: limits.hit,
    embedded: environment.policies,
    home: replicas?.home,
    store,
  })
  const sharedRates = store && new SharedRates(store, gateway.rates)
  warnOfToolsets(gateway.feed, log, operatorCommand(configuration.named, 'tools'))

  const nextRef = callNumbers(member)
  const hosts = openHosts(foundation, gateway, credentials, replicas, nextRef)
  const { context, front, pipes } = hosts
  const observer = new Observer({
    options: () => inForce.configuration.observe,
    // Only texts with escapes need parsing to find escaped secrets.
    hide: (text) => (/\\[u/]/.test(text) ? redactor.hideJson(text) : redactor.hide(text)),
    toolsetOf: (scope) => gateway.toolsetOf(scope),
    passed: limits.passed,
    nextRef,
  })
  audit.record({ gateway, context, hideJson: redactor.hideJson })
  const traces = new TraceExport({ gateway, context, redactor, log, limits, instance: foundation.instance })
  await traces.apply(configuration.tracing)
  const policy = new PolicyInForce({ gateway, proxies: () => inForce.configuration.proxies, log })
  await policy.apply(configuration.policy)
  fleet.reportTo({ ...gateway.reports, linkOpened: (link, options) => traces.linkOpened(link, options) })
  credentials.reachedAt(() => front.addresses.origin())
  await memory.learn(configuration.servers)

  const close = async (): Promise<void> => {
    await membership.close()
    sharedRates?.close()
    await traces[Symbol.asyncDispose]()
    observer[Symbol.dispose]()
    await hosts.close()
    await credentials.close()
    await policy[Symbol.asyncDispose]()
    servers.close()
    await audit[Symbol.asyncDispose]()
    await foundation.close()
  }
  membership.serve(front)
  if (pipe === undefined)
    await front.listen().catch(async (error: unknown) => {
      await close()
      throw error
    })
  // Requests may arrive from here on, so the servers are known before anything else is awaited.
  fleet.apply(configuration.servers)
  await membership.start(front)

  const giveUpSoleHost = (): void => servers.introduce({ capabilities: {}, session: undefined, hops: 0 })
  const ending = { context, front, pipes, replicas, gateway, fleet, ownInFlight, giveUpSoleHost, close }
  let ended: Promise<void> | undefined
  const stop = (withinMs?: number): Promise<void> => (ended ??= shutDown(ending, withinMs))
  const serveSole = async ({ path = {}, ...streams }: NonNullable<typeof pipe>): Promise<ServedPipe> => {
    try {
      return pipes.serve(streams, path, { introduced: servers.introduce })
    } catch (error) {
      await stop()
      throw error
    }
  }
  const sole = pipe && (await serveSole(pipe))
  const parts = { ...foundation, ...servers, ...hosts, audit, gateway, policy, traces, subjects: credentials.subjects }
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
    exhausted: hosts.exhausted,
    hostLeft: sole?.hostLeft ?? new Promise(() => undefined),
    get isStopping() {
      return ended !== undefined
    },
    attach: (streams, path, isRelay = false) => pipes.attach(streams, path, isRelay),
    apply: (next, restart) =>
      applyConfiguration({ ...parts, isBound: pipe === undefined, isStopping: () => ended !== undefined }, next, restart),
    reopen: () => audit.reopen(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}
