/**
 * The store of another process of this machine, asked by messages (`listen.workers`). The names of its operations are those of `Store`,
 * so that neither side knows any of them.
 */
import { StoreDown } from './store.ts'
import type { Store } from './store.ts'

/**
 * What goes over: the name of an operation and its arguments; `T` is what the operation resolves with. Rejects when the other process has
 * ended.
 */
export type AskStore = <T>(operation: Operation, args: readonly unknown[]) => Promise<T>

const OPERATIONS = ['get', 'getAll', 'set', 'delete', 'claim', 'release', 'append', 'range', 'add', 'publish'] as const
type Operation = (typeof OPERATIONS)[number]

/** Does what another process asks for. Throws for what is no operation. */
export const operateStore = (store: Store, operation: unknown, args: readonly unknown[]): Promise<unknown> => {
  const known = OPERATIONS.find((name) => name === operation)
  if (known === undefined) throw new StoreDown(`the store has no operation ${String(operation)}`)
  // Cast: the arguments are those that `RelayedStore` of the same build passes to the operation.
  return (store[known] as (...given: unknown[]) => Promise<unknown>).apply(store, [...args])
}

export class RelayedStore implements Store {
  readonly #ask: AskStore
  readonly #subscribers = new Map<string, Set<(message: string) => void>>()

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
    const receivers = this.#subscribers.get(channel) ?? new Set()
    this.#subscribers.set(channel, receivers.add(receive))
    return () => void receivers.delete(receive)
  }

  /** The other process says that something was published. */
  published(channel: string, message: string): void {
    for (const receive of this.#subscribers.get(channel) ?? []) receive(message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscribers.clear()
  }
}
