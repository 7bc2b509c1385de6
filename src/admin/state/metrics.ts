/**
 * All metrics as families: counted calls, and the state of the process and its servers at the time of the request. No label contains a text
 * of a host: servers are keys of the configuration, the number of tools is limited (`call-metrics`).
 */
import type { Running } from '../../app/running.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { HealthState } from '../../downstream/health/health.ts'
import { LIMIT_OPTIONS, SERVER_LIMIT_OPTIONS } from '../../observe/metrics/limit-options.ts'
import { formatMetrics } from '../../observe/metrics/exposition.ts'
import type { Family, Labels, Sample } from '../../observe/metrics/exposition.ts'
import { serverMemory } from '../server-memory.ts'
import { shownServer } from '../shown-server.ts'
import type { DeviationCount } from '../../rpc/fidelity.ts'
import { VERSION } from '../../version.ts'

type Measured = Pick<
  Running,
  'configuration' | 'observer' | 'fleet' | 'front' | 'gateway' | 'limits' | 'audit' | 'context' | 'replicas' | 'store'
>

const STATES: readonly HealthState[] = ['starting', 'healthy', 'degraded', 'down', 'failed', 'draining']

export const metricsText = (running: Measured, isOpenMetrics: boolean): string =>
  formatMetrics(metricFamilies(running), isOpenMetrics)

/** The metrics as plain data. */
export const metricFamilies = (running: Measured): readonly Family[] => [
  ...running.observer.metrics.families,
  gauge('trunkline_build_info', 'The running version.', one(1, { version: VERSION, node: process.versions.node })),
  ...serverFamilies(running),
  ...loadFamilies(running),
  ...limitFamilies(running),
  ...auditFamilies(running),
  ...storeFamilies(running),
  ...captureFamilies(running),
  ...processFamilies(),
]

const gauge = (name: string, help: string, samples: readonly Sample[]): Family => ({ type: 'gauge', name, help, samples })
const counter = (name: string, help: string, samples: readonly Sample[]): Family => ({ type: 'counter', name, help, samples })
const one = (value: number, labels: Labels = {}): readonly Sample[] => [{ labels, value }]
/** No sample where the measured part does not exist. */
const ifAny = <T>(part: T | undefined, value: (part: T) => number): readonly Sample[] =>
  part === undefined ? [] : one(value(part))

const serverFamilies = ({ fleet, configuration }: Measured): readonly Family[] => {
  const servers = fleet.downstreams$.value
  const each = (of: (server: Downstream) => number): readonly Sample[] =>
    servers.map((server) => ({ labels: { server: server.options.key }, value: of(server) }))
  const sum = (of: (server: Downstream) => number): readonly Sample[] =>
    each(({ all }) => all.reduce((total, one) => total + of(one), 0))
  const memory = serverMemory(fleet)
  return [
    gauge(
      'trunkline_server_state',
      '1 for the state a server is in, 0 for all others.',
      servers.flatMap((server) => {
        const { health } = shownServer(server, configuration)
        return STATES.map((state) => ({ labels: { server: server.options.key, state }, value: health.state === state ? 1 : 0 }))
      }),
    ),
    gauge(
      'trunkline_server_calls_in_flight',
      'Calls in flight at a server.',
      sum(({ inFlight }) => inFlight),
    ),
    gauge(
      'trunkline_server_links',
      'Open connections to a server.',
      sum(({ linkCount }) => linkCount),
    ),
    gauge(
      'trunkline_server_processes',
      'Running processes of a server.',
      sum(({ dialer }) => dialer.processes.length),
    ),
    gauge(
      'trunkline_server_memory_bytes',
      'Resident memory of the processes of a server.',
      sum(({ dialer }) => dialer.processes.reduce((total, { pid }) => total + (memory.get(pid) ?? 0), 0)),
    ),
    counter(
      'trunkline_server_outages',
      'Outages of a server.',
      each(({ outages }) => outages),
    ),
    counter(
      'trunkline_server_crashes',
      'Processes of a server that ended by themselves, those of its callers included.',
      each(({ crashes }) => crashes),
    ),
  ]
}

const loadFamilies = ({ front, context }: Measured): readonly Family[] => [
  gauge('trunkline_sessions', 'Sessions of legacy hosts.', one(front.sessionCount)),
  gauge('trunkline_calls_in_flight', 'Requests of hosts in flight.', one(front.inFlight)),
  gauge(
    'trunkline_held_bytes',
    'Bytes of messages in memory, of hosts and servers together (limits.in_flight_bytes).',
    one(context.bodies.held.bytes),
  ),
  gauge(
    'trunkline_shedding',
    '0: nothing is refused for overload, 1: new sessions, 2: new calls as well.',
    one(context.overload.shedding),
  ),
]

