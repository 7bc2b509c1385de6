/** All servers: how they are started and reached, what is remembered of them, and the faults that are injected into calls to them. */
import { DEFAULT_BACKOFF } from '../downstream/pacing/backoff.ts'
import { RetryBudget } from '../downstream/pacing/retry-budget.ts'
import type { Memory, SoleHost } from '../downstream/environment.ts'
import { Fleet } from '../downstream/fleet.ts'
import { makeOpeners } from '../downstream/links/openers.ts'
import { SharedLists } from '../downstream/lists/shared-lists.ts'
import { openMemory } from '../downstream/lists/store.ts'
import { ServerLogs } from '../downstream/server-logs.ts'
import { DEFAULT_SPARE } from '../downstream/spare.ts'
import { Faults } from '../gateway/faults.ts'
import { createLauncher } from '../transport/process/launcher.ts'
import { sweep } from '../transport/process/pid-sweep.ts'
import { USER_AGENT } from '../user-agent.ts'
import { VERSION } from '../version.ts'
import type { Foundation } from './foundation.ts'
import type { ServerCredentials } from './server-credentials.ts'
import { openJournal } from './state-folder.ts'

export const IDENTITY = { name: 'trunkline', title: 'Trunkline', version: VERSION }

export interface Servers {
  /** Has no servers yet. */
  readonly fleet: Fleet
  readonly logs: ServerLogs
  readonly memory: Memory
  /** `undefined`: the configuration does not allow faults. */
  readonly faults: Faults | undefined
  /** Servers wait for the capabilities of the only host of a pipe. */
  readonly introduce: (host: SoleHost) => void
  readonly close: () => void
}

export const openServers = async (
  foundation: Foundation,
  { credential, subjectChanged$ }: Pick<ServerCredentials, 'credential' | 'subjectChanged$'>,
): Promise<Servers> => {
  const { environment, inForce, log, limits, sweeper, stateDir, store, clients } = foundation
  const { gateway, host, allowsFaults, faults: rules } = inForce.configuration
  const logs = new ServerLogs()
  // Processes start after the sweep of those that an earlier run left behind; listeners do not wait for it (DECISIONS 1).
  const swept = stateDir === undefined ? Promise.resolve(0) : sweep(stateDir)
  const journal = await openJournal(stateDir, log)
  const launch = createLauncher({
    ...(environment.path !== undefined && { path: environment.path }),
    ...(journal !== undefined && { journal }),
    ...(environment.atExit !== undefined && { atExit: environment.atExit }),
    maxInheritedFd: Math.max(2, ...host.inherited),
  })
  const faults = allowsFaults ? new Faults(log) : undefined
  faults?.apply(rules)
  if (faults !== undefined) sweeper.watch(faults)
  const memory = openMemory(stateDir, log, store && new SharedLists(store, foundation.seal))
  const soleHost = Promise.withResolvers<SoleHost>()
  const fleet = new Fleet({
    sweeper,
    identity: IDENTITY,
    instance: foundation.instance,
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
    hasCredential: (json) => foundation.credentials.hideJson(json) !== json,
    retries: new RetryBudget(() => inForce.configuration.gateway.retryPercent),
    memory,
    backoff: environment.backoff ?? DEFAULT_BACKOFF,
    spare: environment.spare ?? DEFAULT_SPARE,
    legacyTtlMs: () => inForce.configuration.gateway.legacyTtlMs,
    legacyPollMs: gateway.legacyPollMs,
    freshMs: () => inForce.configuration.gateway.freshMs,
    soleHost: environment.pipe && soleHost.promise,
    credential,
    ...(faults !== undefined && { faultsOf: (server) => faults.layerOf(server) }),
  })
  subjectChanged$.subscribe((principal) => fleet.subjectChanged(principal))
  return { fleet, logs, memory, faults, introduce: soleHost.resolve, close: () => journal?.[Symbol.dispose]() }
}
