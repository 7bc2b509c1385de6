/** Opens the links of callers to one server. Starts of processes are paced. A link is returned when its session watches are set. */
import type { LinkEventHandlers } from '../calls/link-events.ts'
import type { SessionWatches } from '../calls/session-watches.ts'
import type { MainLink } from '../health/main-link.ts'
import type { Link, LinkEvents } from '../../era/server/link.ts'
import type { LinkOwner } from '../link-owner.ts'
import type { LinkReports } from '../link-reports.ts'
import type { ServerOptions } from '../options.ts'
import type { LinkStarts } from '../pacing/link-starts.ts'
import type { Dialer } from './dialer.ts'

/** A server with a modern main link refused `initialize`. */
export class ModernOnly extends Error {}

export interface CallerLinkSource {
  readonly options: () => ServerOptions
  readonly dialer: Dialer
  readonly main: MainLink
  readonly handlers: LinkEventHandlers
  readonly starts: LinkStarts
  readonly watches: SessionWatches
  readonly reports: LinkReports
}

/** The returned function rejects with `Failure`, or with `ModernOnly`. */
export const callerLinkOpener = ({ options, dialer, main, handlers, starts, watches, reports }: CallerLinkSource) => {
  const openNow = async (owner: LinkOwner, events: LinkEvents): Promise<Link> => {
    if (main.current?.era !== 'modern') return dialer.dial(owner, events)
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
    reports.send({ type: 'opened', owner })
    await watches.opened({ owner, link })
    return link
  }
}
