/**
 * Bounds every operation of a store (F-28): 250 ms each. After five consecutive failures all operations fail at once for a second (a circuit
 * breaker), so that an unavailable store costs its callers no time. Then one operation tries again.
 */
import { asError } from '../values/as-error.ts'
import { StoreDown } from './store.ts'
import type { Store } from './store.ts'

const OPERATION_MS = 250
const MAX_FAILURES = 5
/** How long the circuit breaker stays open. */
const OPEN_MS = 1_000

export interface StoreState {
  /** Whether the circuit breaker is open: requests that need the store are refused or served locally. */
  readonly isDown: boolean
  readonly operations: number
  readonly failures: number
}

export interface GuardOptions {
  /** Called when the store has become unavailable, or available again. */
  readonly changed: (isDown: boolean, reason: string) => void
  readonly now?: () => number
}

export class GuardedStore implements Store {
  readonly #store: Store
  readonly #options: GuardOptions
  readonly #now: () => number
  #failuresInRow = 0
  #nextTryMs = -Infinity
  #operations = 0
  #failures = 0

  constructor(store: Store, options: GuardOptions) {
    this.#store = store
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  get state(): StoreState {
    return { isDown: this.#isDown, operations: this.#operations, failures: this.#failures }
  }

  get = (key: string): Promise<string | undefined> => this.#bounded(() => this.#store.get(key))
  getAll = (keys: readonly string[]): Promise<readonly (string | undefined)[]> => this.#bounded(() => this.#store.getAll(keys))
  set = (key: string, value: string, ttlMs: number): Promise<void> => this.#bounded(() => this.#store.set(key, value, ttlMs))
  delete = (key: string): Promise<void> => this.#bounded(() => this.#store.delete(key))
  claim = (key: string, value: string, ttlMs: number, instead?: string): Promise<string> =>
    this.#bounded(() => this.#store.claim(key, value, ttlMs, instead))
  release = (key: string, value: string): Promise<boolean> => this.#bounded(() => this.#store.release(key, value))
  append = (key: string, values: readonly string[], max: number, ttlMs: number): Promise<void> =>
    this.#bounded(() => this.#store.append(key, values, max, ttlMs))
  range = (key: string): Promise<readonly string[]> => this.#bounded(() => this.#store.range(key))
  add = (key: string, amount: number, ttlMs: number): Promise<number> => this.#bounded(() => this.#store.add(key, amount, ttlMs))
  publish = (channel: string, message: string): Promise<void> => this.#bounded(() => this.#store.publish(channel, message))

  subscribe(channel: string, receive: (message: string) => void): () => void {
    return this.#store.subscribe(channel, receive)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#store[Symbol.asyncDispose]())
  }

  get #isDown(): boolean {
    return this.#failuresInRow >= MAX_FAILURES
  }

  async #bounded<T>(operate: () => Promise<T>): Promise<T> {
    if (this.#isDown) {
      if (this.#now() < this.#nextTryMs) throw new StoreDown('the shared store is not available (store)')
      // Other operations fail until this one has succeeded.
      this.#nextTryMs = this.#now() + OPEN_MS
    }
    this.#operations++
    const { promise, reject } = Promise.withResolvers<never>()
    // After a pause of this process (load, SIGSTOP) timers run before arrived data is read. `setImmediate` lets an arrived answer count.
    const late = (): void => reject(new Error(`no answer within ${OPERATION_MS} ms`))
    const timer = setTimeout(() => setImmediate(late), OPERATION_MS)
    try {
      const result = await Promise.race([operate(), promise])
      if (this.#isDown) this.#options.changed(false, '')
      this.#failuresInRow = 0
      return result
    } catch (error) {
      this.#failures++
      if (++this.#failuresInRow === MAX_FAILURES) {
        this.#nextTryMs = this.#now() + OPEN_MS
        this.#options.changed(true, asError(error).message)
      }
      throw new StoreDown(`the shared store is not available (store): ${asError(error).message}`, error)
    } finally {
      clearTimeout(timer)
    }
  }
}
