/** The status of a process and its servers for `ps`: plain data, the same over the admin socket and in `--json`. */
import type { Running } from '../../app/running.ts'
import type { HostClientId } from '../../auth/inbound/verify/inbound-options.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import { estimateAll } from '../../catalog/tokens.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import type { AuditState } from '../../audit-file.ts'
import { eraDifference } from '../../downstream/lists/era-difference.ts'
import type { FaultCount } from '../../gateway/faults.ts'
import type { RateCount } from '../../gateway/limits/rates.ts'
import type { ReplicaStatus } from '../../replicas/replicas.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { LimitCount } from '../../rpc/limit-counts.ts'
import { serverMemory } from '../server-memory.ts'
import { isUnsigned, shownServer } from '../shown-server.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import type { ServerStatus } from './server-status.ts'
import { startupOf } from './startup.ts'

/** Lines of a server's stderr that are shown (F-08). */
const STDERR_LINES = 20

/** One of several processes that serve hosts. */
export interface WorkerStatus {
  /** From 1. */
  readonly worker: number
  /** `undefined`: it has ended, and is restarted soon. */
  readonly pid: number | undefined
  readonly uptimeMs: number
  /** Number of restarts. */
  readonly restarts: number
  readonly sessions: number
  readonly inFlight: number
  /** Resident memory. */
  readonly memoryBytes: number
}

/** One process as `ps --json` prints it. */
export interface Status {
  readonly pid: number
  readonly version: string
  readonly uptimeMs: number
  /** Absolute paths; the main one first. */
  readonly files: readonly string[]
  /** The MCP endpoints; empty for a process that serves one host on a pipe. */
  readonly urls: readonly string[]
  /** The credential that hosts need over HTTP: `none`, `tokens`, `oauth`, `any`. */
  readonly auth: string
  /**
   * Absent: no OAuth. `endpoint`: the MCP endpoint as tokens and metadata name it, which hosts must use unchanged; `clients`: client ids
   * with which they can be configured (`auth.oauth.clients`).
   */
  readonly oauth: { readonly endpoint: string; readonly clients: readonly HostClientId[] } | undefined
  readonly servers: readonly ServerStatus[]
  /** How often each limit was reached since the start; others are absent. */
  readonly limits: readonly LimitCount[]
  /** The rate limits, and how many calls each refused. */
  readonly rates: readonly RateCount[]
  /** The audit log; absent: there is none. */
  readonly audit: AuditState | undefined
  /** Injected faults (`--allow-faults`). */
  readonly faults: readonly FaultCount[]
  readonly toolsets: readonly ToolsetSummary[]
  /** Changes with the list of all tools that hosts get. */
  readonly toolsDigest: string
  /** Messages about equal exposed names. */
  readonly collisions: readonly string[]
  readonly warnings: readonly string[]
  /** The replicas that share a store, including this one; absent: there is no store, or it is not reachable. */
  readonly replicas?: readonly ReplicaStatus[] | undefined
  /** The processes that serve hosts (`listen.workers`); absent: this process serves them itself. */
  readonly workers?: readonly WorkerStatus[] | undefined
  /** Why the current files are not applied; empty if they are. */
  readonly problems: readonly Problem[]
}

/** URLs of the MCP endpoint: TCP addresses first, then unix sockets as VS Code writes them (`unix:///run/x.sock#/mcp`). */
export const urlsOf = ({ front, context }: Pick<Running, 'front' | 'context'>): readonly string[] =>
  front.addresses.urls(context.options.path)

export const serverStatuses = ({
  fleet,
  gateway,
  configuration,
}: Pick<Running, 'fleet' | 'gateway' | 'configuration'>): ServerStatus[] => {
  const view = gateway.feed.whole(MODERN, SHARED_PRINCIPAL)
  const { catalog } = view
  const { rows, entries } = view.list('tools')
  const memory = serverMemory(fleet)
  return fleet.downstreams$.value.map((common) => {
    const { callers, downstream, needsSignIn, health } = shownServer(common, configuration)
    const { options, inventory$, link, isResting } = downstream
    const { state, reason, failures, nextTryAtMs } = health
    const inventory = inventory$.value
    const shown = catalog.sources.find(({ server }) => server.key === options.key)?.inventory
    const own = entries.filter((_, at) => rows[at]?.server.key === options.key)
    const { all } = common
    return {
      key: options.key,
      state,
      reason: isResting ? RESTING : reason,
      isResting,
      needsSignIn,
      callers: callers && { all: callers.length, unsigned: callers.filter(isUnsigned).length },
      transport: transportName(link?.transport, options.url === undefined),
      revision: link?.revision ?? inventory?.revision,
      tools: own.length,
      resources: (shown?.lists.resources.length ?? 0) + (shown?.lists.templates.length ?? 0),
      prompts: shown?.lists.prompts.length ?? 0,
      tokens: estimateAll(own),
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
      stderr: state === 'healthy' || isResting ? [] : downstream.dialer.stderrTail(STDERR_LINES),
    }
  })
}

const RESTING = 'its next use starts it (lifecycle.start: lazy)'

const transportName = (transport: 'pipe' | 'http' | 'sse' | undefined, isPipe: boolean): string =>
  transport === 'pipe' || (transport === undefined && isPipe) ? 'stdio' : (transport ?? 'http')
