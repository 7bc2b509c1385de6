/** What every way in needs: the gateway behind it, who we are, and where to write down what went wrong. */
import type { SignIns } from '../auth/oauth/sign-ins.ts'
import type { SubjectTokens } from '../auth/subject-tokens.ts'
import type { Introductions } from '../era/host/introductions.ts'
import type { Introduced } from '../era/host/modern-host.ts'
import type { HostSession } from '../rpc/call.ts'
import type { Observer } from '../observe/observer.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { Denial } from '../rpc/record.ts'
import type { CommandPrinter } from '../operator-command.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import type { BodyPool } from '../transport/body-pool.ts'
import type { Core } from './core.ts'
import type { Admission } from './limits/admission.ts'
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
  /** Watches every call from where it comes in; `undefined`: nothing is captured or counted. */
  readonly observer: Observer | undefined
  /** Called for every request that is refused before it is a call; `undefined`: no audit log. */
  readonly denied: ((denial: Denial) => void) | undefined
  /** Is told of every legacy session (traces); `undefined`: none are kept. */
  readonly sessionOpened: ((session: Pick<HostSession, 'onEnd'> & { readonly revision: Revision }) => void) | undefined
  /** JSON text without the secrets of the configuration: what errors pass on their way to hosts (T-14). */
  readonly hideJson: (json: string) => string
  /** A command of ours, as errors name it to operators. */
  readonly command: CommandPrinter
  /** A number for each host request: ties log lines and errors together. */
  readonly nextRef: () => number
}
