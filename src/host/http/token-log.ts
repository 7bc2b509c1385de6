/**
 * Log lines about refused tokens: one per cause and minute, because strangers decide how many tokens come. What is left out is counted
 * and logged at level `debug`.
 */
import type { Refusal } from '../../auth/refusal.ts'
import type { Log } from '../hub.ts'

const PERIOD_MS = 60_000
/** The message; what is wrong is among the facts. */
const REFUSED = 'a token was rejected'

export class TokenLog {
  readonly #log: Log
  readonly #now: () => number
  /** By cause; the causes are a closed list. */
  readonly #last = new Map<string, { readonly atMs: number; more: number }>()

  /** `now`: monotonic, in milliseconds. */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
  }

  refused({ cause, claim, expected, got, remedy }: Refusal): void {
    // Tokens end; that needs no change of anything.
    this.#note(cause, cause === 'end' ? 'info' : 'warn', { claim, expected, got, remedy }, REFUSED)
  }

  /** Nothing can be said about a token now. */
  unverified(error: Error): void {
    this.#note('unverified', 'warn', { error: error.message }, 'a token could not be verified')
  }

  #note(cause: string, level: 'info' | 'warn', facts: Readonly<Record<string, unknown>>, text: string): void {
    const nowMs = this.#now()
    const last = this.#last.get(cause)
    if (last !== undefined && nowMs - last.atMs < PERIOD_MS) {
      last.more++
      this.#log.debug(facts, text)
      return
    }
    this.#last.set(cause, { atMs: nowMs, more: 0 })
    this.#log[level](last === undefined || last.more === 0 ? facts : { ...facts, more: last.more }, text)
  }
}
