/** Logs whether one signal reaches the collector: the beginning and the end of an outage, and what the collector rejects. */
import { asError } from '../values/as-error.ts'
import { Throttle } from '../time/throttle.ts'
import { firstWords } from '../values/cut-text.ts'

export type Signal = 'traces' | 'metrics'

export interface DeliveryTarget {
  readonly log: {
    info(facts: object, message: string): void
    warn(facts: object, message: string): void
  }
  /** Shown in the log. */
  readonly endpoint: string
}

/** At most one outage and one rejection are logged in this time. */
const LOG_PERIOD_MS = 60_000
/** Longest text of a collector in the log. */
const MAX_CHARACTERS = 1_000

export class Delivery {
  readonly #signal: Signal
  readonly #target: DeliveryTarget
  readonly #throttle = new Throttle(LOG_PERIOD_MS)
  /** The outage of now is in the log. */
  #isLogged = false

  constructor(signal: Signal, target: DeliveryTarget) {
    this.#signal = signal
    this.#target = target
  }

  failed(error: unknown): void {
    if (this.#isLogged || this.#throttle.due('outage') === undefined) return
    this.#isLogged = true
    const { log, endpoint } = this.#target
    log.warn(
      { endpoint, error: asError(error).message },
      `${this.#signal} do not reach the collector, and are dropped until they do (telemetry.otlp)`,
    )
  }

  succeeded(): void {
    if (!this.#isLogged) return
    this.#isLogged = false
    this.#target.log.info({ endpoint: this.#target.endpoint }, `${this.#signal} reach the collector again`)
  }

  /** The collector received an export, but rejected some of it (`partial_success`). */
  rejected(rejected: number, reason: string): void {
    if (this.#throttle.due('rejected') === undefined) return
    const { log, endpoint } = this.#target
    log.warn(
      { endpoint, rejected, reason: firstWords(reason, MAX_CHARACTERS) },
      `some ${this.#signal} were rejected by the collector (telemetry.otlp)`,
    )
  }
}
