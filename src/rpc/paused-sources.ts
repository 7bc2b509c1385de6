/**
 * Streams of a server that are paused while the only host that they send to does not read (F-21). Each is checked ten times a second
 * and resumed once the host reads again. The stream of a host that never reads is closed, which also resumes its source.
 */
import type { Sweepable, Sweeper } from './sweeper.ts'
import { SparseMap } from '../values/sparse-map.ts'

interface Paused {
  readonly resume: () => void
  readonly isStalled: () => boolean
}

export class PausedSources implements Sweepable {
  readonly #sweeper: Sweeper
  /** By the id of the request whose stream is paused; `undefined`: the shared stream. */
  readonly #paused = new SparseMap<number | undefined, Paused>()

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

  /** Forgets all of them, since the connection has ended. */
  clear(): void {
    this.#paused.clear()
    this.#sweeper.unwatch(this)
  }
}
