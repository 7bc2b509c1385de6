/** The whole configuration after reading: frozen, complete, without variables. */
import type { LockKind, ServerLock } from '../catalog/lock/lock.ts'
import type { ServerOptions } from '../downstream/options.ts'
import type { FaultRule } from '../gateway/faults.ts'
import type { GatewayOptions } from '../gateway/options.ts'
import type { HostOptions } from '../host/options.ts'
import type { ObserveOptions } from '../observe/options.ts'
import type { PolicyOptions } from '../policy/options.ts'
import type { ProxyRules } from '../transport/http1/client/proxy-rules.ts'
import type { StoreOptions } from '../store/store-options.ts'
import type { TracingOptions } from '../tracing/options.ts'

export interface AuditSettings {
  /** Absolute path. */
  readonly file: string
  readonly bodies: boolean
  readonly onFailure: 'refuse' | 'drop'
}

export interface Configuration {
  /** 16 hex characters: a digest of the absolute path of its first file. Names the state folder and the admin socket. */
  readonly id: string
  /** The arguments of `-c`, unchanged, for commands in messages; empty where the configuration was found without `-c`. */
  readonly named: readonly string[]
  /** Absolute paths of every file read, the main one first, with those of `env_file` and `${file:…}`: these are watched. */
  readonly files: readonly string[]
  /** Those of `files` that have no content: while serving, a file that becomes empty is treated as truncated. */
  readonly emptyFiles: readonly string[]
  /** Absolute patterns of `include`: a new file that matches is a change. */
  readonly globs: readonly string[]
  readonly guards: readonly Guard[]
  readonly servers: readonly ServerOptions[]
  /** Proxies of the environment, for authorization servers that belong to no server. */
  readonly proxies: ProxyRules
  readonly gateway: GatewayOptions
  readonly host: HostOptions
  /** The admin listener, captured calls and metrics. */
  readonly observe: ObserveOptions
  /** `undefined`: there is no audit log. */
  readonly audit: AuditSettings | undefined
  /** Where traces and their metrics are sent; `undefined`: nowhere. */
  readonly tracing: TracingOptions | undefined
  /** Faults that are injected into calls. */
  readonly faults: readonly FaultRule[]
  /** Who may call what; `undefined`: everything that a caller sees may be called. */
  readonly policy: PolicyOptions | undefined
  /** Whether this process may inject faults (`--allow-faults`). */
  readonly allowsFaults: boolean
  /** `undefined`: no lock file is configured. */
  readonly lock: LockFile | undefined
  readonly log: { readonly level: string; readonly format: 'auto' | 'json' | 'pretty' }
  /** State folder of this configuration, absolute; `undefined`: keep nothing. */
  readonly stateDir: string | undefined
  /** At most two keys of 64 hex digits (`state.key`); the first seals, both open. Empty: a key of the state folder. */
  readonly stateKeys: readonly string[]
  /** Processes that serve hosts (`listen.workers`); 1: this process only. */
  readonly workers: number
  /** URL at which other replicas reach this one; `undefined`: there are none, or they do not pass requests on. */
  readonly replicaUrl: string | undefined
  /** The store that replicas share; `undefined`: none. */
  readonly store: StoreOptions | undefined
  /** Folder of the admin sockets, absolute, shared by all configurations of this user. */
  readonly runtimeDir: string
  readonly watch: boolean
  /** A change of the files is applied only on request (`trunkline reload`, SIGHUP). */
  readonly confirm: boolean
  /** Values that no log line, status or error may show: credentials, and values of environments that came from variables. */
  readonly secrets: readonly string[]
  /** Those of `secrets` that are certainly credentials: a definition of a server that contains one is withheld. */
  readonly credentials: readonly string[]
  /** Warnings for the operator, one sentence each: skipped entries, renamed keys, readable secrets. */
  readonly warnings: readonly string[]
}

/** A section that the files have and that restricts callers: `auth`, `policy` or `strict`. */
export interface Guard {
  readonly section: string
  /** The pattern of `include` by which it is read, and the file that matched; `undefined`: no pattern is between it and the main file. */
  readonly match: { readonly glob: string; readonly file: string } | undefined
}

export interface LockFile {
  /** Absolute path. */
  readonly file: string
  /** The path in messages: relative to the working folder where it is inside. */
  readonly name: string
  readonly covers: readonly LockKind[]
  /** `undefined`: the file does not exist, or was not read. */
  readonly servers: readonly ServerLock[] | undefined
}
