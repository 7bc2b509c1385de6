/** The interface of the routing core towards the listeners. */
import type { Identity } from '../auth/identity.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ServerCard } from '../catalog/server-card.ts'
import type { Offers } from '../era/host/modern-host.ts'
import type { Caller, ChangeListener, EndpointPath, Handler, Scope } from '../rpc/call.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'

/** Receives notifications about resources and tasks. `params`: of the notification, with exposed names. */
export interface Subscriber {
  updated(params: Payload): void
  /** Absent: the subscriber does not receive `notifications/tasks`. */
  task?(params: Payload): void
}

export interface Core {
  readonly handle: Handler
  /** Returns the servers of this caller's default toolset for the status page; sign-in states are those of this caller. */
  servers(identity: Identity): Promise<readonly ServerCard[]>
  /** Resolves with the sign-in URL at a server; `undefined`: the caller does not see the server, or it needs no sign-in. */
  signInAt(identity: Identity, key: string): Promise<string | undefined>
  /** Returns the scope of this caller at a path; `undefined`: the path is not an endpoint for it. */
  scopeFor(identity: Identity, path: EndpointPath): Scope | undefined
  /** Returns the instructions for hosts; at a bridge those of the server, unchanged. */
  instructions(caller: Caller): string | undefined
  /** Returns the inventory of a bridge's server; `undefined`: not known yet, or the scope is not a bridge. */
  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined
  /**
   * Resolves when `bridged` is known or the server has failed, after `timeouts.wait` at most. The legacy side of a server of both eras is
   * awaited for `timeouts.list_budget` at most. `undefined`: nothing to wait for. Never rejects.
   */
  introduced(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<unknown> | undefined
  /** Resolves when all servers of the scope are known, or after `timeouts.handshake_budget`; `undefined`: all are known. */
  greeted(caller: Pick<Caller, 'scope' | 'principal'>): Promise<unknown> | undefined
  /** Whether a server of the scope has not been reached yet, so that answers about the whole scope must not be cached. */
  isStarting(scope: Scope): boolean
  /** Returns the headers that a call of this tool must mirror. */
  paramHeaders(caller: Caller, tool: string): readonly ParamHeader[]
  /** Notifies `listener` of changed lists of this caller's view, once the new list is served; in place of an earlier caller. */
  watchLists(caller: Caller, listener: ChangeListener): void
  unwatchLists(listener: ChangeListener): void
  /** Adds a subscription. False: no server offers it. Rejects if the server is not reached; it is then sent after a reconnect. */
  subscribe(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean>
  /** Whether the URI's server declares subscriptions; `undefined`: not known until it is asked (B287). */
  maySubscribe(caller: Caller, uri: string): boolean | undefined
  /** Resources per subscriber (`limits.subscriptions`). */
  readonly maxSubscriptions: number
  /** The ids of the gateways that calls pass through, this one first (T-35). */
  readonly gateways: readonly string[]
  /** Returns the optional capabilities to declare for a scope. */
  offers(scope: Scope): Offers
  /** Whether policy rules read `Caller.facts`. */
  readonly wantsFacts: boolean
  /** Whether tasks are declared to hosts that support them. */
  readonly offersTasks: boolean
  /** Returns those of the exposed task ids that belong to this caller. */
  ownTasks(caller: Caller, ids: readonly string[]): string[]
  /** Passes the server's notifications about this task to the subscriber. False: the server does not send them. Never rejects. */
  followTask(subscriber: Subscriber, caller: Caller, id: string): Promise<boolean>
  /** Passes a host's notification at a bridge to the server, over the link of the host's session. */
  notified(caller: Caller, method: string, params: Payload | undefined): void
  /** Returns the replica of the parked call in a `requestState`; `undefined`: it names no replica, or no call. */
  homeOf(requestState: string): string | undefined
  /** Removes one subscription, or all of a subscriber. */
  unsubscribe(subscriber: Subscriber, uri?: string): void
  rootsChanged(caller: Caller): void
  /** Sends a legacy host's new log level to servers with a link; other servers get it when their link is opened. */
  levelChanged(caller: Caller, level: LogLevel): void
}
