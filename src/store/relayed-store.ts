/**
 * The store of another process of this machine, used by messages (`listen.workers`). Operations are relayed by their names, so that both
 * sides are independent of their meaning.
 */
import { StoreDown } from './store.ts'
import type { Store } from './store.ts'
import { Subscribers } from './subscribers.ts'

/**
 * Sends an operation with its arguments to the other process, and resolves with its result. Rejects when that process has ended.
 */
export type AskStore = <T>(operation: Operation, args: readonly unknown[]) => Promise<T>

const OPERATIONS = ['get', 'getAll', 'set', 'delete', 'claim', 'release', 'append', 'range', 'add', 'publish'] as const
type Operation = (typeof OPERATIONS)[number]

/** Runs an operation for another process. Throws `StoreDown` for an unknown operation. */
export const operateStore = (store: Store, operation: unknown, args: readonly unknown[]): Promise<unknown> => {
  const known = OPERATIONS.find((name) => name === operation)
  if (known === undefined) throw new StoreDown(`the store has no operation ${String(operation)}`)
  // Cast: `RelayedStore` of the same build passes the operation's arguments.
  return (store[known] as (...given: unknown[]) => Promise<unknown>).apply(store, [...args])
}

export class RelayedStore implements Store {
  readonly #ask: AskStore
  readonly #subscribers = new Subscribers()

  constructor(ask: AskStore) {
    this.#ask = ask
  }

  get = (key: string): Promise<string | undefined> => this.#ask('get', [key])
  getAll = (keys: readonly string[]): Promise<readonly (string | undefined)[]> => this.#ask('getAll', [keys])
  set = async (key: string, value: string, ttlMs: number): Promise<void> => void (await this.#ask('set', [key, value, ttlMs]))
  delete = async (key: string): Promise<void> => void (await this.#ask('delete', [key]))
  claim = (key: string, value: string, ttlMs: number, instead?: string): Promise<string> =>
    this.#ask('claim', [key, value, ttlMs, instead])
  release = (key: string, value: string): Promise<boolean> => this.#ask('release', [key, value])
  append = async (key: string, values: readonly string[], max: number, ttlMs: number): Promise<void> =>
    void (await this.#ask('append', [key, values, max, ttlMs]))
  range = (key: string): Promise<readonly string[]> => this.#ask('range', [key])
  add = (key: string, amount: number, ttlMs: number): Promise<number> => this.#ask('add', [key, amount, ttlMs])
  publish = async (channel: string, message: string): Promise<void> => void (await this.#ask('publish', [channel, message]))

  subscribe(channel: string, receive: (message: string) => void): () => void {
    return this.#subscribers.add(channel, receive)
  }

  /** Delivers a message that was published at the other process. */
  published(channel: string, message: string): void {
    this.#subscribers.deliver(channel, message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscribers.clear()
  }
}
