/** Applies another configuration to a running gateway. `config/` has read, validated and compared it before. */
import { isDeepStrictEqual } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import type { SubjectTokens } from '../auth/subject-tokens.ts'
import type { Configuration } from '../config/options.ts'
import type { Memory } from '../downstream/environment.ts'
import type { Fleet } from '../downstream/fleet.ts'
import type { ServerLogs } from '../downstream/server-logs.ts'
import type { Faults } from '../gateway/faults.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Front } from '../host/http/front.ts'
import type { HostOptions } from '../host/options.ts'
import type { Redactor } from '../redactor.ts'
import type { HttpClients } from '../transport/http1/client/http-clients.ts'
import type { HeldBytes } from '../transport/held-bytes.ts'
import type { AuditLog } from './audit-log.ts'
import type { HostPipes } from './host-pipes.ts'
import type { PolicyInForce } from './policy-in-force.ts'
import type { TraceExport } from './trace-export.ts'

/** The current configuration, for code that reads an option at each use. */
export interface InForce {
  configuration: Configuration
}

export interface Reloadable {
  readonly inForce: InForce
  readonly redactor: Redactor
  /** Contains credentials only. */
  readonly credentials: Redactor
  readonly memory: Memory
  readonly audit: AuditLog
  readonly policy: PolicyInForce
  readonly traces: TraceExport
  /** Its addresses are not bound if the gateway serves one host on a pipe. */
  readonly front: Front
  readonly isBound: boolean
  readonly pipes: HostPipes
  readonly isStopping: () => boolean
  readonly clients: HttpClients
  readonly subjects: SubjectTokens
  readonly faults: Faults | undefined
  readonly fleet: Fleet
  readonly logs: ServerLogs
  readonly gateway: Gateway
}

/**
 * Rejects with the system's error, or with `ConfigError`, and changes nothing, if an address cannot be bound or a file opened. Rejects, and
 * starts nothing, if the gateway is stopping.
 */
export const applyConfiguration = async (parts: Reloadable, next: Configuration, restart: ReadonlySet<string>): Promise<void> => {
  const { inForce, fleet, gateway } = parts
  refuseStopping(parts)
  learnSecrets(parts, next)
  await parts.memory.learn(next.servers)
  const before = inForce.configuration
  const auditFile = isDeepStrictEqual(before.audit, next.audit) ? undefined : await parts.audit.prepare(next.audit)
  if (parts.isBound)
    await parts.front.rebind(next.host).catch(async (error: unknown) => {
      await auditFile?.discard()
      throw error
    })
  await auditFile?.use()
  // Before any other option of the next configuration, so that nothing is allowed meanwhile that it forbids.
  if (!isDeepStrictEqual(before.policy, next.policy)) await parts.policy.apply(next.policy)
  if (!isDeepStrictEqual(before.tracing, next.tracing)) await parts.traces.apply(next.tracing)
  // Servers that are started from here on would not be stopped.
  refuseStopping(parts)
  parts.subjects.want(exchangesTokens(next))
  holdAtMost(parts.clients.bodies.held, next.host)
  if (!isDeepStrictEqual(before.faults, next.faults)) parts.faults?.apply(next.faults)
  inForce.configuration = next
  parts.pipes.adopt(next.host)
  fleet.apply(next.servers, restart, next.host.drainMs)
  parts.logs.retain(new Set(next.servers.map(({ key }) => key)))
  gateway.apply(next.gateway)
}

const refuseStopping = ({ isStopping }: Pick<Reloadable, 'isStopping'>): void => {
  if (isStopping()) throw new Error('the gateway is stopping')
}

/** Hides these secrets in all texts that leave the process from now on. */
export const learnSecrets = (
  { redactor, credentials }: Pick<Reloadable, 'redactor' | 'credentials'>,
  configuration: Configuration,
): void => {
  redactor.learn(configuration.secrets)
  redactor.retainMs = configuration.observe.capture.maxAgeMs
  credentials.learn(configuration.credentials)
}

/** Limits the memory for messages to a quarter of the heap. */
export const holdAtMost = (held: HeldBytes, { limits }: HostOptions): void => {
  held.max = Math.min(limits.maxInFlightBytes, Math.floor(getHeapStatistics().heap_size_limit / 4))
}

/** Whether a server gets tokens that are exchanged for those of callers. */
export const exchangesTokens = ({ servers }: Configuration): boolean =>
  servers.some(({ credential }) => credential?.mode === 'exchange')
