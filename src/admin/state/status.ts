/** What `ps` tells of a process and its servers: plain data, the same over the admin socket and in `--json`. */
import type { Running } from '../../app/running.ts'
import type { HostClientId } from '../../auth/inbound/inbound-options.ts'
import type { Finding } from '../../catalog/inventory.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { joinArray } from '../../catalog/view/view.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import type { AuditState } from '../../audit-file.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { eraDifference } from '../../downstream/lists/era-difference.ts'
import { STARTING } from '../../downstream/health/health.ts'
import type { HealthState } from '../../downstream/health/health.ts'
import type { FaultCount } from '../../gateway/faults.ts'
import type { RateCount } from '../../gateway/limits/rates.ts'
import type { ReplicaStatus } from '../../replicas/replicas.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { DeviationCount } from '../../rpc/fidelity.ts'
import type { LimitCount } from '../../rpc/limit-counts.ts'
import { groupMemory } from '../../transport/process/group-memory.ts'
import { LATEST_LEGACY } from '../../wire/protocol/revisions.ts'
import { startupOf } from './startup.ts'
import type { Startup } from './startup.ts'

/** Lines of a server's stderr that are shown (F-08). */
const STDERR_LINES = 20

/** One server as `ps --json` prints it. Times in milliseconds. */
export interface ServerStatus {
  readonly key: string
  readonly state: string
  /** Why it is not healthy. */
  readonly reason: string | undefined
  /** The operator must sign in there: `trunkline login`. */
  readonly needsSignIn: boolean
  /** Where hosts are authenticated, of a server at which each caller signs in for itself: those there are now. The state is of the best off. */
  readonly callers: CallerCount | undefined
  readonly transport: string
  readonly revision: string | undefined
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  /** Estimate of what its tools cost a model, as they are listed. */
  readonly tokens: number
  readonly links: number
  /** The processes that run for it, with what their process groups hold in memory. */
  readonly processes: readonly ProcessStatus[]
  readonly inFlight: number
  /** Calls that wait for a free slot (`limits.concurrency`). */
  readonly queued: number
  /** Outages since it was configured: failures without health in between are one. */
  readonly failures: number
  /** Until the next attempt to reach it; `undefined`: it is there, an attempt is under way, or none is planned. */
  readonly nextTryMs: number | undefined
  /** While its process starts: how long already, and what it does as far as is known. */
  readonly startup: Startup | undefined
  readonly leftOut: readonly { readonly kind: string; readonly name: string; readonly reason: string }[]
  /** What is served all the same but should be known: hidden characters, changed definitions. */
  readonly findings: readonly Finding[]
  readonly warnings: readonly string[]
  /** What of its calls was translated or impossible since the start, and how often. */
  readonly fidelity: readonly DeviationCount[]
  /** The last lines its process printed on stderr, oldest first, while it is not healthy. */
  readonly stderr: readonly string[]
}

/** `memoryBytes`: resident, of all in its process group; `undefined` where the system does not say (only Linux does). */
export interface ProcessStatus {
  readonly pid: number
  readonly memoryBytes: number | undefined
  readonly uptimeMs: number
}

/** How many a server serves, and how many of them must sign in there first, which their hosts ask them to. */
export interface CallerCount {
  readonly all: number
  readonly unsigned: number
}

/** One of several processes that serve hosts. */
export interface WorkerStatus {
  /** From 1. */
  readonly worker: number
  /** `undefined`: it has ended, and is started again soon. */
  readonly pid: number | undefined
  readonly uptimeMs: number
  /** How often it was started again. */
  readonly restarts: number
  readonly sessions: number
  readonly inFlight: number
  /** Resident. */
  readonly memoryBytes: number
}

/** One process as `ps --json` prints it. */
export interface Status {
  readonly pid: number
  readonly version: string
  readonly uptimeMs: number
  /** Absolute paths; the main one first. */
  readonly files: readonly string[]
  /** The MCP endpoints; empty where one host is served on a pipe. */
  readonly urls: readonly string[]
  /** What lets a host in over HTTP: `none`, `tokens`, `oauth`, `any`. */
  readonly auth: string
  /**
   * Absent: hosts sign in nowhere. `endpoint`: the MCP endpoint as tokens and metadata name it, which hosts must use as it stands;
   * `clients`: client ids that they may be configured with (`auth.oauth.clients`).
   */
  readonly oauth: { readonly endpoint: string; readonly clients: readonly HostClientId[] } | undefined
  readonly servers: readonly ServerStatus[]
  /** Limits that were reached since the start, and how often. */
  readonly limits: readonly LimitCount[]
  /** The rate limits, and how many calls each has refused. */
  readonly rates: readonly RateCount[]
  /** The audit log; absent: none is kept. */
  readonly audit: AuditState | undefined
  /** What is injected into calls on purpose (`--allow-faults`). */
  readonly faults: readonly FaultCount[]
  readonly toolsets: readonly ToolsetSummary[]
  /** Names that two servers wanted. */
  readonly collisions: readonly string[]
  readonly warnings: readonly string[]
  /** The replicas that share a store, this one among them; absent: they share none, or it is away. */
  readonly replicas?: readonly ReplicaStatus[] | undefined
  /** The processes that serve hosts (`listen.workers`); absent: this one serves them itself. */
  readonly workers?: readonly WorkerStatus[] | undefined
  /** Why the files as they are now are not in force; empty if they are. */
  readonly problems: readonly Problem[]
}

