/**
 * Lists of servers that replicas show each other through the store: a replica that starts while a server is down lists what another one has
 * read. Only what every caller is listed comes here; lists of one principal are never kept (`forgetful`). The surprise: a name is a mark
 * of the definition under the common key, since a definition may hold credentials, and what is stored is sealed: the store can neither read
 * nor change what hosts are listed.
 */
import type { Seal } from '../../auth/seal.ts'
import type { Store } from '../../store/store.ts'

const PURPOSE = 'lists of a server'
/** As long as lists are served while a server is away (BRIDGING 3.19). */
const KEPT_MS = 24 * 3_600_000
/** What has not changed is written again so often. */
const AGAIN_MS = 3_600_000
/** Sealed. Longer ones stay at the replica that has read them. */
const MAX_CHARS = 2 * 2 ** 20

export class SharedLists {
  readonly #store: Store
  readonly #seal: Seal
  /** What others had read when this process, or this server, was started, by name. */
  readonly #known = new Map<string, object>()
  /** When each was written, monotonic. */
  readonly #writtenMs = new Map<string, number>()

  constructor(store: Store, seal: Seal) {
    this.#store = store
    this.#seal = seal
  }

  /** Reads what is stored of these definitions; never rejects. */
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

  /** What `learn` has read of this definition. */
  find(definition: string): object | undefined {
    return this.#known.get(this.#nameOf(definition))
  }

  /** Shows the others what was read. `isSame`: it has not changed, and need not be written if it was a while ago. */
  keep(definition: string, value: object, isSame: boolean): void {
    const name = this.#nameOf(definition)
    const nowMs = performance.now()
    if (isSame && nowMs - (this.#writtenMs.get(name) ?? -Infinity) < AGAIN_MS) return
    const sealed = this.#seal.seal(PURPOSE + name, value, KEPT_MS)
    if (sealed.length > MAX_CHARS) return
    this.#writtenMs.set(name, nowMs)
    // Written with the next reading where the store is away.
    this.#store.set(name, sealed, KEPT_MS).catch(() => this.#writtenMs.delete(name))
  }

  #nameOf(definition: string): string {
    return `lists:${this.#seal.mark(PURPOSE, definition)}`
  }
}
