/** Stops a lazy server (`lifecycle.start`) that nothing has used for `lifecycle.idle_stop`; the next call starts it again (DECISIONS 2). */
import type { Sweepable } from '../../rpc/sweeper.ts'
import type { ServerOptions } from '../options.ts'

interface IdleStopSource {
  readonly options: () => Pick<ServerOptions, 'start' | 'idleStopMs'>
  /** Whether a call, a link of a caller or a watched resource needs the server now. */
  readonly isUsed: () => boolean
  /** Monotonic time of the last use. */
  readonly usedMs: () => number
  /** Called when the server is to be stopped. */
  readonly stop: () => void
}

export class IdleStop implements Sweepable {
  readonly #source: IdleStopSource
  #usedMs: number

  constructor(source: IdleStopSource, nowMs: number) {
    this.#source = source
    this.#usedMs = nowMs
  }

  sweep(nowMs: number): void {
    const { options, isUsed, stop, usedMs } = this.#source
    const { start, idleStopMs } = options()
    if (start !== 'lazy' || isUsed()) this.#usedMs = nowMs
    else if (nowMs - Math.max(this.#usedMs, usedMs()) >= idleStopMs) stop()
  }
}
