/** The context of every listener: the routing core, identities, limits and logs. */
import type { Seal } from '../auth/seal.ts'
import type { SignIns } from '../auth/oauth/sign-ins.ts'
import type { SubjectTokens } from '../auth/subject-tokens.ts'
import type { CapabilityCache } from '../era/host/capability-cache.ts'
import type { Introduced } from '../era/host/modern-host.ts'
import type { Replicas } from '../replicas/replicas.ts'
import type { Caller, HostSession } from '../rpc/call.ts'
import type { Observer } from '../observe/observer.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { UnexpectedErrors } from '../rpc/unexpected-errors.ts'
import type { Denial } from '../rpc/record.ts'
import type { Store } from '../store/store.ts'
import type { CommandPrinter } from '../operator-command.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import type { BodyPool } from '../transport/body-pool.ts'
import type { Core } from './core.ts'
import type { Admission } from './limits/admission.ts'
import type { Sighted } from './host-sightings.ts'
import type { Identities } from './identities.ts'
import type { HostOptions } from './options.ts'
import type { Overload } from './limits/overload.ts'
import type { SessionIds } from './session/session-ids.ts'

export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** One host, as a page for people shows it. All texts are plain. */
export interface ConnectGuide {
  readonly label: string
  readonly file: string
  readonly text: string
  readonly afterwards: string
  readonly link?: string
}

export interface ListenerContext {
  readonly core: Core
  /** `serverInfo` of the endpoints. */
  readonly identities: Identities
  readonly options: HostOptions
  readonly log: Log
  /** Capability cache of modern hosts. */
  readonly capabilityCache: CapabilityCache<Introduced>
  /** Memory of big replies of servers. */
  readonly bodies: BodyPool
  /** Tokens of callers, for servers with token exchange. */
  readonly subjects: SubjectTokens
  /** Ids of sessions over HTTP, which outlive the process. */
  readonly sessionIds: SessionIds
  /** What replicas share; `undefined`: nothing. */
  readonly store: Store | undefined
  /** What lives at other replicas; `undefined`: there are none. */
  readonly replicas: Replicas | undefined
  /** Sign-ins under way. */
  readonly signIns: SignIns
  /** What hosts hand back unread: clients and requests of the registration proxy. */
  readonly seal: Seal
  /** Overload of the process. */
  readonly overload: Pick<Overload, 'shedding' | 'reason' | 'limit'>
  /** How many file descriptors the process may have; `undefined`: not known. */
  readonly maxDescriptors: number | undefined
  /** Admission of new calls and sessions. */
  readonly admission: Admission
  /** How often each limit was reached. */
  readonly limits: LimitCounts
  /** Logs what no code expects. */
  readonly unexpected: UnexpectedErrors
  /** Watches every call from where it comes in; `undefined`: nothing is captured or counted. */
  readonly observer: Observer | undefined
  /** Called for every request that is refused before it is a call; `undefined`: no audit log. */
  readonly denied: ((denial: Denial) => void) | undefined
  /** Is told of every legacy session (traces); `undefined`: none are kept. */
  readonly sessionOpened: ((session: Pick<HostSession, 'onEnd'> & { readonly revision: Revision }) => void) | undefined
  /** Is told of every host that connects or lists tools (`trunkline connect` waits for it); `undefined`: there is no state folder. */
  readonly sighted: ((host: Sighted, listing: Caller | undefined) => void) | undefined
  /** How hosts are connected to a URL, for people; `takesToken`: with one of their environment. */
  readonly guides: (url: string, takesToken: boolean) => Promise<readonly ConnectGuide[]>
  /** Hides the secrets of the configuration in JSON text, for errors to hosts (T-14). */
  readonly hideJson: (json: string) => string
  /** A command of ours, as errors name it to operators. */
  readonly command: CommandPrinter
  /** A number for each host request: ties log lines and errors together. */
  readonly nextRef: () => number
}
