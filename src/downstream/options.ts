/**
 * What the configuration says of one downstream server, complete: every default is filled in, every variable replaced.
 * Units stand in the names. The YAML names are in docs/configuration.md.
 */
import type { CredentialOptions } from '../auth/oauth/options.ts'
import type { Locked, LockKind, OnChange } from '../catalog/lock/lock.ts'
import type { Curation } from '../catalog/curation.ts'
import type { HiddenPolicy } from '../catalog/curate/vetting.ts'
import type { Rate } from '../rpc/rate.ts'
import type { TlsSettings } from '../transport/http1/client/http-client.ts'
import type { HttpClientChoice } from '../transport/http1/client/http-clients.ts'
import { NO_PROXIES } from '../transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../transport/http1/client/proxy-rules.ts'

export type TransportChoice = 'auto' | 'http' | 'sse'
export type EraChoice = 'auto' | 'legacy' | 'modern'
export type Sharing = 'session' | 'principal' | 'shared' | 'call'

/** A process that Trunkline starts. With a `url` beside it, the process serves that URL and is spoken to there. */
export interface LaunchOptions {
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment of the child: the inherited allow-list merged with `env` of the configuration. */
  readonly env: Readonly<Record<string, string>>
  /** Absolute path. */
  readonly cwd: string
}

export interface ServerTimeouts {
  /** Spawn and handshake together. */
  readonly startMs: number
  /** Silence after which `server/discover` on stdio is doubled by `initialize`. */
  readonly probeMs: number
  /** How long a call waits for a server that is starting or restarting (`timeouts.wait`). */
  readonly connectTimeoutMs: number
  /** Silence during a call. */
  readonly idleMs: number
  /** A call from beginning to end, whatever happens. */
  readonly totalMs: number
  /** Silence on the main link of a legacy server over HTTP after which it is asked whether it is there. */
  readonly pingMs: number
  /** How long a lost server changes nothing for the hosts. */
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
  /** Processes started in a minute in place of those that ended by themselves. */
  readonly maxRestarts: number
  /** Kept of what a process prints on stderr, in bytes. */
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

export interface ServerOptions {
  /** `^[a-z][a-z0-9-]{0,19}$`, unique: used in paths, logs, state. */
  readonly key: string
  /** What exposed names begin with; the key unless configured. */
  readonly prefix: string
  /** For labels and messages; the key unless configured. Never from serverInfo. */
  readonly displayName: string
  /** Where the configuration says so: `trunkline.yaml:31:3`. */
  readonly place: string
  readonly launch: LaunchOptions | undefined
  readonly url: URL | undefined
  readonly transport: TransportChoice
  readonly era: EraChoice
  /** What carries `http://` URLs; `https://` is always undici's. */
  readonly httpClient: HttpClientChoice
  /** The proxy it is reached through, and its authorization server. */
  readonly proxies: ProxyRules
  /** `undefined`: Node's own trust, and no certificate of ours. */
  readonly tls: TlsSettings | undefined
  /** Static headers for HTTP transports, credentials among them. */
  readonly headers: Readonly<Record<string, string>>
  /** A proof that changes; `undefined`: `headers` are all there is. */
  readonly credential: CredentialOptions | undefined
  readonly trusted: boolean | undefined
  readonly sharing: Sharing
  readonly start: 'eager' | 'lazy'
  /** 0 or 1 processes started ahead for the next link. */
  readonly spare: 0 | 1
  /** An unused principal link, and a lazy server, are closed after this. `Infinity`: never. */
  readonly idleStopMs: number
  /** Static roots answered to `roots/list`, absolute paths or URIs; `undefined`: none configured. */
  readonly roots: readonly string[] | undefined
  readonly timeouts: ServerTimeouts
  readonly limits: ServerLimits
  /** Exposed name by original name (`alias`); wins over every rule of naming. */
  readonly alias: Readonly<Record<string, string>>
  /** What is done to what it offers; `undefined`: nothing. */
  readonly curation: Curation | undefined
  /** `namespaced`: `<prefix>+<uri>`; `identity`: as the server has them. */
  readonly uris: 'namespaced' | 'identity'
  readonly unaliasArguments: boolean
  readonly decorateTitles: boolean
  readonly dynamicLists: boolean
  readonly apps: boolean
  /** What is done about hidden characters in what it says of itself. */
  readonly hidden: HiddenPolicy
  /** What happens to a definition that is not the one in the lock file or, without one, to a tool that is not as first seen. */
  readonly onChange: OnChange
  /** What the lock file says of it; `undefined`: there is none. */
  readonly locked: LockedServer | undefined
  /** Tasks are followed also for modern hosts that could do it themselves, were they to declare so. */
  readonly driveTasks: boolean
  readonly instructions: boolean
  /** As configured, where another process of this machine runs it (`listen.workers`): what is remembered of it goes by that. */
  readonly configured?: ServerOptions
  readonly tags: readonly string[]
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

/** What a lock file says of one server. */
export interface LockedServer {
  /** The file as it is called in messages. */
  readonly file: string
  readonly covers: readonly LockKind[]
  /** Nothing for a server that the file does not name. */
  readonly entries: readonly Locked[]
  /** What it says beside that of the lists for hosts that run MCP Apps. */
  readonly apps: readonly Locked[]
}
