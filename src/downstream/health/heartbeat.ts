/**
 * Pings a legacy server over HTTP while nothing is pending on its main link, since a half-open connection reports no error (F-14). With
 * pending requests a missed answer proves nothing; the idle time-out ends these.
 */
import type { Link } from '../../era/server/link.ts'
import type { Sweepable, Sweeper } from '../../rpc/sweeper.ts'

/** Unanswered pings in a row after which the link is closed; the supervisor connects again. */
const MAX_MISSES = 2

type Pinged = Link & Required<Pick<Link, 'ping'>>

const isPinged = (link: Link): link is Pinged => link.ping !== undefined

export class Heartbeat implements Sweepable {
  readonly #link: Pinged
  readonly #pingMs: () => number
  #nowMs: number
  #quietSinceMs: number
  #misses = 0
  #isPinging = false

  private constructor(link: Pinged, sweeper: Sweeper, pingMs: () => number) {
    this.#link = link
    this.#pingMs = pingMs
    this.#nowMs = this.#quietSinceMs = sweeper.nowMs
  }

  /** Watches a link until it is closed. `pingMs`: silence before a ping, and time limit of its answer. */
  static watch(link: Link, sweeper: Sweeper, pingMs: () => number): void {
    if (link.transport === 'pipe' || !isPinged(link)) return
    const heartbeat = new Heartbeat(link, sweeper, pingMs)
    sweeper.watch(heartbeat)
    void link.closed.then(() => sweeper.unwatch(heartbeat))
  }

  sweep(nowMs: number): void {
    this.#nowMs = nowMs
    if (this.#isPinging) return
    if (this.#link.inFlight > 0) this.#quietSinceMs = nowMs
    else if (nowMs - this.#quietSinceMs >= this.#pingMs()) void this.#ping()
  }

  async #ping(): Promise<void> {
    this.#isPinging = true
    const isAnswered = await this.#link.ping(this.#pingMs())
    this.#isPinging = false
    // A call that was sent meanwhile may keep the server busy.
    if (!isAnswered && this.#link.inFlight > 0) return
    this.#misses = isAnswered ? 0 : this.#misses + 1
    // After a miss the next ping follows at once.
    if (this.#misses === 0) this.#quietSinceMs = this.#nowMs
    else if (this.#misses >= MAX_MISSES) await this.#link.close()
  }
}
