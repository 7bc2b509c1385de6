/**
 * Keeps the order of the handshake over separate POSTs: messages after the first notification, which is `notifications/initialized`, wait
 * until it is accepted. Then messages may be sent concurrently. Answers to a server do not pass the gate: it may ask before `initialized`,
 * and may wait for the answer before it accepts that.
 */

/** How long messages wait for the response to `notifications/initialized`. */
export const DEFAULT_GATE_MS = 5_000

/** The sending of one message. */
export interface Startable {
  start(): void
}

export class SendGate {
  readonly #maxWaitMs: number
  readonly #waiting: Startable[] = []
  #state: 'fresh' | 'shut' | 'open' = 'fresh'
  #timer: NodeJS.Timeout | undefined

  constructor(maxWaitMs: number) {
    this.#maxWaitMs = maxWaitMs
  }

  /** Starts the sending of a message now, or once the gate opens. */
  pass(hasId: boolean, message: Startable): void {
    if (this.#state === 'shut') {
      this.#waiting.push(message)
      return
    }
    if (this.#state === 'fresh' && !hasId) {
      this.#state = 'shut'
      this.#timer = setTimeout(() => this.open(), this.#maxWaitMs)
    }
    message.start()
  }

  /** A notification was accepted, or failed. */
  open(): void {
    if (this.#state !== 'shut') return
    this.#state = 'open'
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const message of this.#waiting.splice(0)) message.start()
  }

  /** Drops waiting messages. */
  close(): void {
    this.#waiting.length = 0
    clearTimeout(this.#timer)
  }
}
