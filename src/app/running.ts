/** A running gateway, for the command line, the admin interface and embedding programs. */
import type { AuditState } from '../audit-file.ts'
import type { Configuration } from '../config/options.ts'
import type { Fleet } from '../downstream/fleet.ts'
import type { ServerLogs } from '../downstream/server-logs.ts'
import type { FaultCount } from '../gateway/faults.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Front } from '../host/http/front.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { Observer } from '../observe/observer.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { EndpointPath } from '../rpc/call.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { StoreState } from '../store/guarded-store.ts'
import type { HostStreams } from './environment.ts'

export interface Running extends AsyncDisposable {
  readonly gateway: Gateway
  readonly fleet: Fleet
  readonly front: Front
  readonly context: ListenerContext
  /** The other replicas; `undefined`: there are none. */
  readonly replicas: Replicas | undefined
  /** The state of the store; `undefined`: none is configured. */
  readonly store: StoreState | undefined
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** Lines that servers wrote. */
  readonly logs: ServerLogs
  /** The current one. */
  readonly configuration: Configuration
  /** Injected faults, and how often each was injected. */
  readonly faults: readonly FaultCount[]
  /** Captured and counted calls. */
  readonly observer: Observer
  /** Captures and counts calls until the returned function is called; several watchers are allowed. */
  watchCalls(): () => void
  /** The state of the audit log; `undefined`: there is none. */
  readonly audit: AuditState | undefined
  /**
   * Serves one more host, on a pipe; resolves when it has disconnected and its requests are answered or given up. Rejects with
   * `NoEndpoint` if the path names no endpoint. `isRelay`: the pipe also carries the messages of `wire/protocol/relay`.
   */
  attach(streams: HostStreams, path: EndpointPath, isRelay?: boolean): Promise<void>
  /** `stop` was called. */
  readonly isStopping: boolean
  /** Settles when the host of a pipe has disconnected. */
  readonly hostLeft: Promise<void>
  /** Resolves, with the reason, once the process cannot recover: its owner calls `stop` and restarts it (F-30). */
  readonly exhausted: Promise<string>
  /**
   * Applies another configuration; unchanged parts keep running. `restart`: keys of changed servers. Rejects with the system's error, or
   * with `ConfigError`, and changes nothing, if an address cannot be bound or a file opened. Rejects after `stop`.
   */
  apply(configuration: Configuration, restart: ReadonlySet<string>): Promise<void>
  /** Reopens the files that this process writes, after rotation. Rejects with `ConfigError` and keeps the old files. */
  reopen(): Promise<void>
  /** Ends within the drain time, or within `withinMs` if that is shorter: open calls first, then the servers. */
  stop(withinMs?: number): Promise<void>
}

/** The path of a pipe names no server or toolset, or a server without entries in any toolset. */
export class NoEndpoint extends Error {
  constructor(path: EndpointPath) {
    super(`there is no endpoint ${JSON.stringify(path)}`)
  }
}
