/** The whole configuration after reading: frozen, complete, without variables. What `app.ts` is given. */
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
  /** 16 hex characters that name it: a digest of the absolute path of its first file. Names the state folder and the admin socket. */
  readonly id: string
  /** What `-c` was given, as it was given; empty where the configuration was found without: for the commands that messages name. */
  readonly named: readonly string[]
  /** Absolute paths of every file read, the main one first, with those of `env_file` and `${file:…}`: what is watched. */
  readonly files: readonly string[]
  /** Those of `files` that hold no configuration: while serving, a file that has become empty is taken for a truncated one. */
  readonly emptyFiles: readonly string[]
  /** Absolute patterns of `include`: a new file that matches is a change. */
  readonly globs: readonly string[]
  readonly servers: readonly ServerOptions[]
  /** Of the environment, for authorization servers that no server's options decide on. */
  readonly proxies: ProxyRules
  readonly gateway: GatewayOptions
  readonly host: HostOptions
  /** The admin listener, what is captured and what is counted. */
  readonly observe: ObserveOptions
  /** The audit log; `undefined`: none is kept. */
  readonly audit: AuditSettings | undefined
  /** Where traces and their metrics are sent; `undefined`: none are kept. */
  readonly tracing: TracingOptions | undefined
  /** What is injected into calls on purpose. */
  readonly faults: readonly FaultRule[]
  /** Who may call what; `undefined`: everything that a caller sees may be called. */
  readonly policy: PolicyOptions | undefined
  /** Whether this process may inject anything (`--allow-faults`). */
  readonly allowsFaults: boolean
  /** Where the lock file is, and what it says; `undefined`: none is configured. */
  readonly lock: LockFile | undefined
  readonly log: { readonly level: string; readonly format: 'auto' | 'json' | 'pretty' }
  /** State folder of this configuration, absolute; `undefined`: keep nothing. */
  readonly stateDir: string | undefined
  /** At most two keys of 64 hex digits (`state.key`); the first seals, both open. Empty: a key of the state folder. */
  readonly stateKeys: readonly string[]
  /** Processes that serve hosts (`listen.workers`); 1: this one alone, and nothing else is started. */
  readonly workers: number
  /** URL under which other replicas reach this one; `undefined`: there are none, or they do not pass requests on. */
  readonly replicaUrl: string | undefined
  /** What replicas share; `undefined`: nothing. */
  readonly store: StoreOptions | undefined
  /** Folder of the admin sockets, absolute, shared by all configurations of this user. */
  readonly runtimeDir: string
  readonly watch: boolean
  /** What changed in them is not applied before a reload is asked for. */
  readonly confirm: boolean
  /** Values that no log line, status or error may show: credentials, and what variables brought into environments. */
  readonly secrets: readonly string[]
  /** Those of them that are certainly credentials: a definition of a server that holds one is withheld. */
  readonly credentials: readonly string[]
  /** What a person should know: left-out entries, renamed keys, readable secrets. One sentence each. */
  readonly warnings: readonly string[]
}

/** Where the lock is, and what it says. */
export interface LockFile {
  /** Absolute. */
  readonly file: string
  /** As messages call it: relative to the working folder where it is inside. */
  readonly name: string
  readonly covers: readonly LockKind[]
  /** `undefined`: the file is not there, or was not to be read. */
  readonly servers: readonly ServerLock[] | undefined
}
