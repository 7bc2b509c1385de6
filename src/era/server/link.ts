/** A connection to one downstream after its handshake, whatever its era. Calls go in, outcomes come out. */
import type { Answer, Call, Capabilities, Handler, Question } from '../../rpc/call.ts'
import type { OneCall } from '../../rpc/connection.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Era, LegacyRevision, Revision } from '../../wire/protocol/revisions.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** A server's `Implementation`, as parsed JSON. */
export type ServerInfo = Readonly<Record<string, unknown>>

/** A member of a handshake that must be an object to mean anything. */
export const serverInfoOf = (value: unknown): ServerInfo | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ServerInfo) : undefined

/** What a link tells its owner. */
export interface LinkEvents {
  listChanged(list: ChangedList): void
  /** A subscribed resource changed; `uri` is the server's own. */
  updated(uri: string, params: Payload): void
  /** A task changed: the task as the server says it, in the words of its era. */
  taskChanged(task: Payload): void
  /** A log message; `call` is the one it belongs to, where that is certain. `isOfPeer`: as `Call.notify` has it. */
  message(params: Payload, call: Call | undefined, isOfPeer?: boolean): void
  /** A notification that no revision defines; `call`: the one it belongs to, where that is certain. */
  vendor(method: string, params: Payload | undefined, call: Call | undefined): void
  /** What a person was sent away to do (URL mode of 2025-11-25) is done; the id is the server's. */
  elicitationComplete(id: string, params: Payload): void
  /** The server asks for input. `call`: attributed as BRIDGING 3.0 says, `undefined` if that was impossible. */
  ask(question: Question, call: Call | undefined): Promise<Answer>
  /** A violation of the protocol, or a message that could not be handled; `error`: an unexpected error of the gateway. */
  violation(reason: string, sample: string, error?: unknown): void
  /** A request of the link's own was refused as servers of another era refuse it, it may be. */
  refused?(error: unknown): void
  /** Whether the one host that the link speaks to takes nothing; absent: it speaks to several. */
  isHostStalled?(on: OneCall): boolean
}

/** Time limits of requests on a link. */
export interface LinkTimeouts {
  readonly idleMs: number
  readonly totalMs: number
  readonly startMs: number
}

export interface Link {
  readonly era: Era
  readonly revision: Revision
  readonly transport: 'pipe' | 'http' | 'sse'
  /** The server's capabilities as parsed JSON. */
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  /** What the server says it is, as parsed JSON; `undefined`: it does not say. */
  readonly serverInfo: ServerInfo | undefined
  /** The gateways it leads through, nearest first; none: the server is no gateway. */
  readonly gateways: readonly string[]
  /** Whether we hear of every change of the lists it offers, as things stand. */
  readonly tellsChanges: boolean
  readonly inFlight: number
  readonly handle: Handler
  /**
   * A request of the gateway's own; the result. Throws `ServerError` or `Failure`. `declared`: in place of what the gateway declares
   * otherwise; a legacy server knows from its handshake and is not told again.
   */
  fetch(method: string, params: Readonly<Record<string, unknown>>, declared?: Declared): Promise<Payload>
  /** Asks a gateway again which others it leads through. */
  survey(): Promise<void>
  /** Watches one resource; false: the server does not offer it. Counting is the caller's. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
  /** Asks to be told of a task's changes; legacy servers tell by themselves. */
  followTask(id: string): Promise<void>
  unfollowTask(id: string): Promise<void>
  /** Legacy: the least severe level the server should send; never rejects. Modern servers are told per request. */
  setLevel(level: LogLevel): Promise<void>
  /** Legacy: whether the server answers within `limitMs`. */
  ping?(limitMs: number): Promise<boolean>
  /** Passes on what a host says to the server alone. */
  notify(method: string, params: Payload | undefined): void
  /** The host's roots changed; only legacy servers hear of it. */
  rootsChanged(): void
  readonly closed: Promise<Failure | undefined>
  close(): Promise<void>
  /** Listens for no more changes, and closes once no call of a host is under way; resolves then. */
  retire(): Promise<void>
}

const LISTS: readonly ChangedList[] = ['tools', 'prompts', 'resources']

/** The kinds of list that a server offers; `announced`: of those, whose changes it says it announces. */
export const offeredLists = (
  capabilities: Readonly<Record<string, unknown>>,
): { all: ChangedList[]; announced: ChangedList[] } => {
  const all = LISTS.filter((list) => capabilities[list] !== undefined)
  return { all, announced: all.filter((list) => (capabilities[list] as { listChanged?: unknown } | null)?.listChanged === true) }
}

/** Who we say we are, to servers and hosts. */
export interface Identity {
  readonly name: string
  readonly title: string
  readonly version: string
}

/** Who a server is told it talks to: us, or the host at a bridge, whose gateway is then named beside it. */
export interface Introducing {
  readonly identity: unknown
  readonly via?: Identity | undefined
  /** The revision to ask a legacy server for; absent: the latest. */
  readonly revision?: LegacyRevision | undefined
}

/** What declaring needs: capabilities of the host the link serves, or of the catalogue link. */
export type Declared = Capabilities
