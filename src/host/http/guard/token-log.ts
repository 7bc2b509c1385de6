/** Log lines about refused tokens, which anyone can send: one per cause and minute. Further ones are counted, at `debug`. */
import { IssuerUnreachable } from '../../../auth/inbound/verify/issuer.ts'
import type { TokenRefusal } from '../../../auth/token-refusal.ts'
import { Throttle } from '../../../time/throttle.ts'
import type { Log } from '../../../values/log.ts'

const PERIOD_MS = 60_000
export class TokenLog {
  readonly #target: Log
  /** By cause. */
  readonly #throttle: Throttle

  /** `now`: monotonic, in milliseconds. */
  constructor(log: Log, now?: () => number) {
    this.#target = log
    this.#throttle = new Throttle(PERIOD_MS, now)
  }

  refused({ cause, claim, expected, got, remedy }: TokenRefusal): void {
    // Expiry is normal, and needs no change by the operator.
    this.#log(cause, cause === 'end' ? 'info' : 'warn', { claim, expected, got, remedy }, 'a token was rejected')
  }

  /** Logs that a token could not be checked. */
  unverified(error: Error): void {
    const remedy = error instanceof IssuerUnreachable ? error.remedy : ''
    this.#log('unverified', 'warn', { error: error.message, ...(remedy !== '' && { remedy }) }, 'a token could not be verified')
  }

  #log(cause: string, level: 'info' | 'warn', facts: Readonly<Record<string, unknown>>, text: string): void {
    const count = this.#throttle.due(cause)
    if (count === undefined) this.#target.debug(facts, text)
    else this.#target[level](count === 1 ? facts : { ...facts, more: count - 1 }, text)
  }
}
