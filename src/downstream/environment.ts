/** The environment of all servers, provided by the composition root. */
import type { Log } from '../values/log.ts'
import type { Credential } from '../auth/outbound/credential.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { Pin } from '../catalog/lock/pinned.ts'
import type { Verdict } from '../era/server/dial.ts'
import type { Declared, Identity, Link } from '../era/server/link.ts'
import type { Caller, HostSession, Layer } from '../rpc/call.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { RequestIds } from '../rpc/connection.ts'
import type { Sweeper } from '../rpc/sweeper.ts'
import type { Bearer, Channel, HttpChannel } from '../transport/channel/channel.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { Era, LegacyRevision } from '../wire/protocol/revisions.ts'
import type { BackoffOptions } from './pacing/backoff.ts'
import type { RetryBudget } from './pacing/retry-budget.ts'
import type { LinkOwner } from './link-owner.ts'
import type { ServerOptions } from './options.ts'
import type { ServerLogs } from './server-logs.ts'
import type { SpareOptions } from './spare.ts'
import type { Printing, Starts } from './pacing/starts.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'

/** A process started by Trunkline, running or ended. */
export interface ServerProcess extends Printing {
  readonly pid: number
  /** Wall clock, ms. */
  readonly startedAt: number
  /** The last lines on stderr, oldest first; kept after its end. */
  stderrTail(count: number): readonly string[]
}

/** A channel over the pipes of such a process. */
export interface PipeChannel extends Channel {
  /** `undefined`: not spawned yet. */
  readonly process: ServerProcess | undefined
}

/** A started process that is reached over HTTP (`command` and `url` together). */
export interface Companion extends ServerProcess {
  /** Resolves when the process has ended. */
  readonly exited: Promise<unknown>
  stop(): Promise<void>
}

/** Creates channels from options without opening them. */
export interface Openers {
  /** `options`: also read while the process runs, for limits that a reload changes. */
  pipe(options: () => ServerOptions): PipeChannel
  /** `bearer`: read for each request. */
  http(options: ServerOptions, bearer: Bearer | undefined): HttpChannel
  sse(options: ServerOptions, bearer: Bearer | undefined): Channel
  /** Starts the command of a server that is reached at its URL. */
  companion(options: () => ServerOptions): Promise<Companion>
}

/** Kinds of hosts with other lists than the common ones: hosts that run MCP Apps, and legacy hosts of a server of both eras. */
export type OtherHosts = 'apps' | 'legacy'

/** Stored knowledge of servers, which survives restarts; see `store.ts`. */
export interface Memory {
  /** Reads inventories of other replicas for servers without a stored one; never rejects. */
  learn(servers: readonly ServerOptions[]): Promise<void>
  /** The stored inventory, before any policy. */
  inventory(options: ServerOptions, of?: 'legacy'): Inventory | undefined
  keepInventory(options: ServerOptions, inventory: Inventory): void
  /** `undefined`: legacy hosts have the common lists. */
  keepLegacyInventory(options: ServerOptions, inventory: Inventory | undefined): void
  /** The inventory was read again and has not changed. */
  confirmInventory(options: ServerOptions, inventory: Inventory): void
  /** Whether the server has never been read, and failed or was late before: lists do not wait for it. */
  hasFailed(options: ServerOptions): boolean
  keepFailed(options: ServerOptions): void
  /** First seen tools by name; `of`: in the lists for other hosts. */
  pins(options: ServerOptions, of?: OtherHosts): Readonly<Record<string, Pin>>
  keepPins(options: ServerOptions, pins: Readonly<Record<string, Pin>>, of?: OtherHosts): void
  verdict(options: ServerOptions): Verdict | undefined
  keepVerdict(options: ServerOptions, verdict: Verdict | undefined): void
}

/** Operations on a server that is connected again. */
export interface Reconnected extends Pick<Link, 'subscribe' | 'unsubscribe' | 'followTask' | 'unfollowTask'> {
  /** `Downstream.id` */
  readonly id: string
  readonly options: ServerOptions
}

/** The only host of a pipe. */
export interface SoleHost {
  readonly capabilities: Declared
  /** Present for a legacy host. */
  readonly session: HostSession | undefined
  /** Present at a bridge. */
  readonly clientInfo?: unknown
  /** Present at a bridge. */
  readonly revision?: LegacyRevision
  /** Number of gateways between the host and this process. */
  readonly hops: number
}

