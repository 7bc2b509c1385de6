/**
 * One process of a legacy server, started ahead and sent nothing, which becomes whatever link is asked for next (DECISIONS 3). It costs
 * memory, so there is none before the first legacy session, none where starting is quick, and none after ten idle minutes.
 */

export interface SpareOptions {
  /** A server that starts in less needs none. */
  readonly minStartMs: number
  /** Ended when no session has come for so long. */
  readonly idleMs: number
}

export const DEFAULT_SPARE: SpareOptions = { minStartMs: 1_000, idleMs: 600_000 }

export interface SpareSource<T> {
  readonly options: SpareOptions
  /** Whether this server may have one at all. */
  readonly isAllowed: () => boolean
  readonly start: () => Promise<T>
  /** Settles when the process has ended. */
  readonly ended: (started: T) => Promise<unknown>
  readonly stop: (started: T) => Promise<void>
}

export class Spare<T> {
  readonly #source: SpareSource<T>
  #process: Promise<T> | undefined
  #isWanted = false
  #startTookMs = 0
  #idle: NodeJS.Timeout | undefined

  constructor(source: SpareSource<T>) {
    this.#source = source
  }

  /** How long the main link took from its spawn to the end of the handshake. */
  started(tookMs: number): void {
    this.#startTookMs = tookMs
  }

  /** A legacy session uses this server: others may follow. */
  want(): void {
    this.#isWanted = true
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this.release(), this.#source.options.idleMs).unref()
  }

  /** The process, if there is one; it is not the spare any more. */
  take(): Promise<T> | undefined {
    const process = this.#process
    this.#process = undefined
    return process
  }

  /** Starts it, where it is of use and not there. */
  prepare(): void {
    const { isAllowed, options, start, ended } = this.#source
    const isOfUse = this.#isWanted && this.#startTookMs >= options.minStartMs && isAllowed()
    if (!isOfUse || this.#process !== undefined) return
    const process = start()
    this.#process = process
    const forget = (): void => {
      if (this.#process === process) this.#process = undefined
    }
    process.then((started) => void ended(started).then(forget), forget)
  }

  /** Ends it; the next session brings another. */
  async release(): Promise<void> {
    this.#isWanted = false
    clearTimeout(this.#idle)
    await this.drop()
  }

  /** Ends it: the server it would serve has ended, too. */
  async drop(): Promise<void> {
    const started = await this.take()?.catch(() => undefined)
    if (started !== undefined) await this.#source.stop(started)
  }
}
