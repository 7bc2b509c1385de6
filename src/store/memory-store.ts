/** A store in memory: shared by the workers of one machine through their supervisor, and by several gateways of one process. */
import type { Store } from './store.ts'
import { Subscribers } from './subscribers.ts'

interface Entry {
  value: string | string[]
  readonly expiresMs: number
  bytes: number
}

export interface MemoryStoreOptions {
  /** Monotonic, in milliseconds. */
  readonly now?: () => number
  /** Size of all lists together. The list with the oldest latest addition is removed first. */
  readonly maxListBytes?: number
  /** Called for every published message. */
  readonly published?: (channel: string, message: string) => void
}

/** Expired entries are removed once per this number of writes. */
const WRITES_PER_SWEEP = 1_000

export class MemoryStore implements Store {
  readonly #values = new Map<string, Entry>()
  /** In the order of their latest additions. */
  readonly #lists = new Map<string, Entry>()
  readonly #subscribers = new Subscribers()
  readonly #now: () => number
  readonly #published: MemoryStoreOptions['published']
  /** Size of all lists together; a reload may change it. */
  maxListBytes: number
  #listBytes = 0
  #writes = 0

  constructor({ now = () => performance.now(), maxListBytes = Infinity, published }: MemoryStoreOptions = {}) {
    this.#published = published
    this.#now = now
    this.maxListBytes = maxListBytes
  }

  async get(key: string): Promise<string | undefined> {
    const value = this.#live(key)?.value
    return typeof value === 'string' ? value : undefined
  }

  getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)))
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    this.#sweep()
    this.#remove(key)
    this.#values.set(key, { value, expiresMs: this.#now() + ttlMs, bytes: 0 })
  }

  async delete(key: string): Promise<void> {
    this.#remove(key)
  }

  async claim(key: string, value: string, ttlMs: number, instead?: string): Promise<string> {
    const held = this.#live(key)?.value
    if (typeof held === 'string' && held !== value && held !== instead) return held
    await this.set(key, value, ttlMs)
    return value
  }

  async release(key: string, value: string): Promise<boolean> {
    return this.#live(key)?.value === value && this.#remove(key)
  }

  async append(key: string, values: readonly string[], max: number, ttlMs: number): Promise<void> {
    this.#sweep()
    const held = this.#live(key)?.value
    const list = Array.isArray(held) ? held : []
    list.push(...values)
    list.splice(0, Math.max(0, list.length - max))
    this.#remove(key)
    const bytes = list.reduce((sum, { length }) => sum + length, 0)
    this.#lists.set(key, { value: list, expiresMs: this.#now() + ttlMs, bytes })
    this.#listBytes += bytes
    for (const [oldest] of this.#lists) {
      if (this.#listBytes <= this.maxListBytes) return
      this.#remove(oldest)
    }
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
    queueMicrotask(() => this.#subscribers.deliver(channel, message))
    this.#published?.(channel, message)
  }

  subscribe(channel: string, receive: (message: string) => void): () => void {
    return this.#subscribers.add(channel, receive)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#values.clear()
    this.#lists.clear()
  }

  #live(key: string): Entry | undefined {
    const entry = this.#values.get(key) ?? this.#lists.get(key)
    if (entry === undefined || entry.expiresMs > this.#now()) return entry
    this.#remove(key)
    return undefined
  }

  #remove(key: string): boolean {
    this.#listBytes -= this.#lists.get(key)?.bytes ?? 0
    return this.#values.delete(key) || this.#lists.delete(key)
  }

  #sweep(): void {
    if (++this.#writes % WRITES_PER_SWEEP !== 0) return
    const nowMs = this.#now()
    for (const entries of [this.#values, this.#lists])
      for (const [key, { expiresMs }] of entries) if (expiresMs <= nowMs) this.#remove(key)
  }
}
