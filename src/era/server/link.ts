/** A connection to one downstream after its handshake, for both eras. */
import type { Answer, Call, Capabilities, Handler, Question } from '../../rpc/call.ts'
import type { OneCall } from '../../rpc/connection.ts'
import { memberOf } from '../../values/json-object.ts'
import type { Failure } from '../../wire/message/failure.ts'
import { CHANGED_LISTS } from '../../wire/protocol/methods.ts'
import type { ChangedList, LogLevel } from '../../wire/protocol/methods.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Era, LegacyRevision, Revision } from '../../wire/protocol/revisions.ts'

/** A server's `Implementation`, as parsed JSON. */
export type ServerInfo = Readonly<Record<string, unknown>>

/** Events of a link for its owner. */
export interface LinkEvents {
  listChanged(list: ChangedList): void
  /** A subscribed resource changed; `uri` is the server's own. */
  updated(uri: string, params: Payload): void
  /** A task changed; `task` in the form of the server's era. */
  taskChanged(task: Payload): void
  /** A log message. `call`: the call it belongs to, if that is certain. `isOfPeer`: see `Call.notify`. */
  message(params: Payload, call: Call | undefined, isOfPeer?: boolean): void
  /** A notification that no revision defines. `call`: the call it belongs to, if that is certain. */
  vendor(method: string, params: Payload | undefined, call: Call | undefined): void
  /** An elicitation in URL mode (2025-11-25) is complete; the id is the server's. */
  elicitationComplete(id: string, params: Payload): void
  /** The server asks for input. `call`: attributed by BRIDGING 3.0; `undefined`: no call can be meant. */
  ask(question: Question, call: Call | undefined): Promise<Answer>
  /** A violation of the protocol, or a message that could not be handled. `error`: an unexpected error of the gateway. */
  violation(reason: string, sample: string, error?: unknown): void
  /** A request of the link itself was refused, perhaps because the era of the server has changed. `era`: era of the link. */
  refused?(error: unknown, era: Era): void
  /** All calls on the link are of one host, in either era: the only host of a pipe. */
  readonly isOfOneHost?: true
  /** Backpressure of the only host of the link; absent for a link of several hosts. */
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
  readonly serverInfo: ServerInfo | undefined
  /** The gateways behind the server, nearest first; empty for a server that is not a gateway. */
  readonly gateways: readonly string[]
  /** Whether the server announces all changes of its lists now. */
  readonly tellsChanges: boolean
  readonly inFlight: number
  readonly handle: Handler
  /**
   * Sends a request of the gateway itself and returns the result. Throws `ServerError` or `Failure`. `declared`: capabilities for this
   * request in place of the gateway's; a legacy server has them from the handshake.
   */
  fetch(method: string, params: Readonly<Record<string, unknown>>, declared?: Declared): Promise<Payload>
  /** Updates `gateways`. */
  survey(): Promise<void>
  /** Subscribes to one resource; false: the server does not offer it. The caller counts subscribers. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
  /** Subscribes to a task's changes; false: the server does not send them. Legacy servers send them without a subscription. */
  followTask(id: string): Promise<boolean>
  unfollowTask(id: string): Promise<void>
  /** Sets the log level of a legacy server; never rejects. Modern requests carry the level. */
  setLevel(level: LogLevel): Promise<void>
  /** Whether the server answers within `limitMs`; absent for modern servers, which have no ping. */
  ping?(limitMs: number): Promise<boolean>
  /** Sends a notification of a host to the server. */
  notify(method: string, params: Payload | undefined): void
  /** Notifies a legacy server that the roots changed. */
  rootsChanged(): void
  readonly closed: Promise<Failure | undefined>
  close(): Promise<void>
  /** Ends change streams and closes the link once no call of a host is pending; resolves then. */
  retire(): Promise<void>
}

/** The lists that a server declares; `announced`: those of them whose changes it declares to announce. */
export const offeredLists = (
  capabilities: Readonly<Record<string, unknown>>,
): { all: ChangedList[]; announced: ChangedList[] } => {
  const all = CHANGED_LISTS.filter((list) => capabilities[list] !== undefined)
  return { all, announced: all.filter((list) => memberOf(capabilities[list], 'listChanged') === true) }
}

/** The gateway's `Implementation` for servers and hosts. */
export interface Identity {
  readonly name: string
  readonly title: string
  readonly version: string
}

/** The client as described to a server: the gateway, or at a bridge the host. */
export interface ClientDescription {
  /** `clientInfo` */
  readonly identity: unknown
  /** The gateway, if `identity` is that of a host. */
  readonly via?: Identity | undefined
  /** The revision to request from a legacy server; absent: the latest. */
  readonly revision?: LegacyRevision | undefined
}

/** Declared capabilities: those of the host of the link, or those of the main link. */
export type Declared = Capabilities
