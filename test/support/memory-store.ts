/** A store in this process, shared by several gateways of one test. */
import type { Store } from '../../src/store/store.ts'

interface Entry {
  value: string | string[]
  readonly expiresMs: number
}

export class MemoryStore implements Store {
  readonly #entries = new Map<string, Entry>()
  readonly #subscribers = new Map<string, Set<(message: string) => void>>()
  readonly #now: () => number

  /** `now`: a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  async get(key: string): Promise<string | undefined> {
    const value = this.#live(key)?.value
    return typeof value === 'string' ? value : undefined
  }

  getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)))
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    this.#entries.set(key, { value, expiresMs: this.#now() + ttlMs })
  }

  async delete(key: string): Promise<void> {
    this.#entries.delete(key)
  }

  async claim(key: string, value: string, ttlMs: number, instead?: string): Promise<string> {
    const held = this.#live(key)?.value
    if (typeof held === 'string' && held !== value && held !== instead) return held
    await this.set(key, value, ttlMs)
    return value
  }

  async release(key: string, value: string): Promise<boolean> {
    return this.#live(key)?.value === value && this.#entries.delete(key)
  }

  async append(key: string, values: readonly string[], max: number, ttlMs: number): Promise<void> {
    const held = this.#live(key)?.value
    const list = Array.isArray(held) ? held : []
    list.push(...values)
    list.splice(0, Math.max(0, list.length - max))
    this.#entries.set(key, { value: list, expiresMs: this.#now() + ttlMs })
  }

  async range(key: string): Promise<readonly string[]> {
    const held = this.#live(key)?.value
    return Array.isArray(held) ? [...held] : []
  }

  async add(key: string, amount: number, ttlMs: number): Promise<number> {
    const held = this.#live(key)
    const sum = Number(typeof held?.value === 'string' ? held.value : 0) + amount
    if (held === undefined) await this.set(key, String(sum), ttlMs)
    else held.value = String(sum)
    return sum
  }

  async publish(channel: string, message: string): Promise<void> {
    for (const receive of this.#subscribers.get(channel) ?? []) queueMicrotask(() => receive(message))
  }

  subscribe(channel: string, receive: (message: string) => void): () => void {
    const receivers = this.#subscribers.get(channel) ?? new Set()
    this.#subscribers.set(channel, receivers.add(receive))
    return () => void receivers.delete(receive)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#entries.clear()
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.expiresMs > this.#now()) return entry
    this.#entries.delete(key)
    return undefined
  }
}
