/**
 * Lists of servers that replicas share through the store: a replica that starts while a server is down serves the lists that another one
 * has read. Only common lists are shared, never those of one principal (`inMemory`). Names in the store are keyed digests of server
 * definitions, which may contain credentials, and values are sealed: the store can neither read nor change lists.
 */
import type { Seal } from '../../auth/seal.ts'
import type { Store } from '../../store/store.ts'

const PURPOSE = 'lists of a server'
/** Lifetime in the store: how long lists are served while a server is down (BRIDGING 3.19). */
const TTL_MS = 24 * 3_600_000
/** Period of writing unchanged lists. */
const REFRESH_MS = 3_600_000
/** Longer sealed lists are not shared. */
const MAX_CHARS = 2 * 2 ** 20

export class SharedLists {
  readonly #store: Store
  readonly #seal: Seal
  /** Lists of other replicas when `learn` was called, by name. */
  readonly #known = new Map<string, object>()
  /** Monotonic time of the last write, by name. */
  readonly #writtenMs = new Map<string, number>()

  constructor(store: Store, seal: Seal) {
    this.#store = store
    this.#seal = seal
  }

  /** Reads the stored lists of these definitions; never rejects. */
  async learn(definitions: readonly string[]): Promise<void> {
    await Promise.all(
      definitions.map(async (definition) => {
        const name = this.#nameOf(definition)
        const sealed = await this.#store.get(name).catch(() => undefined)
        const value = sealed === undefined ? undefined : this.#seal.open(PURPOSE + name, sealed)
        if (value !== undefined) this.#known.set(name, value)
      }),
    )
  }

  /** The lists that `learn` has read for this definition. */
  find(definition: string): object | undefined {
    return this.#known.get(this.#nameOf(definition))
  }

  /** Stores lists for other replicas. `isSame`: unchanged lists are written once per `REFRESH_MS`. */
  keep(definition: string, value: object, isSame: boolean): void {
    const name = this.#nameOf(definition)
    const nowMs = performance.now()
    if (isSame && nowMs - (this.#writtenMs.get(name) ?? -Infinity) < REFRESH_MS) return
    const sealed = this.#seal.seal(PURPOSE + name, value, TTL_MS)
    if (sealed.length > MAX_CHARS) return
    this.#writtenMs.set(name, nowMs)
    // After an error of the store it is written with the next reading.
    this.#store.set(name, sealed, TTL_MS).catch(() => this.#writtenMs.delete(name))
  }

  #nameOf(definition: string): string {
    return `lists:${this.#seal.mark(PURPOSE, definition)}`
  }
}