/** Where hosts reach the MCP endpoint: TCP addresses first, then unix sockets as VS Code writes them (`unix:///run/x.sock#/mcp`). */
export const urlsOf = ({ front, context }: Pick<Running, 'front' | 'context'>): readonly string[] =>
  front.addresses.urls(context.options.path)

export const serverStatuses = ({
  fleet,
  gateway,
  configuration,
}: Pick<Running, 'fleet' | 'gateway' | 'configuration'>): ServerStatus[] => {
  const isAuthenticated = configuration.host.auth !== undefined
  const view = gateway.feed.whole(LATEST_LEGACY, SHARED_PRINCIPAL)
  const { catalog } = view
  const { rows, entries } = view.list('tools')
  const memory = groupMemory()
  return fleet.downstreams$.value.map((common) => {
    const { personal } = common
    const callers = personal !== undefined && isAuthenticated ? personal.all : undefined
    const downstream = (callers === undefined ? personal?.find(SHARED_PRINCIPAL) : bestOff(callers)) ?? common
    const { options, health$, inventory$, link } = downstream
    const needsSignIn = isUnsigned(downstream)
    const { state, reason, failures, nextTryAtMs } = needsSignIn && callers !== undefined ? STARTING : health$.value
    const inventory = inventory$.value
    const shown = catalog.sources.find(({ server }) => server.key === options.key)?.inventory
    const own = entries.filter((_, at) => rows[at]?.server.key === options.key)
    const all = [common, ...(personal?.all ?? [])]
    return {
      key: options.key,
      state,
      reason,
      needsSignIn: needsSignIn && callers === undefined,
      callers: callers && { all: callers.length, unsigned: callers.filter(isUnsigned).length },
      transport: transportName(link?.transport, options.url === undefined),
      revision: link?.revision ?? inventory?.revision,
      tools: own.length,
      resources: (shown?.lists.resources.length ?? 0) + (shown?.lists.templates.length ?? 0),
      prompts: shown?.lists.prompts.length ?? 0,
      tokens: own.length === 0 ? 0 : estimateTokens(joinArray(own)),
      links: all.reduce((sum, { linkCount }) => sum + linkCount, 0),
      processes: all.flatMap(({ dialer }) =>
        dialer.processes.map(({ pid, startedAt }) => ({
          pid,
          memoryBytes: memory.get(pid),
          uptimeMs: Math.max(0, Date.now() - startedAt),
        })),
      ),
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      queued: all.reduce((sum, { queued }) => sum + queued, 0),
      failures,
      nextTryMs: nextTryAtMs === undefined ? undefined : Math.max(0, Math.round(nextTryAtMs - performance.now())),
      startup: startupOf(downstream, Date.now()),
      leftOut: catalog.leftOut.filter(({ server }) => server === options.key),
      findings: shown?.findings ?? [],
      warnings: [...(inventory?.warnings ?? []), ...eraDifference(inventory, downstream.offers.legacy.inventory$.value)],
      fidelity: downstream.fidelity.counts,
      stderr: state === 'healthy' ? [] : downstream.dialer.stderrTail(STDERR_LINES),
    }
  })
}

const isUnsigned = ({ health$ }: Downstream): boolean => health$.value.failure?.facts.signIn === true

/** From the best on. */
const RANKS: readonly HealthState[] = ['healthy', 'degraded', 'starting', 'down', 'failed', 'draining']

const bestOff = (all: readonly Downstream[]): Downstream | undefined =>
  all.toSorted((a, b) => RANKS.indexOf(a.health$.value.state) - RANKS.indexOf(b.health$.value.state))[0]

const transportName = (transport: 'pipe' | 'http' | 'sse' | undefined, isPipe: boolean): string =>
  transport === 'pipe' || (transport === undefined && isPipe) ? 'stdio' : (transport ?? 'http')
