/**
 * Log lines about refused tokens: one per cause and minute, because strangers decide how many tokens come. What is left out is counted
 * and logged at level `debug`.
 */
import { IssuerUnreachable } from '../../../auth/inbound/issuer.ts'
import type { Refusal } from '../../../auth/refusal.ts'
import { Throttle } from '../../../time/throttle.ts'
import type { Log } from '../../listener-context.ts'

const PERIOD_MS = 60_000
/** The message; what is wrong is among the facts. */
const REFUSED = 'a token was rejected'

export class TokenLog {
  readonly #log: Log
  /** By cause. */
  readonly #throttle: Throttle

  /** `now`: monotonic, in milliseconds. */
  constructor(log: Log, now?: () => number) {
    this.#log = log
    this.#throttle = new Throttle(PERIOD_MS, now)
  }

  refused({ cause, claim, expected, got, remedy }: Refusal): void {
    // Tokens end; that needs no change of anything.
    this.#note(cause, cause === 'end' ? 'info' : 'warn', { claim, expected, got, remedy }, REFUSED)
  }

  /** Nothing can be said about a token now. */
  unverified(error: Error): void {
    const remedy = error instanceof IssuerUnreachable ? error.remedy : ''
    this.#note('unverified', 'warn', { error: error.message, ...(remedy !== '' && { remedy }) }, 'a token could not be verified')
  }

  #note(cause: string, level: 'info' | 'warn', facts: Readonly<Record<string, unknown>>, text: string): void {
    const count = this.#throttle.due(cause)
    if (count === undefined) this.#log.debug(facts, text)
    else this.#log[level](count === 1 ? facts : { ...facts, more: count - 1 }, text)
  }
}
