/**
 * One process of a legacy server, started in advance for the next link (DECISIONS 3). Nothing is sent to it before. It costs memory, so
 * there is none before the first legacy session, none for servers that start quickly, and none after ten idle minutes.
 */

export interface SpareOptions {
  /** Servers that start faster have no spare. */
  readonly minStartMs: number
  /** The spare is stopped after this time without a new session. */
  readonly idleMs: number
}

export const DEFAULT_SPARE: SpareOptions = { minStartMs: 1_000, idleMs: 600_000 }

interface SpareSource<T> {
  readonly options: SpareOptions
  /** Whether this server may have a spare now. */
  readonly isAllowed: () => boolean
  /** `isTaken`: whether a link waits for this process by now. */
  readonly start: (isTaken: () => boolean) => Promise<T>
  /** Settles when the process has ended. */
  readonly ended: (started: T) => Promise<unknown>
  readonly stop: (started: T) => Promise<void>
}

interface Prepared<T> {
  readonly started: Promise<T>
  /** A link waits for the process from now on. */
  readonly want: () => void
}

export class Spare<T> {
  readonly #source: SpareSource<T>
  #prepared: Prepared<T> | undefined
  #isWanted = false
  #startTookMs = 0
  #idle: NodeJS.Timeout | undefined

  constructor(source: SpareSource<T>) {
    this.#source = source
  }

  /** Sets the time that the main link took from its spawn to the end of the handshake. */
  started(tookMs: number): void {
    this.#startTookMs = tookMs
  }

  /** A legacy session uses this server; others may follow. */
  want(): void {
    this.#isWanted = true
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this.release(), this.#source.options.idleMs).unref()
  }

  /** Removes and returns the process for a link, if there is one. It may still be waiting for its start. */
  take(): Promise<T> | undefined {
    const prepared = this.#remove()
    prepared?.want()
    return prepared?.started
  }

  /** Starts the spare if it is useful and absent. */
  prepare(): void {
    const { isAllowed, options, start, ended } = this.#source
    const isOfUse = this.#isWanted && this.#startTookMs >= options.minStartMs && isAllowed()
    if (!isOfUse || this.#prepared !== undefined) return
    let isTaken = false
    const started = start(() => isTaken)
    const prepared: Prepared<T> = { started, want: () => (isTaken = true) }
    this.#prepared = prepared
    const forget = (): void => {
      if (this.#prepared === prepared) this.#prepared = undefined
    }
    started.then((process) => void ended(process).then(forget), forget)
  }

  /** Stops the spare until the next session. */
  async release(): Promise<void> {
    this.#isWanted = false
    clearTimeout(this.#idle)
    await this.drop()
  }

  /** Stops the spare after the main link has ended. */
  async drop(): Promise<void> {
    const started = await this.#remove()?.started.catch(() => undefined)
    if (started !== undefined) await this.#source.stop(started)
  }

  #remove(): Prepared<T> | undefined {
    const prepared = this.#prepared
    this.#prepared = undefined
    return prepared
  }
}
