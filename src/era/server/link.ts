/** A connection to one downstream after its handshake, for both eras. */
import type { Answer, Call, Capabilities, Handler, Question } from '../../rpc/call.ts'
import type { OneCall } from '../../rpc/connection.ts'
import { jsonObject, memberOf } from '../../values/json-object.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Era, LegacyRevision, Revision } from '../../wire/protocol/revisions.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** A server's `Implementation`, as parsed JSON. */
export type ServerInfo = Readonly<Record<string, unknown>>

/** A member of a handshake that must be an object to mean anything. */
export const serverInfoOf = (value: unknown): ServerInfo | undefined => jsonObject(value)

/** Events of a link for its owner. */
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
  /** An elicitation in URL mode (2025-11-25) is complete; the id is the server's. */
  elicitationComplete(id: string, params: Payload): void
  /** The server asks for input. `call`: attributed as BRIDGING 3.0 says, `undefined` if that was impossible. */
  ask(question: Question, call: Call | undefined): Promise<Answer>
  /** A violation of the protocol, or a message that could not be handled; `error`: an unexpected error of the gateway. */
  violation(reason: string, sample: string, error?: unknown): void
  /** A request of the link itself was refused, perhaps because the era of the server has changed; `era`: of the link. */
  refused?(error: unknown, era: Era): void
  /** Backpressure of the one host of the link; absent: it serves several. */
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
  /** The server's `serverInfo`, as parsed JSON; `undefined`: it has none. */
  readonly serverInfo: ServerInfo | undefined
  /** The gateways behind the server, nearest first; none: the server is no gateway. */
  readonly gateways: readonly string[]
  /** Whether the server announces all changes of its lists now. */
  readonly tellsChanges: boolean
  readonly inFlight: number
  readonly handle: Handler
  /**
   * Sends a request of the gateway itself and returns the result. Throws `ServerError` or `Failure`. `declared`: replaces the
   * gateway's capabilities in this request; ignored by legacy servers, which have them from the handshake.
   */
  fetch(method: string, params: Readonly<Record<string, unknown>>, declared?: Declared): Promise<Payload>
  /** Asks a gateway again for the gateways behind it. */
  survey(): Promise<void>
  /** Subscribes to one resource; false: the server does not offer it. The caller counts subscribers. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
  /** Subscribes to a task's changes; legacy servers send them unasked. */
  followTask(id: string): Promise<void>
  unfollowTask(id: string): Promise<void>
  /** Legacy: sets the log level of the server; never rejects. Modern requests carry the level. */
  setLevel(level: LogLevel): Promise<void>
  /** Legacy: whether the server answers within `limitMs`. */
  ping?(limitMs: number): Promise<boolean>
  /** Sends a notification of a host to the server. */
  notify(method: string, params: Payload | undefined): void
  /** Notifies a legacy server of changed roots. */
  rootsChanged(): void
  readonly closed: Promise<Failure | undefined>
  close(): Promise<void>
  /** Ends change streams, and closes once no call of a host is under way; resolves then. */
  retire(): Promise<void>
}

const LISTS: readonly ChangedList[] = ['tools', 'prompts', 'resources']

/** The kinds of list that a server offers; `announced`: of those, whose changes it says it announces. */
export const offeredLists = (
  capabilities: Readonly<Record<string, unknown>>,
): { all: ChangedList[]; announced: ChangedList[] } => {
  const all = LISTS.filter((list) => capabilities[list] !== undefined)
  return { all, announced: all.filter((list) => memberOf(capabilities[list], 'listChanged') === true) }
}

/** The gateway's `Implementation` for servers and hosts. */
export interface Identity {
  readonly name: string
  readonly title: string
  readonly version: string
}

/** The `clientInfo` sent to a server: the gateway's, or the host's at a bridge, with the gateway named beside it. */
export interface Introducing {
  readonly identity: unknown
  readonly via?: Identity | undefined
  /** The revision to request from a legacy server; absent: the latest. */
  readonly revision?: LegacyRevision | undefined
}

/** Declared capabilities: of the host that the link serves, or of the main link. */
export type Declared = Capabilities
