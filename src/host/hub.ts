/** What every way in needs: the gateway behind it, who we are, and where to write down what went wrong. */
import type { Observable } from 'rxjs'
import type { Identity } from '../auth/identity.ts'
import type { SignIns } from '../auth/oauth/sign-ins.ts'
import type { SubjectTokens } from '../auth/subject-tokens.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { Introductions } from '../era/host/introductions.ts'
import type { Introduced, Offers } from '../era/host/modern-host.ts'
import type { Caller, EndpointPath, Handler, Scope } from '../rpc/call.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { Denial } from '../rpc/record.ts'
import type { CommandPrinter } from '../operator-command.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Payload } from '../wire/message/payload.ts'
import type { BodyPool } from '../transport/body-pool.ts'
import type { Admission } from './limits/admission.ts'
import type { Identities } from './identities.ts'
import type { HostOptions } from './options.ts'
import type { Overload } from './limits/overload.ts'
import type { SessionIds } from './session/session-ids.ts'

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** Somebody who is told when a resource or a task changes; `params` are those of the notification, exposed. */
export interface Subscriber {
  updated(params: Payload): void
  /** Whoever follows tasks (`notifications/tasks`). */
  task?(params: Payload): void
}

/** The routing core as the listeners see it. */
export interface Core {
  readonly handle: Handler
  /** What this caller sees at a path; `undefined`: for it that is no endpoint. */
  scopeFor(identity: Identity, path: EndpointPath): Scope | undefined
  instructions(scope: Scope): string | undefined
  /** What is known of the server of a bridge; `undefined`: nothing yet, or the scope is no bridge. */
  bridged(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Inventory | undefined
  /** The same once it is known, or cannot be; waits as long as a call would (`timeouts.wait`). Never rejects. */
  bridgedLater(caller: Pick<Caller, 'scope' | 'principal' | 'session'>): Promise<Inventory | undefined>
  /** Some server of the scope has not been reached yet: answers about the whole are not to be kept. */
  isStarting(scope: Scope): boolean
  /** Headers that a call of this tool must mirror. */
  paramHeaders(caller: Caller, tool: string): readonly ParamHeader[]
  /** The lists of this caller's view that have changed, after the change is in force. */
  changes(caller: Caller): Observable<ChangedList>
  /**
   * Counts a subscription in; false: the owner does not offer it, or nobody owns the URI. Rejects if the owner cannot be asked now;
   * it is when it is back.
   */
  subscribe(subscriber: Subscriber, caller: Caller, uri: string): Promise<boolean>
  /** Whether the owner of the URI offers subscriptions, as far as is known now. */
  maySubscribe(caller: Caller, uri: string): boolean
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

export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface Hub {
  readonly core: Core
  /** What we call ourselves. */
  readonly identities: Identities
  readonly options: HostOptions
  readonly log: Log
  /** What modern hosts have said of themselves. */
  readonly introductions: Introductions<Introduced>
  /** Where big replies of servers lie until they are written. */
  readonly bodies: BodyPool
  /** What callers came with, for servers whose credential is made of it. */
  readonly subjects: SubjectTokens
  /** Ids of sessions over HTTP, which outlive the process. */
  readonly sessionIds: SessionIds
  /** The sign-ins that people were asked for. */
  readonly signIns: SignIns
  /** Whether we are near our own limits. */
  readonly overload: Pick<Overload, 'shedding' | 'reason' | 'limit'>
  /** How many file descriptors the process may have; `undefined`: not known. */
  readonly maxDescriptors: number | undefined
  /** Whether new work is taken. */
  readonly admission: Admission
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** Hears of every request that is turned away before it is a call (audit); `undefined`: nobody keeps a record. */
  readonly denied: ((denial: Denial) => void) | undefined
  /** JSON text without the secrets of the configuration: what errors pass on their way to hosts (T-14). */
  readonly hideJson: (json: string) => string
  /** A command of ours, as errors name it to operators. */
  readonly command: CommandPrinter
  /** A number for each host request: ties log lines and errors together. */
  readonly nextRef: () => number
}
