/**
 * The state that replicas share: small values by key, each with an expiry. Any operation may reject with `StoreDown` at any time, which its
 * caller must handle. Calls of modern hosts do not depend on the store (RELIABILITY 6).
 */

export interface Store extends AsyncDisposable {
  /** Resolves with the value of a key; `undefined`: absent. */
  get(key: string): Promise<string | undefined>
  /** Resolves with the values of several keys, in their order. */
  getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]>
  set(key: string, value: string, ttlMs: number): Promise<void>
  delete(key: string): Promise<void>
  /**
   * Sets the key if it is absent or holds `value` (which renews it) or `instead`. Resolves with the value that the key holds then: of several
   * concurrent callers, only one gets its own value.
   */
  claim(key: string, value: string, ttlMs: number, instead?: string): Promise<string>
  /** Removes the key if it holds this value. False: it is absent or holds another value. */
  release(key: string, value: string): Promise<boolean>
  /** Appends to a list of at most `max` values, of which the oldest are removed first. */
  append(key: string, values: readonly string[], max: number, ttlMs: number): Promise<void>
  /** All values of a list, oldest first. */
  range(key: string): Promise<readonly string[]>
  /** Adds to a number that begins at 0, and resolves with the sum. `ttlMs` counts from the first addition. */
  add(key: string, amount: number, ttlMs: number): Promise<number>
  /** Sends a message to all subscribers of a channel, also to those of this process. May be lost, so data must be in a key. */
  publish(channel: string, message: string): Promise<void>
  /** Calls back for each message of a channel until the returned function is called. */
  subscribe(channel: string, receive: (message: string) => void): () => void
}

/** The store is unavailable, or has not answered in time. */
export class StoreDown extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreDown'
  }
}
