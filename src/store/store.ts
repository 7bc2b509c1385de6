/**
 * What replicas share: small values by key, each with an end. The surprise: an operation may fail at any time with `StoreDown`, and its
 * caller must have an answer for that; nothing of a modern host's call depends on it (RELIABILITY 6).
 */

export interface Store extends AsyncDisposable {
  /** `undefined`: there is no such key. */
  get(key: string): Promise<string | undefined>
  /** Several at once, in the order of the keys. */
  getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]>
  set(key: string, value: string, ttlMs: number): Promise<void>
  delete(key: string): Promise<void>
  /**
   * Sets the key where it is absent, or where it holds `instead`; returns the value that it holds then. Of several callers at a time one
   * alone gets its own value back. A caller that holds the key already renews it.
   */
  claim(key: string, value: string, ttlMs: number, instead?: string): Promise<string>
  /** Removes the key if it holds this value; false: it holds another one, or is gone. */
  release(key: string, value: string): Promise<boolean>
  /** Adds to the end of a list of at most `max` values; the oldest go first. */
  append(key: string, values: readonly string[], max: number, ttlMs: number): Promise<void>
  /** All values of a list, oldest first. */
  range(key: string): Promise<readonly string[]>
  /** Adds to a number that begins at 0, and returns it. `ttlMs` counts from the first addition. */
  add(key: string, amount: number, ttlMs: number): Promise<number>
  /** Wakes the subscribers of a channel, those of this process included. May be lost: data is always in a key. */
  publish(channel: string, message: string): Promise<void>
  /** Calls back for each message until the returned function is called. */
  subscribe(channel: string, receive: (message: string) => void): () => void
}

/** The store cannot be asked now, or has not answered in time. */
export class StoreDown extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreDown'
  }
}
