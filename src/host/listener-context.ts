/** The dependencies of every listener: the routing core, limits and logs. */
import type { Log } from '../values/log.ts'
import type { Seal } from '../auth/seal.ts'
import type { SignIns } from '../auth/outbound/sign-ins.ts'
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
import type { EndpointInfos } from './endpoint-info.ts'
import type { HostOptions } from './options.ts'
import type { Overload } from './limits/overload.ts'
import type { SessionIds } from './session/session-ids.ts'

/** How to connect one kind of host, as the status page shows it. Plain texts, not HTML. */
export interface ConnectGuide {
  readonly label: string
  readonly file: string
  readonly text: string
  readonly afterwards: string
  readonly link?: string
}

export interface ListenerContext {
  readonly core: Core
  readonly endpointInfos: EndpointInfos
  readonly options: HostOptions
  readonly log: Log
  readonly capabilityCache: CapabilityCache<Introduced>
  /** Memory for large replies of servers. */
  readonly bodies: BodyPool
  /** Callers' access tokens, for servers with token exchange. */
  readonly subjects: SubjectTokens
  /** Ids of HTTP sessions, which outlive the process. */
  readonly sessionIds: SessionIds
  /** The store that replicas share; `undefined`: none is configured. */
  readonly store: Store | undefined
  /** Routing to other replicas; `undefined`: none are configured. */
  readonly replicas: Replicas | undefined
  /** Pending sign-ins. */
  readonly signIns: SignIns
  /** Seals client ids and requests of the registration proxy. */
  readonly seal: Seal
  readonly overload: Pick<Overload, 'shedding' | 'reason' | 'limit'>
  /** File descriptor limit of the process; `undefined`: not known. */
  readonly maxDescriptors: number | undefined
  readonly admission: Admission
  /** Counts how often each limit was reached. */
  readonly limits: LimitCounts
  readonly unexpected: UnexpectedErrors
  /** Records calls; `undefined`: nothing is captured or counted. */
  readonly observer: Observer | undefined
  /** Called for every request that is refused before it becomes a call; `undefined`: no audit log. */
  readonly denied: ((denial: Denial) => void) | undefined
  /** Called for every new legacy session; `undefined`: no traces are configured. */
  readonly sessionOpened: ((session: Pick<HostSession, 'onEnd'> & { readonly revision: Revision }) => void) | undefined
  /** Called for every host that connects or lists tools, for `trunkline connect`; `undefined`: no state folder. */
  readonly sighted: ((host: Sighted, listing: Caller | undefined) => void) | undefined
  /** Resolves with instructions for connecting hosts to a URL; `takesToken`: hosts send a token from their environment. */
  readonly guides: (url: string, takesToken: boolean) => Promise<readonly ConnectGuide[]>
  /** Removes the configuration's secrets from JSON text, for errors to hosts (T-14). */
  readonly hideJson: (json: string) => string
  /** Formats a Trunkline command for error texts. */
  readonly command: CommandPrinter
  /** Returns a new reference number: log lines and errors of one host request share it. */
  readonly nextRef: () => number
}