const limitFamilies = ({ fleet, limits, gateway }: Measured): readonly Family[] => {
  const servers = fleet.downstreams$.value
  return [
    counter(
      'trunkline_limit_reached',
      'How often a limit was reached, by its option; `server` for a limit of a server.',
      limitSamples(
        limits.all,
        servers.map(({ options }) => options.key),
      ),
    ),
    counter(
      'trunkline_rate_limited',
      'Calls refused by a configured rate, by its option.',
      gateway.rates.counts.map(({ option, refused }) => ({ labels: { option }, value: refused })),
    ),
    counter(
      'trunkline_deviations',
      'Changes and losses of messages in translation, by rule.',
      servers.flatMap(({ options, fidelity }) => deviationSamples(options.key, fidelity.counts)),
    ),
  ]
}

const auditFamilies = ({ audit }: Measured): readonly Family[] => [
  gauge(
    'trunkline_audit_waiting_lines',
    'Lines of the audit log that are not in the file yet.',
    ifAny(audit, ({ waiting }) => waiting),
  ),
  counter(
    'trunkline_audit_dropped_lines',
    'Lines of the audit log that were lost.',
    ifAny(audit, ({ dropped }) => dropped),
  ),
]

const storeFamilies = ({ store, replicas }: Measured): readonly Family[] => [
  gauge(
    'trunkline_store_up',
    '1: the shared store is reachable, 0: it is not (store).',
    ifAny(store, ({ isDown }) => (isDown ? 0 : 1)),
  ),
  counter(
    'trunkline_store_operations',
    'Operations of the shared store.',
    ifAny(store, ({ operations }) => operations),
  ),
  counter(
    'trunkline_store_failures',
    'Failed operations of the shared store.',
    ifAny(store, ({ failures }) => failures),
  ),
  counter(
    'trunkline_replica_passed_on',
    'Requests passed on to the replica that has their session or call.',
    ifAny(replicas, ({ counts }) => counts.forwarded),
  ),
  counter(
    'trunkline_replica_takeovers',
    'Sessions taken over from a replica that was lost.',
    ifAny(replicas, ({ counts }) => counts.takenOver),
  ),
]

const captureFamilies = ({ observer }: Measured): readonly Family[] => [
  gauge('trunkline_captured_calls', 'Calls kept for the dashboard.', one(observer.keptCalls)),
  gauge('trunkline_captured_bytes', 'Memory of captured calls (ui.capture.ring).', one(observer.keptBytes)),
  gauge('trunkline_feed_readers', 'Readers of the live feed (ui.capture.readers).', one(observer.feed.readers)),
]

const processFamilies = (): readonly Family[] => {
  const { rss, heapUsed, heapTotal } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return [
    gauge('process_resident_memory_bytes', 'Resident memory of the gateway.', one(rss)),
    gauge('nodejs_heap_used_bytes', 'Heap in use.', one(heapUsed)),
    gauge('nodejs_heap_total_bytes', 'Heap reserved.', one(heapTotal)),
    counter('process_cpu_seconds', 'CPU time of the gateway.', one((user + system) / 1e6)),
    gauge('process_start_time_seconds', 'When the process started.', one(performance.timeOrigin / 1_000)),
  ]
}

/** One series for all deviations with the same labels. */
const deviationSamples = (server: string, counts: readonly DeviationCount[]): readonly Sample[] =>
  [...Map.groupBy(counts, ({ rule, feature, verdict }) => `${rule}\n${feature}\n${verdict}`).values()].flatMap((alike) =>
    alike.slice(0, 1).map(({ rule, feature, verdict }) => ({
      labels: { server, rule, feature, verdict },
      value: alike.reduce((sum, { count }) => sum + count, 0),
    })),
  )

/** Every limit has a series from the start, one for each server too, so that an alert on its increase notices the first time. */
const limitSamples = (all: Running['limits']['all'], servers: readonly string[]): readonly Sample[] => {
  const samples = new Map<string, Sample>()
  const add = (option: string, server: string, value: number): void =>
    void samples.set(`${option}\n${server}`, { labels: { option, server }, value })
  for (const option of LIMIT_OPTIONS) add(option, '', 0)
  for (const server of servers) for (const option of SERVER_LIMIT_OPTIONS) add(option, server, 0)
  for (const { option, server = '', count } of all) add(option, server, count)
  return [...samples.values()]
}
