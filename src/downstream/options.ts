/** Options of one server: complete, with units in the names. docs/configuration.md has the YAML names. */
import type { CredentialOptions } from '../auth/credential-options.ts'
import type { Locked, LockKind, OnChange } from '../catalog/lock/lock.ts'
import type { CatalogServer } from '../catalog/catalog.ts'
import type { HiddenPolicy } from '../catalog/curate/vetting.ts'
import type { Rate } from '../rpc/rate.ts'
import type { TlsSettings } from '../transport/http1/client/http-client.ts'
import type { HttpClientChoice } from '../transport/http1/client/http-clients.ts'
import type { Launch } from '../transport/process/process-group.ts'
import { NO_PROXIES } from '../transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../transport/http1/client/proxy-rules.ts'

export type TransportChoice = 'auto' | 'http' | 'sse'
export type EraChoice = 'auto' | 'legacy' | 'modern'
export type Sharing = 'session' | 'principal' | 'shared' | 'call'

export interface ServerTimeouts {
  /** Spawn and handshake together. */
  readonly startMs: number
  /** Silence after `server/discover` on stdio, after which `initialize` is sent as well. */
  readonly probeMs: number
  /** How long a call waits for a server that is starting or restarting (`timeouts.wait`). */
  readonly connectTimeoutMs: number
  /** Silence during a call. */
  readonly idleMs: number
  /** A whole call. */
  readonly totalMs: number
  /** Silence on the main link of a legacy server over HTTP before a ping. */
  readonly pingMs: number
  /** Time after a loss in which calls wait for the server. */
  readonly graceMs: number
}

export interface ServerLimits {
  readonly maxConcurrent: number
  /** Calls of all callers together; `undefined`: any. */
  readonly rate: Rate | undefined
  readonly maxQueued: number
  /** Log messages relayed to hosts, of one link; more are dropped. */
  readonly maxLogMessages: Rate
  /** One message from the server, in bytes. */
  readonly maxMessageBytes: number
  /** Bytes sent to a server on a pipe that it has not read; requests beyond wait up to 10 s. */
  readonly maxWriteQueueBytes: number
  /** Links per server and principal. */
  readonly maxLinks: number
  /** Restarts of processes in a minute. */
  readonly maxRestarts: number
  /** Stored stderr output, in bytes. */
  readonly maxStderrBytes: number
  readonly maxTools: number
  readonly maxEntries: number
  readonly maxPages: number
  /** One title, description or other text of a definition, in bytes. */
  readonly maxTextBytes: number
  /** One schema of a definition, in bytes. */
  readonly maxSchemaBytes: number
  /** Levels of objects and arrays in a schema, or another member of a definition. */
  readonly maxSchemaDepth: number
}

export interface ServerOptions extends CatalogServer {
  /** Place in the configuration: `trunkline.yaml:31:3`. */
  readonly place: string
  /** The process to start, also if it is reached at `url`. Its environment: the inherited allow-list, and `env`. */
  readonly launch: Launch | undefined
  readonly url: URL | undefined
  readonly transport: TransportChoice
  readonly era: EraChoice
  /** The client for `http://` URLs; `https://` always uses undici. */
  readonly httpClient: HttpClientChoice
  /** Proxies for the server and its authorization server. */
  readonly proxies: ProxyRules
  /** `undefined`: Node's default trust, without a client certificate. */
  readonly tls: TlsSettings | undefined
  /** Static headers for HTTP transports, credentials among them. */
  readonly headers: Readonly<Record<string, string>>
  /** A changing credential; `undefined`: only `headers`. */
  readonly credential: CredentialOptions | undefined
  readonly sharing: Sharing
  readonly start: 'eager' | 'lazy'
  /** 0 or 1 processes started ahead for the next link. */
  readonly spare: 0 | 1
  /** Idle time after which a principal's link and a lazy server are closed. `Infinity`: never. */
  readonly idleStopMs: number
  /** Static roots answered to `roots/list`, absolute paths or URIs; `undefined`: none configured. */
  readonly roots: readonly string[] | undefined
  readonly timeouts: ServerTimeouts
  readonly limits: ServerLimits
  readonly dynamicLists: boolean
  /** The policy for hidden characters in definitions. */
  readonly hidden: HiddenPolicy
  /** The policy for a definition that differs from the lock file or, without one, from the first seen tool. */
  readonly onChange: OnChange
  /** The server in the lock file; `undefined`: no lock file. */
  readonly locked: LockedServer | undefined
  /** Whether the gateway also follows tasks for modern hosts that do not declare the tasks extension. */
  readonly driveTasks: boolean
  /** The configured options, if another process of this machine runs the server (`listen.workers`); stored records refer to them. */
  readonly configured?: ServerOptions
}

export const DEFAULT_TIMEOUTS: ServerTimeouts = {
  startMs: 60_000,
  probeMs: 5_000,
  connectTimeoutMs: 30_000,
  idleMs: 300_000,
  totalMs: 3_600_000,
  pingMs: 30_000,
  graceMs: 30_000,
}

export const DEFAULT_LIMITS: ServerLimits = {
  maxConcurrent: 256,
  rate: undefined,
  maxQueued: 256,
  maxLogMessages: { amount: 500, periodMs: 1_000, text: '500/s' },
  maxMessageBytes: 16 * 1024 * 1024,
  maxWriteQueueBytes: 4 * 1024 * 1024,
  maxLinks: 16,
  maxRestarts: 10,
  maxStderrBytes: 64 * 1024,
  maxTools: 2048,
  maxEntries: 10_000,
  maxPages: 1_000,
  maxTextBytes: 16 * 1024,
  maxSchemaBytes: 256 * 1024,
  maxSchemaDepth: 128,
}

export const DEFAULT_SERVER: Omit<ServerOptions, 'key' | 'prefix' | 'displayName' | 'place' | 'launch' | 'url'> = {
  transport: 'auto',
  era: 'auto',
  httpClient: 'own',
  proxies: NO_PROXIES,
  tls: undefined,
  headers: {},
  credential: undefined,
  trusted: undefined,
  sharing: 'session',
  start: 'eager',
  spare: 1,
  idleStopMs: 30 * 60_000,
  roots: undefined,
  timeouts: DEFAULT_TIMEOUTS,
  limits: DEFAULT_LIMITS,
  alias: {},
  curation: undefined,
  uris: 'namespaced',
  unaliasArguments: true,
  decorateTitles: false,
  dynamicLists: false,
  apps: true,
  hidden: 'warn',
  onChange: 'warn',
  locked: undefined,
  driveTasks: false,
  instructions: true,
  tags: [],
}

/** One server in a lock file. */
export interface LockedServer {
  /** Name of the file in messages. */
  readonly file: string
  readonly covers: readonly LockKind[]
  /** Empty for a server that is not in the file. */
  readonly entries: readonly Locked[]
  /** Further entries of the lists for hosts that run MCP Apps. */
  readonly apps: readonly Locked[]
}
