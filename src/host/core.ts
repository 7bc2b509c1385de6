/** The routing core as the listeners see it. */
import type { Identity } from '../auth/identity.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ServerCard } from '../catalog/server-card.ts'
import type { Offers } from '../era/host/modern-host.ts'
import type { Caller, ChangeListener, EndpointPath, Handler, Scope } from '../rpc/call.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'

/** Receives changes of resources and tasks; `params` are those of the notification, exposed. */
export interface Subscriber {
  updated(params: Payload): void
  /** Present where the subscriber follows tasks (`notifications/tasks`). */
  task?(params: Payload): void
}

/** The routing core as the listeners see it. */
export interface Core {
  readonly handle: Handler
  /** The servers that this caller sees where it names no toolset, for people; those of callers who sign in for themselves as they are for it. */
  servers(identity: Identity): Promise<readonly ServerCard[]>
  /** Where it signs in at a server; `undefined`: it sees no such server, or there is nothing to sign in to. */
  signInAt(identity: Identity, key: string): Promise<string | undefined>
  /** The scope of this caller at a path; `undefined`: the path is no endpoint for it. */
  scopeFor(identity: Identity, path: EndpointPath): Scope | undefined
  /** The instructions for hosts; at a bridge those of the server, unchanged. */
  instructions(caller: Caller): string | undefined
  /** What is known of the server of a bridge; `undefined`: nothing yet, or the scope is no bridge. */
  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined
  /**
   * Settles once that is known, or the server has failed; waits as long as a call (`timeouts.wait`), and for what a server of both eras
   * says to legacy hosts as long as a list (`timeouts.list_budget`). `undefined`: nothing to wait for. Never rejects.
   */
  introduced(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<unknown> | undefined
  /**
   * Waits for servers of the scope of which nothing is known yet, at most `timeouts.handshake_budget`; `undefined`: there are none.
   * Never rejects.
   */
  greeted(caller: Pick<Caller, 'scope' | 'principal'>): Promise<unknown> | undefined
  /** A server of the scope has not been reached yet: answers about the whole scope must not be cached. */
  isStarting(scope: Scope): boolean
  /** Headers that a call of this tool must mirror. */
  paramHeaders(caller: Caller, tool: string): readonly ParamHeader[]
  /** Notifies of changed lists of this caller's view, after the change is in force. Returns a function that stops it. */
  changes(caller: Caller, listener: ChangeListener): () => void
  /**
   * Adds a subscription; false: the owner does not offer it, or no server owns the URI. Rejects if the owner cannot be asked now;
   * it is asked when it is back.
   */
  subscribe(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean>
  /** Whether the owner of the URI offers subscriptions, as far as is known now; `undefined`: only asking tells (B287). */
  maySubscribe(caller: Caller, uri: string): boolean | undefined
  /** How many resources one subscriber may watch (`limits.subscriptions`). */
  readonly maxSubscriptions: number
  /** The gateways that calls pass through, this one first (T-35). */
  readonly gateways: readonly string[]
  /** The optional capabilities to declare for this part of the catalog. */
  offers(scope: Scope): Offers
  /** Whether callers bring what rules of a policy read of them (`Caller.facts`). */
  readonly wantsFacts: boolean
  /** Whether tasks are declared to hosts that support them. */
  readonly offersTasks: boolean
  /** Those of the exposed task ids that are this caller's. */
  ownTasks(caller: Caller, ids: readonly string[]): string[]
  /** Notifies the subscriber of changes of its task that the server announces. */
  followTask(subscriber: Subscriber, caller: Caller, id: string): void
  /** Passes a notification of a host at a bridge to its server, over the link of its session. */
  notified(caller: Caller, method: string, params: Payload | undefined): void
  /** The replica that holds the call of this `requestState`; `undefined`: none, or it holds no call. */
  homeOf(requestState: string): string | undefined
  /** Removes one subscription, or all of a subscriber. */
  unsubscribe(subscriber: Subscriber, uri?: string): void
  rootsChanged(caller: Caller): void
  /** A legacy host set its log level: servers with a link get it now, others when their link is opened. */
  levelChanged(caller: Caller, level: LogLevel): void
}
