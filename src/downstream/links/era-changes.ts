/** Whether a server still speaks the eras of its links: that of the main link, and `initialize` beside a modern one (B213, B268). */
import type { Link } from '../../era/server/link.ts'
import type { Sweepable } from '../../rpc/sweeper.ts'
import type { Era } from '../../wire/protocol/revisions.ts'
import type { LinkEventHandlers } from '../calls/link-events.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import { EraWatch } from '../health/era-watch.ts'
import type { Watched } from '../health/era-watch.ts'
import type { MainLink } from '../health/main-link.ts'
import type { Dialer } from './dialer.ts'
import type { Links } from './links.ts'
import type { ServerOptions } from '../options.ts'

interface EraChangesSource {
  readonly options: () => ServerOptions
  readonly environment: Pick<DownstreamEnvironment, 'log' | 'sweeper'>
  readonly main: MainLink
  readonly handlers: LinkEventHandlers
  readonly dialer: Dialer
  readonly links: Links
}

export class EraChanges implements Sweepable {
  readonly #main: EraWatch<Link>
  readonly #source: EraChangesSource
  /** All legacy links to a server whose main link is modern. */
  readonly #legacySide: Watched
  readonly #legacy: EraWatch<Watched>

  constructor(source: EraChangesSource) {
    const { options, main, dialer, handlers } = source
    const { log, sweeper } = source.environment
    const nowMs = (): number => sweeper.nowMs
    this.#source = source
    this.#main = new EraWatch({
      link: () => main.current,
      probe: () => dialer.probe(),
      changed: (link) => this.#giveUp(link),
      nowMs,
    })
    this.#legacySide = { era: 'legacy', transport: options().url === undefined ? 'pipe' : 'http' }
    this.#legacy = new EraWatch({
      link: () => (dialer.takesInitialize ? this.#legacySide : undefined),
      probe: () => dialer.probeLegacy(handlers.onMain()),
      // The probe has reported it.
      changed: () => log.info({ server: options().key }, 'the server no longer takes initialize'),
      nowMs,
    })
  }

  /** Whether `error` of a call over this main link shows a changed era: the link is given up, and the call was not executed. */
  isChange(error: unknown, link: Link | undefined): Promise<boolean> {
    return this.#main.isChange(error, link)
  }

  /** Whether `error` on a legacy link to a modern server shows that it no longer accepts `initialize`. */
  isLegacyRefused(error: unknown): Promise<boolean> {
    return this.#legacy.isChange(error, this.#legacySide)
  }

  /** A request of the gateway was refused on a link of this era. */
  refused(error: unknown, era: Era): void {
    const { current } = this.#source.main
    void (era === 'legacy' && current?.era === 'modern' ? this.isLegacyRefused(error) : this.isChange(error, current))
  }

  sweep(nowMs: number): void {
    this.#main.sweep(nowMs)
    this.#legacy.sweep(nowMs)
  }

  #giveUp(link: Link): void {
    const { options, environment, dialer, links, main } = this.#source
    environment.log.info({ server: options().key, era: link.era }, 'the server no longer speaks this era; it is dialed again')
    dialer.dropVerdict()
    links.retireAll()
    main.giveUp(link)
  }
}
