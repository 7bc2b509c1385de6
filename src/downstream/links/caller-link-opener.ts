/** Opens the links of callers to one server. Starts of processes are paced. A link is returned when its session watches are set. */
import type { LinkEventHandlers } from '../calls/link-events.ts'
import type { SessionWatches } from '../calls/session-watches.ts'
import type { MainLink } from '../health/main-link.ts'
import type { Link, LinkEvents } from '../../era/server/link.ts'
import type { LinkOwner } from '../link-owner.ts'
import type { LinkReports } from '../link-reports.ts'
import type { ServerOptions } from '../options.ts'
import { asError } from '../../values/as-error.ts'
import { ServerError } from '../../rpc/call.ts'
import type { Log } from '../../values/log.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import type { LinkStarts } from '../pacing/link-starts.ts'
import type { Dialer } from './dialer.ts'

/** A server with a modern main link refused `initialize`. */
export class ModernOnly extends Error {}

/** A server at a URL refused a further connection while its main link is open: it serves one client only. */
export class MainOnly extends Error {}

/** Failures by which a server refuses a connection. */
const REFUSALS: ReadonlySet<FailureKind> = new Set(['bad_response', 'downstream_error', 'not_found'])
const isRefusal = (error: unknown): boolean =>
  error instanceof ServerError || (error instanceof Failure && REFUSALS.has(error.kind))

export interface CallerLinkSource {
  readonly options: () => ServerOptions
  readonly dialer: Dialer
  readonly main: MainLink
  readonly handlers: LinkEventHandlers
  readonly starts: LinkStarts
  readonly watches: SessionWatches
  readonly reports: LinkReports
  readonly log: Pick<Log, 'warn'>
}

/** The server may be busy as well: it is known only that it has one connection and refuses another. */
const REMEDY =
  'the server refuses a further connection while its first one is open; if it serves one client only, set lifecycle.sharing: shared for it'
const REMEDY_FOR_HOSTS = 'if it serves one client only, its operator can set lifecycle.sharing: shared'
const statusOf = ({ facts: { status } }: Failure): string => (status === undefined ? '' : ` (HTTP ${status})`)

/** The returned function rejects with `Failure`, with `ModernOnly`, or where all callers share one connection with `MainOnly`. */
export const callerLinkOpener = (source: CallerLinkSource) => {
  const { options, dialer, main, handlers, starts, watches, reports, log } = source
  /** Whether the operator knows that the server refuses further connections. */
  let isTold = false
  const refused = (error: unknown, owner: LinkOwner): unknown => {
    const { key, url, displayName } = options()
    if (!isRefusal(error) || url === undefined || main.current?.era !== 'legacy') return error
    if (owner.isolation === 'shared') return new MainOnly('the server serves one client only', { cause: error })
    if (!isTold) log.warn({ server: key, error: asError(error).message }, REMEDY)
    isTold = true
    if (!(error instanceof Failure)) return error
    const told = `${displayName} refuses a further connection${statusOf(error)}; ${REMEDY_FOR_HOSTS}`
    return new Failure(error.kind, error.message, { ...error.facts, told }, error)
  }
  const openNow = async (owner: LinkOwner, events: LinkEvents): Promise<Link> => {
    if (main.current?.era !== 'modern')
      return dialer.dial(owner, events).catch((error: unknown) => {
        throw refused(error, owner)
      })
    const link = await dialer.dialLegacy(owner, events)
    if (link === undefined) throw new ModernOnly()
    reports.send({ type: 'legacy-opened' })
    return link
  }
  return async (owner: LinkOwner): Promise<Link> => {
    const open = (): Promise<Link> => openNow(owner, handlers.onLinkOf(owner))
    const { url, timeouts } = options()
    // A process that ends soon is restarted with a delay. Connections to a URL need no delay.
    const link = await (url === undefined ? starts.open(owner.key, timeouts.connectTimeoutMs, open) : open())
    isTold = false
    reports.send({ type: 'opened', owner })
    await watches.opened({ owner, link })
    return link
  }
}
