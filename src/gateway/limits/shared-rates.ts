/**
 * Rate limits of all replicas together. The surprise: no call waits for the store. Each replica decides with its own buckets, and twice a
 * second takes from them what the others took. In between replicas may let more through; what was too much is missing afterwards, so the
 * rate holds over time.
 */
import { createHash } from 'node:crypto'
import type { Store } from '../../store/store.ts'
import type { Rates, Taken } from './rates.ts'

const SYNC_MS = 500
/** A sum that no replica adds to any more ends; it begins again at 0. */
const SUM_MS = 60_000

export class SharedRates {
  readonly #store: Store
  readonly #rates: Pick<Rates, 'takenHere' | 'takenElsewhere'>
  /** By key in the store: the sum of all replicas when it was last read. */
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

  /** Adds what was taken here to the sums, and takes here what is in them from others. */
  async sync(): Promise<void> {
    // While the store is away each replica limits what comes to it alone.
    await Promise.all(this.#rates.takenHere().map((taken) => this.#add(taken).catch(() => undefined)))
  }

  async #add(taken: Taken): Promise<void> {
    const { rule, key, count } = taken
    const name = `rate:${createHash('sha256')
      .update(JSON.stringify([rule.option, rule.rate.text, key]))
      .digest('base64url')
      .slice(0, 22)}`
    const sum = await this.#store.add(name, count, Math.max(SUM_MS, rule.rate.periodMs))
    const before = this.#seen.get(name)
    this.#remember(name, sum)
    // A sum that is smaller has begun again. Of one that is new here at most a full bucket counts, since it may be old.
    const elsewhere =
      before === undefined ? Math.min(sum - count, rule.rate.amount) : sum - count - (sum - count < before ? 0 : before)
    if (elsewhere > 0) this.#rates.takenElsewhere({ rule, key, count: elsewhere })
  }

  #remember(name: string, sum: number): void {
    this.#seen.delete(name)
    this.#seen.set(name, sum)
    const [oldest] = this.#seen.keys()
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest)
  }
}

const MAX_SEEN = 10_000
