/** What every downstream server needs from the process around it: passed in by the composition root. */
import type { Credential } from '../auth/oauth/credential.ts'
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

/** A process of ours, running or ended. */
export interface ServerProcess extends Printing {
  readonly pid: number
  /** Wall clock, ms. */
  readonly startedAt: number
  /** The last lines on stderr, oldest first; kept after its end. */
  stderrTail(count: number): readonly string[]
}

/** A channel over the pipes of a process of ours. */
export interface PipeChannel extends Channel {
  /** The process, once it was spawned. */
  readonly process: ServerProcess | undefined
}

/** A started process that is spoken to over HTTP (`command` and `url` together). */
export interface Companion extends ServerProcess {
  /** Resolves when the process has ended. */
  readonly exited: Promise<unknown>
  stop(): Promise<void>
}

/** Makes channels out of options; opens nothing by itself. */
export interface Openers {
  pipe(options: ServerOptions): PipeChannel
  /** `bearer`: sent with every request, as it is then. */
  http(options: ServerOptions, bearer: Bearer | undefined): HttpChannel
  sse(options: ServerOptions, bearer: Bearer | undefined): Channel
  /** Starts the command of a server that is reached at its URL. */
  companion(options: ServerOptions): Promise<Companion>
}

/** Hosts that a server may list something else than others: those that run MCP Apps, and legacy ones where it speaks both eras. */
export type OtherHosts = 'apps' | 'legacy'

/** What is remembered of a server over restarts; see `store.ts`. */
export interface Memory {
  /** Reads what other replicas know of servers of which nothing is known here; never rejects. */
  learn(servers: readonly ServerOptions[]): Promise<void>
  /** As the server said it, before any policy. */
  inventory(options: ServerOptions, of?: 'legacy'): Inventory | undefined
  keepInventory(options: ServerOptions, inventory: Inventory): void
  /** `undefined`: legacy hosts are offered what all are. */
  keepLegacyInventory(options: ServerOptions, inventory: Inventory | undefined): void
  /** It was read again, and is what was kept. */
  confirmInventory(options: ServerOptions, inventory: Inventory): void
  /** It has never been read and has failed before, or was waited for in vain: lists wait for it no more. */
  hasFailed(options: ServerOptions): boolean
  keepFailed(options: ServerOptions): void
  /** Tools as they were first seen, by name; of the lists for everybody, or of those for other hosts. */
  pins(options: ServerOptions, of?: OtherHosts): Readonly<Record<string, Pin>>
  keepPins(options: ServerOptions, pins: Readonly<Record<string, Pin>>, of?: OtherHosts): void
  verdict(options: ServerOptions): Verdict | undefined
  keepVerdict(options: ServerOptions, verdict: Verdict | undefined): void
}

/** What can be done with a server that is back. */
export interface Reconnected {
  /** The server key, and the principal where each has his own. */
  readonly id: string
  readonly options: ServerOptions
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
  followTask(id: string): Promise<void>
  unfollowTask(id: string): Promise<void>
}

/** The part of a logger that rooms use. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** What the one host of a pipe can, and its session if it is legacy. */
export interface SoleHost {
  readonly capabilities: Declared
  readonly session: HostSession | undefined
  /** What it says it is; only where its server is told (a bridge). */
  readonly clientInfo?: unknown
  /** Its revision, under the same condition. */
  readonly revision?: LegacyRevision
  /** How many gateways stand between it and us. */
  readonly hops: number
}

/** Which callers an update of a resource may reach. */
export interface UpdateAudience {
  /** Callers on whose link it came: whether any of them watches that very URI is decided among them. Absent: all. */
  readonly onLink?: (caller: Caller) => boolean
  /** Those of them that learn of it on another link. Absent: none. */
  readonly isToldElsewhere?: (caller: Caller) => boolean
}

/** The callers of one principal that share a link to a legacy server. */
export interface SharedBy {
  readonly principal: string
  /** Legacy sessions are among them (`sharing: principal`); else only hosts without a session are. */
  readonly hasSessions: boolean
}

export interface DownstreamEnvironment {
  readonly sweeper: Sweeper
  readonly identity: Identity
  /** Our own name among gateways (T-35). */
  readonly instance: string
  readonly log: Log
  /** What servers wrote, for `trunkline logs`. */
  readonly logs: Pick<ServerLogs, 'logged'>
  readonly openers: Openers
  readonly memory: Memory
  readonly backoff: BackoffOptions
  readonly spare: SpareOptions
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** How many processes start at once (`limits.starts`). */
  readonly maxStarts: () => number
  /** Whether JSON text holds a credential of the configuration (T-14). */
  readonly hasCredential: (json: string) => boolean
  readonly retries: RetryBudget
  /** Ids of requests over HTTP+SSE, of all servers and their links. */
  readonly sseIds: RequestIds
  /** Where a process waits until it may be spawned. */
  readonly starts: Starts
  /** Settles before the first attempt may be made; `undefined`: nothing is waited for. */
  readonly startAfter: Promise<unknown> | undefined
  /** How long lists of legacy servers are believed. */
  readonly legacyTtlMs: number
  readonly legacyPollMs: number
  /** Age at which a list is read again for a host that asks for it (`cache.fresh`). */
  readonly freshMs: () => number
  /**
   * The one host of a stdio front, once it has said what it can. Then the main link serves its calls, too, and no second
   * process is started (BRIDGING 3.0 rule 4).
   */
  readonly soleHost: Promise<SoleHost> | undefined
  /** The credential of a server that needs one which changes; `principal`: whose, where each has his own. */
  readonly credential: (options: ServerOptions, principal: string | undefined) => Credential | undefined
  /** What a server lists to one principal alone. */
  readonly personalListed: (key: string, principal: string, inventory: Inventory) => void
  /** A subscribed resource changed; the URI is the server's own. */
  readonly updated: (id: string, uri: string, params: Payload, audience: UpdateAudience) => void
  /** What one session alone is listed by a server; `undefined`: the same as everybody. */
  readonly sessionListed: (key: string, session: HostSession, inventory: Inventory | undefined) => void
  /** Whether a legacy host is connected, which is told of changed lists. */
  readonly hasLegacyHosts: () => boolean
  /** A server says that a list changed. `owner`: of the link it was said on, unless that serves everybody. */
  readonly listAnnounced: (key: string, list: ChangedList, owner: LinkOwner | undefined) => void
  /** What the callers of one principal are listed by a server, because they share a link to it; `undefined`: the same as everybody. */
  readonly principalListed: (key: string, to: SharedBy, inventory: Inventory | undefined) => void
  /** A task changed, in the words of the server's era. `owner`: of the link it was said on, unless that serves everybody. */
  readonly taskChanged: (id: string, task: Payload, owner: LinkOwner | undefined) => void
  /** The whole fleet is being stopped, and the gateway with it. */
  readonly isEnding: () => boolean
  /** It takes the place of one of the same key, whose subscriptions it takes over. */
  readonly isSuccessor: boolean
  /** The faults that are injected into calls to a server; absent: none may be. */
  readonly faultsOf?: (server: { readonly key: string; readonly era: Era; readonly idleMs: number }) => Layer | undefined
  /** Is told of every link that was opened (traces). */
  readonly linkOpened?: (link: Link, options: ServerOptions) => void
  /** The main link is up again after a loss, or for the first time in the place of another. */
  readonly reconnected: (downstream: Reconnected) => void
}
