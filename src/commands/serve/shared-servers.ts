/**
 * The configurations of several processes (`listen.workers`). A server that all callers share must be one process: the supervisor runs it,
 * behind an internal gateway that only relays, and all other processes reach it there.
 *
 *     host ─► worker ── HTTP on loopback ─► owner (in the supervisor) ── pipe ─► the one process
 */
import { join } from 'node:path'
import { digestOf } from '../../auth/inbound/static-tokens.ts'
import type { Configuration } from '../../config/options.ts'
import type { ServerOptions } from '../../downstream/options.ts'
import { DEFAULT_GATEWAY } from '../../gateway/options.ts'
import { DEFAULT_HOST } from '../../host/options.ts'
import { NO_PROXIES } from '../../transport/http1/client/proxy-rules.ts'

/** The address of the owner, and a token that only our processes have. */
export interface OwnerAddress {
  readonly origin: string
  readonly token: string
}

/** Whether it is one process for all callers, on a pipe. For a process that serves a URL, the supervisor starts it, and all connect to the URL. */
const isOwned = ({ launch, url, sharing }: ServerOptions): boolean =>
  launch !== undefined && url === undefined && sharing === 'shared'

/** The keys of the servers that the owner runs. */
export const ownedServers = ({ servers }: Configuration): ReadonlySet<string> =>
  new Set(servers.filter(isOwned).map(({ key }) => key))

/** The configuration of the owner: shared servers without renaming, rules, limits per caller and listeners for hosts. */
export const ownerConfiguration = (configuration: Configuration, token: string): Configuration => {
  const { gateway, host } = configuration
  const { limits } = host
  return {
    ...configuration,
    servers: configuration.servers.filter(isOwned).map((server) => ({
      ...server,
      prefix: server.key,
      alias: {},
      curation: undefined,
      hidden: 'warn',
      onChange: 'allow',
      locked: undefined,
      timeouts: { ...server.timeouts, totalMs: longestCallMs(server) },
      limits: { ...server.limits, rate: undefined },
    })),
    gateway: {
      ...DEFAULT_GATEWAY,
      maxStarts: gateway.maxStarts,
      retryPercent: gateway.retryPercent,
      listBudgetMs: gateway.listBudgetMs,
      listTtlCapMs: gateway.listTtlCapMs,
      legacyTtlMs: gateway.legacyTtlMs,
      freshMs: gateway.freshMs,
      instructionsMaxBytes: Infinity,
      instructionsTotalBytes: Infinity,
    },
    host: {
      ...DEFAULT_HOST,
      addresses: [{ host: '127.0.0.1', port: 0 }],
      auth: {
        tokens: [
          { id: 'worker', hash: digestOf(token).toString('hex'), toolsets: undefined, expiresMs: Infinity, isOperator: false },
        ],
        oauth: undefined,
        map: [],
      },
      drainMs: host.drainMs,
      lameDuckMs: 0,
      limits: {
        ...limits,
        maxConnections: Infinity,
        maxConnectionsPerAddress: Infinity,
        maxConnectionsPerLoopback: Infinity,
        maxSessions: Infinity,
        maxSessionsPerPrincipal: Infinity,
        maxInFlight: Infinity,
        maxInFlightPerPrincipal: Infinity,
        maxInFlightPerSession: Infinity,
        sessionIdleMs: limits.sessionMaxMs,
      },
    },
    audit: undefined,
    tracing: undefined,
    faults: [],
    policy: undefined,
    allowsFaults: false,
    stateDir: configuration.stateDir === undefined ? undefined : join(configuration.stateDir, 'owner'),
    stateKeys: [],
    secrets: [...configuration.secrets, token],
  }
}

/** The longest time that a call may take: tools may have their own, which workers apply. */
const longestCallMs = ({ timeouts, curation }: ServerOptions): number =>
  Math.max(timeouts.totalMs, ...[...(curation?.edits.values() ?? [])].map(({ timeout }) => timeout?.totalMs ?? 0))

/** The configuration of a worker: it reaches owned servers at the owner. */
export const memberConfiguration = (configuration: Configuration, owner: OwnerAddress): Configuration => ({
  ...configuration,
  servers: configuration.servers.map((server) => {
    if (isOwned(server)) return atOwner(server, owner)
    return server.launch !== undefined && server.url !== undefined ? { ...server, launch: undefined, configured: server } : server
  }),
  secrets: [...configuration.secrets, owner.token],
})

/** The configuration of the supervisor's gateway for operators and hosts on pipes: it binds no address. */
export const viewConfiguration = (configuration: Configuration, owner: OwnerAddress): Configuration => ({
  ...configuration,
  servers: configuration.servers.map((server) => (isOwned(server) ? atOwner(server, owner) : { ...server, spare: 0 })),
  host: { ...configuration.host, addresses: [] },
  secrets: [...configuration.secrets, owner.token],
})

const atOwner = (server: ServerOptions, { origin, token }: OwnerAddress): ServerOptions => ({
  ...server,
  configured: server,
  launch: undefined,
  url: new URL(`/servers/${server.key}/mcp`, origin),
  transport: 'http',
  era: 'auto',
  httpClient: 'own',
  proxies: NO_PROXIES,
  headers: { authorization: `Bearer ${token}` },
  // The owner has checked the messages of the server, and adds to them.
  limits: { ...server.limits, maxMessageBytes: Infinity },
})
