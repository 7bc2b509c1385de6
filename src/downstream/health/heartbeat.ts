/**
 * Asks a legacy server over HTTP, on whose main link nothing is pending, whether it is still there: a connection that went half
 * says nothing by itself (F-14). With something pending a missed answer proves nothing; the idle limit ends that.
 */
import type { Link } from '../../era/server/link.ts'
import type { Sweepable, Sweeper } from '../../rpc/sweeper.ts'

/** Unanswered pings in a row after which the link is closed; its owner connects again. */
const MAX_MISSES = 2

type Pinged = Link & Required<Pick<Link, 'ping'>>

const isPinged = (link: Link): link is Pinged => link.ping !== undefined

export class Heartbeat implements Sweepable {
  readonly #link: Pinged
  readonly #pingMs: () => number
  #nowMs: number
  #quietSinceMs: number
  #misses = 0
  #isAsking = false

  private constructor(link: Pinged, sweeper: Sweeper, pingMs: () => number) {
    this.#link = link
    this.#pingMs = pingMs
    this.#nowMs = this.#quietSinceMs = sweeper.nowMs
  }

  /** For as long as the link is open; `pingMs`: silence before a ping, and how long its answer may take. */
  static watch(link: Link, sweeper: Sweeper, pingMs: () => number): void {
    if (link.transport === 'pipe' || !isPinged(link)) return
    const heartbeat = new Heartbeat(link, sweeper, pingMs)
    sweeper.watch(heartbeat)
    void link.closed.then(() => sweeper.unwatch(heartbeat))
  }

  sweep(nowMs: number): void {
    this.#nowMs = nowMs
    if (this.#isAsking) return
    if (this.#link.inFlight > 0) this.#quietSinceMs = nowMs
    else if (nowMs - this.#quietSinceMs >= this.#pingMs()) void this.#ask()
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    this.#misses = (await this.#link.ping(this.#pingMs())) ? 0 : this.#misses + 1
    this.#isAsking = false
    // Asked again at once after a miss, and after a silence else.
    if (this.#misses === 0) this.#quietSinceMs = this.#nowMs
    else if (this.#misses >= MAX_MISSES) await this.#link.close()
  }
}