/** The callers that may get an update of a resource. */
export interface UpdateAudience {
  /** The callers of the link on which the update arrived. Absent: all. */
  readonly onLink?: (caller: Caller) => boolean
  /** Callers that get the update on another link. Absent: none. */
  readonly isToldElsewhere?: (caller: Caller) => boolean
}

/** The callers of one principal that share a link to a legacy server. */
export interface SharedBy {
  readonly principal: string
  /** Whether legacy sessions use the link, too (`sharing: principal`), or only hosts without a session. */
  readonly hasSessions: boolean
}

/** What servers report, for hosts and for traces. */
export interface ServerReports {
  readonly personalListed: (key: string, principal: string, inventory: Inventory) => void
  /** The lists of a server for one session; `undefined`: the common lists. */
  readonly sessionListed: (key: string, session: HostSession, inventory: Inventory | undefined) => void
  /** The lists of a server for the callers that share one principal's link; `undefined`: the common lists. */
  readonly principalListed: (key: string, to: SharedBy, inventory: Inventory | undefined) => void
  /** A server announced a changed list. `owner`: of the link; `undefined`: a link of all callers. */
  readonly listAnnounced: (key: string, list: ChangedList, owner: LinkOwner | undefined) => void
  /** A subscribed resource changed. `uri`: the server's own. */
  readonly updated: (id: string, uri: string, params: Payload, audience: UpdateAudience) => void
  /** A task changed, in the form of the server's era. `owner`: of the link; `undefined`: a link of all callers. */
  readonly taskChanged: (id: string, task: Payload, owner: LinkOwner | undefined) => void
  /** The main link is up again after a loss, or replaces that of a predecessor. */
  readonly reconnected: (downstream: Reconnected) => void
  readonly linkOpened: (link: Link, options: ServerOptions) => void
  /** Asks whether a legacy host is connected that is notified of changed lists. */
  readonly hasLegacyHosts: () => boolean
}

export interface DownstreamEnvironment extends ServerReports {
  readonly sweeper: Sweeper
  readonly identity: Identity
  /** Name of this process among gateways (T-35). */
  readonly instance: string
  readonly log: Log
  /** Log messages of servers, for `trunkline logs`. */
  readonly logs: Pick<ServerLogs, 'logged'>
  readonly openers: Openers
  readonly memory: Memory
  readonly backoff: BackoffOptions
  readonly spare: SpareOptions
  /** Counts of reached limits. */
  readonly limits: LimitCounts
  /** Processes that may start at the same time (`limits.starts`). */
  readonly maxStarts: () => number
  /** Whether JSON text contains a credential of the configuration (T-14). */
  readonly hasCredential: (json: string) => boolean
  readonly retries: RetryBudget
  /** Source of request ids over HTTP, shared by all servers and links. */
  readonly httpIds: RequestIds
  /** Limits concurrent starts of processes. */
  readonly starts: Starts
  /** The first attempt to connect waits for it. */
  readonly startAfter: Promise<unknown> | undefined
  /** Lifetime of lists of legacy servers (`cache.legacy_ttl`), and the shorter one without `listChanged`. */
  readonly legacyTtlMs: () => number
  readonly legacyPollMs: number
  /** Age at which a list is read again on request (`cache.fresh`). */
  readonly freshMs: () => number
  /** The only host of a pipe, once its handshake is known. The main link serves its calls, too (BRIDGING 3.0 rule 4). */
  readonly soleHost: Promise<SoleHost> | undefined
  /** The changing credential of a server, if it needs one. `principal`: present if each principal has its own. */
  readonly credential: (options: ServerOptions, principal: string | undefined) => Credential | undefined
  /** Whether the whole fleet is being stopped. */
  readonly isEnding: () => boolean
  /** Whether the server replaces one of the same key, whose subscriptions it takes over. */
  readonly isSuccessor: boolean
  /** The layer that injects faults into calls to a server; absent: faults are not allowed. */
  readonly faultsOf?: (server: { readonly key: string; readonly era: Era; readonly idleMs: number }) => Layer | undefined
}
