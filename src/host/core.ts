/** The routing core as the listeners see it. */
import type { Observable } from 'rxjs'
import type { Identity } from '../auth/identity.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { Offers } from '../era/host/modern-host.ts'
import type { Caller, EndpointPath, Handler, Scope } from '../rpc/call.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** Receives changes of resources and tasks; `params` are those of the notification, exposed. */
export interface Subscriber {
  updated(params: Payload): void
  /** Present where the subscriber follows tasks (`notifications/tasks`). */
  task?(params: Payload): void
}

/** The routing core as the listeners see it. */
export interface Core {
  readonly handle: Handler
  /** What this caller sees at a path; `undefined`: for it that is no endpoint. */
  scopeFor(identity: Identity, path: EndpointPath): Scope | undefined
  /** What hosts are told of the use of what they are listed; at a bridge what the server says, as it says it. */
  instructions(caller: Caller): string | undefined
  /** What is known of the server of a bridge; `undefined`: nothing yet, or the scope is no bridge. */
  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined
  /** The same once it is known, or cannot be; waits as long as a call would (`timeouts.wait`). Never rejects. */
  bridgedLater(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<Inventory | undefined>
  /**
   * Waits for servers of the scope of which nothing is known yet, at most `timeouts.handshake_budget`; `undefined`: there are none.
   * Never rejects.
   */
  greeted(caller: Pick<Caller, 'scope' | 'principal'>): Promise<unknown> | undefined
  /** Some server of the scope has not been reached yet: answers about the whole are not to be kept. */
  isStarting(scope: Scope): boolean
  /** Headers that a call of this tool must mirror. */
  paramHeaders(caller: Caller, tool: string): readonly ParamHeader[]
  /** The lists of this caller's view that have changed, after the change is in force. */
  changes(caller: Caller): Observable<ChangedList>
  /**
   * Adds a subscription; false: the owner does not offer it, or no server owns the URI. Rejects if the owner cannot be asked now;
   * it is asked when it is back.
   */
  subscribe(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean>
  /** Whether the owner of the URI offers subscriptions, as far as is known now; `undefined`: only asking tells (B287). */
  maySubscribe(caller: Caller, uri: string): boolean | undefined
  /** How many resources one subscriber may watch (`limits.subscriptions`). */
  readonly maxSubscriptions: number
  /** The gateways that calls are led through, this one first (T-35). */
  readonly gateways: readonly string[]
  /** What this part of the catalog makes worth declaring to hosts. */
  offers(scope: Scope): Offers
  /** Whether hosts that can are told of tasks at all. */
  readonly offersTasks: boolean
  /** Those of the exposed task ids that are this caller's. */
  ownTasks(caller: Caller, ids: readonly string[]): string[]
  /** Tells the subscriber of every change of its task, as far as the server announces them. */
  followTask(subscriber: Subscriber, caller: Caller, id: string): void
  /** Passes a notification of a host at a bridge to its server, over the link of its session. */
  notified(caller: Caller, method: string, params: Payload | undefined): void
  /** Takes back one subscription, or all of a subscriber. */
  unsubscribe(subscriber: Subscriber, uri?: string): void
  rootsChanged(caller: Caller): void
  /** A legacy host chose its log level: servers it has a link to hear of it now, others when it has one. */
  levelChanged(caller: Caller, level: LogLevel): void
}
