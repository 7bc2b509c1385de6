/**
 * Sources that are not read while the one host that they speak to takes nothing (F-21). Each is looked at ten times a second, and
 * read on as soon as the host does; a host that never does loses its stream, and with it the reason.
 */
import type { Sweepable, Sweeper } from './sweeper.ts'

interface Paused {
  readonly resume: () => void
  readonly isStalled: () => boolean
}

export class PausedSources implements Sweepable {
  readonly #sweeper: Sweeper
  /** By the request on whose stream nothing is read; `undefined`: the shared way back. */
  readonly #paused = new Map<number | undefined, Paused>()

  constructor(sweeper: Sweeper) {
    this.#sweeper = sweeper
  }

  has(id: number | undefined): boolean {
    return this.#paused.has(id)
  }

  add(id: number | undefined, paused: Paused): void {
    if (this.#paused.size === 0) this.#sweeper.watch(this)
    this.#paused.set(id, paused)
  }

  sweep(): void {
    for (const [id, { resume, isStalled }] of this.#paused) {
      if (isStalled()) continue
      this.#paused.delete(id)
      resume()
    }
    if (this.#paused.size === 0) this.#sweeper.unwatch(this)
  }

  /** The connection has ended. */
  clear(): void {
    this.#paused.clear()
    this.#sweeper.unwatch(this)
  }
}
