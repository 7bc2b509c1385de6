/** A gateway that runs, as the command line, the admin interface and embedding programs see it. */
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

/** A gateway that runs. */
export interface Running extends AsyncDisposable {
  readonly gateway: Gateway
  readonly fleet: Fleet
  readonly front: Front
  readonly context: ListenerContext
  /** What was passed on to other replicas; `undefined`: there are none. */
  readonly replicas: Replicas | undefined
  /** How the store is; `undefined`: none is configured. */
  readonly store: StoreState | undefined
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** What servers wrote. */
  readonly logs: ServerLogs
  /** The one in force. */
  readonly configuration: Configuration
  /** What is injected into calls on purpose, and how often it was. */
  readonly faults: readonly FaultCount[]
  /** What was captured and counted of calls while it was switched on. */
  readonly observer: Observer
  /** Calls are captured and counted until the returned function is called; several may ask for it. */
  watchCalls(): () => void
  /** How the audit log is doing; `undefined`: none is kept. */
  readonly audit: AuditState | undefined
  /**
   * Serves one more host, on a pipe; resolves when it has left and what it asked is answered, or given up. Rejects with
   * `NoEndpoint` where the path names nothing. `isRelay`: the words of `wire/protocol/relay` are understood there.
   */
  attach(streams: HostStreams, path: EndpointPath, isRelay?: boolean): Promise<void>
  /** `stop` was called. */
  readonly isStopping: boolean
  /** Settles when the host of a stdio listener has disconnected. */
  readonly hostLeft: Promise<void>
  /** Resolves, with the reason, once the process cannot recover: its owner calls `stop` and starts it again (F-30). */
  readonly exhausted: Promise<string>
  /**
   * Makes another configuration the one in force: what it does not change goes on as it is. `restart`: keys of changed servers.
   * Rejects with the system's error, or with `ConfigError`, and changes nothing, when an address cannot be bound or a file opened.
   */
  apply(configuration: Configuration, restart: ReadonlySet<string>): Promise<void>
  /** Reopens the files this process writes, which rotation may have renamed. Rejects with `ConfigError` and keeps the old files. */
  reopen(): Promise<void>
  /** Ends within the drain time, or within `withinMs` if that is shorter: open calls first, then the servers. */
  stop(withinMs?: number): Promise<void>
}

/** The path of a pipe names no server or toolset, or a server of which toolsets leave nothing. */
export class NoEndpoint extends Error {
  constructor(path: EndpointPath) {
    super(`there is no endpoint ${JSON.stringify(path)}`)
  }
}
