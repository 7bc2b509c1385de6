/**
 * Rate limits of all replicas together. No call waits for the store: each replica decides with its own buckets, and twice a second takes
 * from them what the others took. In between replicas may allow more calls, which are subtracted afterwards, so the rate holds over time.
 */
import type { Store } from '../../store/store.ts'
import type { Rates, Taken } from './rates.ts'
import { setBounded } from '../../values/bounded-map.ts'
import { digestOf } from '../../values/digest.ts'

const SYNC_MS = 500
/** Lifetime of a sum that no replica adds to. */
const SUM_MS = 60_000

export class SharedRates {
  readonly #store: Store
  readonly #rates: Pick<Rates, 'takenHere' | 'takenElsewhere'>
  /** Last read sum of all replicas, by key in the store. */
  readonly #seen = new Map<string, number>()
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, rates: Pick<Rates, 'share' | 'takenHere' | 'takenElsewhere'>) {
    this.#store = store
    this.#rates = rates
    rates.share()
    this.#timer = setInterval(() => void this.sync(), SYNC_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Adds tokens taken here to the sums, and takes here what others have added. */
  async sync(): Promise<void> {
    // Without the store each replica limits only its own calls.
    await Promise.all(this.#rates.takenHere().map((taken) => this.#add(taken).catch(() => undefined)))
  }

  async #add(taken: Taken): Promise<void> {
    const { rule, key, count } = taken
    const name = `rate:${digestOf(JSON.stringify([rule.option, rule.rate.text, key]))}`
    const sum = await this.#store.add(name, count, Math.max(SUM_MS, rule.rate.periodMs))
    const before = this.#seen.get(name)
    setBounded(this.#seen, name, sum, MAX_SEEN)
    // A smaller sum has expired and begun again. A sum unknown here may be old: at most a full bucket of it counts.
    const elsewhere =
      before === undefined ? Math.min(sum - count, rule.rate.amount) : sum - count - (sum - count < before ? 0 : before)
    if (elsewhere > 0) this.#rates.takenElsewhere({ rule, key, count: elsewhere })
  }
}

const MAX_SEEN = 10_000
