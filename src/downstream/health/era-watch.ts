/**
 * Notices at run time that the server at a URL speaks another era than its link: a new version was deployed there, or an old one
 * again (B213, B268). An error that no server of the link's era would send is only a reason to ask: `server/discover` decides, and beside
 * a modern main link `initialize`. An error that comes too soon to ask, or is asked in vain, is asked about once more later: perhaps no
 * other comes, and changes would be lost.
 */
import type { Link } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import type { Sweepable } from '../../rpc/sweeper.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Era } from '../../wire/protocol/revisions.ts'

/** The main link; or, beside a modern one, all links to the legacy side of the server. */
export type Watched = Pick<Link, 'era' | 'transport'>

/** What of a server this needs. */
export interface EraWatchSource<W extends Watched> {
  /** What is watched, while it is there. */
  readonly link: () => W | undefined
  /** The era that the server speaks now; `undefined`: it cannot be told. Never rejects. */
  readonly probe: () => Promise<Era | undefined>
  /** The link speaks an era that its server does not speak any more. */
  readonly changed: (link: W) => void
  readonly nowMs: () => number
}

/** Errors of one link that come in bursts ask once. */
const MIN_GAP_MS = 2_000
/** Codes of 2026-07-28 that refuse a request of another era ([2026-07-28 basic/versioning]). */
const MODERN_REFUSALS: ReadonlySet<number> = new Set([-32020, -32021, -32022])
/** Codes by which legacy servers refuse what comes without a session; the texts are those of the official SDKs. */
const LEGACY_REFUSALS: ReadonlySet<number> = new Set([-32601, -32600, -32000])
const ASKS_FOR_SESSION = /\bsession\b|\binitiali[sz]/i

export class EraWatch<W extends Watched> implements Sweepable {
  readonly #source: EraWatchSource<W>
  #asking: Promise<boolean> | undefined
  /** The link that was found to be of its server's era last. */
  #confirmed: W | undefined
  #askedMs = -Infinity
  /** An error on this link is still to be asked about. */
  #suspect: W | undefined

  constructor(source: EraWatchSource<W>) {
    this.#source = source
  }

  /**
   * Whether `error`, of a call that was sent while `link` was watched, shows that the era has changed; then that link is given up, and
   * the call was not executed. Of several calls under way one asks: those that fail later find another link there.
   */
  async isChange(error: unknown, link: W | undefined): Promise<boolean> {
    if (link === undefined || link.transport === 'pipe' || !contradicts(error, link.era)) return false
    if (this.#asking !== undefined) return this.#asking
    const now = this.#source.link()
    if (now !== link) return now?.era !== link.era
    if (link === this.#confirmed && this.#source.nowMs() - this.#askedMs < MIN_GAP_MS) {
      this.#suspect = link
      return false
    }
    return this.#ask(link)
  }

  sweep(nowMs: number): void {
    const link = this.#suspect
    if (link === undefined || this.#asking !== undefined || nowMs - this.#askedMs < MIN_GAP_MS) return
    this.#suspect = undefined
    // Once: what cannot be told now is found out by the next error.
    if (link === this.#source.link()) void this.#ask(link).finally(() => (this.#suspect = undefined))
  }

  async #ask(link: W): Promise<boolean> {
    this.#askedMs = this.#source.nowMs()
    this.#asking = this.#probe(link)
    try {
      return await this.#asking
    } finally {
      this.#asking = undefined
    }
  }

  async #probe(link: W): Promise<boolean> {
    const era = await this.#source.probe()
    if (era === undefined) this.#suspect = link
    if (era === link.era) this.#confirmed = link
    if (era === undefined || era === link.era) return false
    this.#confirmed = undefined
    this.#source.changed(link)
    return true
  }
}

/** Whether a server of this era would hardly answer so; a process does not change its era, so that only HTTP is meant. */
const contradicts = (error: unknown, era: Era): boolean => {
  if (error instanceof Failure) return error.executed === 'no' && (error.kind === 'not_found' || error.kind === 'bad_response')
  if (!(error instanceof ServerError)) return false
  if (era === 'legacy') return MODERN_REFUSALS.has(error.code)
  return LEGACY_REFUSALS.has(error.code) || ASKS_FOR_SESSION.test(error.message)
}
