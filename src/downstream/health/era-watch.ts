/**
 * Detects at run time that the server at a URL has changed its era, because another version was deployed (B213, B268). An error that no
 * server of the link's era would send starts a probe: `server/discover` decides, or `initialize` for the legacy side of a modern server.
 * After an error that arrives too soon for a probe, or a probe without a result, one more probe follows later.
 */
import type { Link } from '../../era/server/link.ts'
import { ServerError } from '../../rpc/call.ts'
import type { Sweepable } from '../../rpc/sweeper.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Era } from '../../wire/protocol/revisions.ts'

/** The main link; or all links to the legacy side of a server whose main link is modern. */
export type Watched = Pick<Link, 'era' | 'transport'>

interface EraWatchSource<W extends Watched> {
  /** The current link. */
  readonly link: () => W | undefined
  /** The current era of the server; `undefined`: unknown. Never rejects. */
  readonly probe: () => Promise<Era | undefined>
  /** Called when the server no longer has the era of the link. */
  readonly changed: (link: W) => void
  readonly nowMs: () => number
}

/** Minimum time between probes. */
const MIN_GAP_MS = 2_000
/** Codes of 2026-07-28 that refuse a request of another era ([2026-07-28 basic/versioning]). */
const MODERN_REFUSALS: ReadonlySet<number> = new Set([-32020, -32021, -32022])
/** Codes with which legacy servers refuse requests without a session; the texts are those of the official SDKs. */
const LEGACY_REFUSALS: ReadonlySet<number> = new Set([-32601, -32600, -32000])
const ASKS_FOR_SESSION = /\bsession\b|\binitiali[sz]/i

export class EraWatch<W extends Watched> implements Sweepable {
  readonly #source: EraWatchSource<W>
  #probing: Promise<boolean> | undefined
  /** The link whose era the last probe has confirmed. */
  #confirmed: W | undefined
  #probedMs = -Infinity
  /** The link for which a probe is due. */
  #suspect: W | undefined

  constructor(source: EraWatchSource<W>) {
    this.#source = source
  }

  /** Whether `error` of a call over `link` shows a changed era: the link is given up, and the call was not executed. */
  async isChange(error: unknown, link: W | undefined): Promise<boolean> {
    if (link === undefined || link.transport === 'pipe' || !contradicts(error, link.era)) return false
    if (this.#probing !== undefined) return this.#probing
    const now = this.#source.link()
    if (now !== link) return now?.era !== link.era
    if (link === this.#confirmed && this.#source.nowMs() - this.#probedMs < MIN_GAP_MS) {
      this.#suspect = link
      return false
    }
    return this.#probeOnce(link)
  }

  sweep(nowMs: number): void {
    const link = this.#suspect
    if (link === undefined || this.#probing !== undefined || nowMs - this.#probedMs < MIN_GAP_MS) return
    this.#suspect = undefined
    // Once: without a result, the next error starts another probe.
    if (link === this.#source.link()) void this.#probeOnce(link).finally(() => (this.#suspect = undefined))
  }

  async #probeOnce(link: W): Promise<boolean> {
    this.#probedMs = this.#source.nowMs()
    this.#probing = this.#probe(link)
    try {
      return await this.#probing
    } finally {
      this.#probing = undefined
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

/** Whether a server of this era is unlikely to send the error. */
const contradicts = (error: unknown, era: Era): boolean => {
  if (error instanceof Failure) return error.executed === 'no' && (error.kind === 'not_found' || error.kind === 'bad_response')
  if (!(error instanceof ServerError)) return false
  if (era === 'legacy') return MODERN_REFUSALS.has(error.code)
  return LEGACY_REFUSALS.has(error.code) || ASKS_FOR_SESSION.test(error.message)
}
