/** Options of the listeners: addresses, checks, sessions, streams. */
import type { AuthOptions } from '../auth/inbound/verify/inbound-options.ts'
import type { RevisionRange } from '../wire/protocol/revisions.ts'
import type { TcpAddress, UnixAddress } from '../transport/http1/server/connection/listen-address.ts'
import type { ServerCertificate } from '../transport/http1/server/connection/secure-sockets.ts'
import type { HttpServerChoice } from '../transport/http1/server/http-server.ts'

export type Address = TcpAddress

export interface HostLimits {
  readonly maxBodyBytes: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  readonly maxBatch: number
  readonly maxDepth: number
  readonly maxValues: number
  readonly maxKeysPerObject: number
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** From this machine; unlimited unless the one above was configured. */
  readonly maxConnectionsPerLoopback: number
  readonly maxSessions: number
  /** Of one principal; does not apply to the shared principal (DECISIONS 7). */
  readonly maxSessionsPerPrincipal: number
  readonly maxInFlight: number
  /** Of one principal; does not apply to the shared principal. */
  readonly maxInFlightPerPrincipal: number
  /** Bytes of all held messages; at most a quarter of the heap's limit. */
  readonly maxInFlightBytes: number
  readonly maxInFlightPerSession: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** Bytes of an unneeded body that are read and dropped, so that the host reads its answer. */
  readonly maxUnreadBytes: number
  readonly keepAliveTimeoutMs: number
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly sseKeepAliveMs: number
  /** The stream of a host that does not read for this time is closed. */
  readonly writeStallMs: number
  /** Queued behind the message being written; answers do not count while the host reads (decision 0187). */
  readonly maxQueuedBytes: number
  /** How late the event loop may be, for a second, before new sessions are refused; after three, new calls. */
  readonly maxLoopLagMs: number
  /** Event log: per stream, per stream, per session, of all sessions, and age. */
  readonly maxEvents: number
  readonly maxEventBytes: number
  readonly maxSessionEventBytes: number
  readonly maxTotalEventBytes: number
  readonly maxEventAgeMs: number
  /** How long a call continues after the connection of its legacy host broke. */
  readonly orphanMs: number
}

export interface HostOptions {
  /** The MCP listener; several for `127.0.0.1` and `::1`. Empty: none (stdio only). */
  readonly addresses: readonly Address[]
  /** Of all TCP addresses; `undefined`: they speak plain HTTP. */
  readonly tls: ServerCertificate | undefined
  /** A unix socket beside them. */
  readonly unix: UnixAddress | undefined
  /** Descriptors of sockets that the service manager passed. */
  readonly inherited: readonly number[]
  /** Peers that may say who their client is, as `trustedProxies` takes them. */
  readonly trustedProxies: readonly string[]
  /** Connections of these peers begin with a header of the PROXY protocol. */
  readonly takesProxyHeader: boolean
  /** The header of these peers that names the client. */
  readonly forwarded: 'x-forwarded-for' | 'forwarded'
  /** Path of Streamable HTTP, `/mcp` by default. */
  readonly path: string
  /** The parser of fast-path requests. */
  readonly httpServer: HttpServerChoice
  /** `/sse` and `/messages`. */
  readonly sse: boolean
  /** Names beside the loopback ones that the `Host` header may carry. */
  readonly allowedHosts: readonly string[]
  /** Allowed origins of browsers, exact. */
  readonly allowedOrigins: readonly string[]
  /** Origin and path prefix under which hosts and browsers reach the gateway; `undefined`: a bound address. */
  readonly publicUrl: string | undefined
  /** Authentication; `undefined`: none, and all callers are one principal. */
  readonly auth: AuthOptions | undefined
  /** Without authentication only loopback is bound, unless this is on. */
  readonly allowUnauthenticatedNetwork: boolean
  /** With a modern `min` legacy hosts get the answers of a modern server; with a legacy `max` it is the reverse (B293). */
  readonly revisions: RevisionRange
  /** How long an answer may stay undecided between JSON and SSE: legacy sessions that accept requests / others. */
  readonly streamAfterLegacyMs: number
  readonly streamAfterMs: number
  /** Resumable streams of requests are closed after this long, to be polled; `Infinity`: held open. */
  readonly pollAfterMs: number
  /** SIGTERM, or end of stdin, to exit. */
  readonly drainMs: number
  /** How long requests are served while `/readyz` answers 503, within `drainMs`; `undefined`: as long as probes need. */
  readonly lameDuckMs: number | undefined
  readonly limits: HostLimits
}

export const DEFAULT_HOST_LIMITS: HostLimits = {
  maxBodyBytes: 4 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxHeaderLines: 100,
  maxBatch: 100,
  maxDepth: 128,
  maxValues: 250_000,
  maxKeysPerObject: 20_000,
  maxConnections: 10_000,
  maxConnectionsPerAddress: 256,
  maxConnectionsPerLoopback: Infinity,
  maxSessions: 10_000,
  maxSessionsPerPrincipal: 100,
  maxInFlight: 10_000,
  maxInFlightPerPrincipal: 1_000,
  maxInFlightBytes: 256 * 1024 * 1024,
  maxInFlightPerSession: 64,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  maxUnreadBytes: 64 * 1024 * 1024,
  keepAliveTimeoutMs: 65_000,
  sessionIdleMs: 30 * 60_000,
  sessionMaxMs: 24 * 3_600_000,
  sseKeepAliveMs: 15_000,
  writeStallMs: 10_000,
  maxQueuedBytes: 1024 * 1024,
  maxLoopLagMs: 200,
  maxEvents: 256,
  maxEventBytes: 1024 * 1024,
  maxSessionEventBytes: 4 * 1024 * 1024,
  maxTotalEventBytes: 256 * 1024 * 1024,
  maxEventAgeMs: 300_000,
  orphanMs: 300_000,
}

export const DEFAULT_HOST: HostOptions = {
  addresses: [
    { host: '127.0.0.1', port: 7420 },
    { host: '::1', port: 7420 },
  ],
  tls: undefined,
  unix: undefined,
  inherited: [],
  trustedProxies: [],
  takesProxyHeader: false,
  forwarded: 'x-forwarded-for',
  path: '/mcp',
  httpServer: 'own',
  sse: true,
  allowedHosts: [],
  allowedOrigins: [],
  publicUrl: undefined,
  auth: undefined,
  allowUnauthenticatedNetwork: false,
  revisions: { min: '2024-11-05', max: '2026-07-28' },
  streamAfterLegacyMs: 200,
  streamAfterMs: 2_000,
  pollAfterMs: Infinity,
  drainMs: 25_000,
  lameDuckMs: undefined,
  limits: DEFAULT_HOST_LIMITS,
}
