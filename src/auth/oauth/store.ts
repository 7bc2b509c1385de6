/**
 * Tokens and registrations at rest: one sealed file each, 0600, in a folder of their own (T-14; BRIDGING 6.2.7). A file opens only
 * under the name it was written for, so a token copied to another principal or server is no token there.
 *
 * The surprise: processes of one configuration share the folder. A change is made under a lock, to what stands there then. Replicas share
 * the records, sealed, and the lock by their store: each has a copy in its folder, which the store's record replaces (F-17).
 */
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { acquireFileLock, releaseFileLock } from '../../file-lock.ts'
import { makeFolder } from '../../make-folder.ts'
import type { Store } from '../../store/store.ts'
import type { Purpose, Seal } from '../seal.ts'

/** Never present at run time: it ties a key to the type of its record. */
declare const HOLDS: unique symbol

/** What a record is of: a word for its kind, then all that it must not be mixed up with. Its records are `T`. */
export type StoreKey<T extends object = object> = readonly string[] & { readonly [HOLDS]?: T }

/** A lock that is older than any grant takes was left behind by a process that ended. */
const STALE_LOCK_MS = 30_000

export class TokenStore {
  readonly #seal: Seal
  readonly #folder: string | undefined
  /** Where there is no folder, or it cannot be written. */
  readonly #memory = new Map<string, object>()
  readonly #queues = new Map<string, Promise<unknown>>()
  readonly #onTrouble: (error: Error) => void
  readonly #shared: Store | undefined
  /** By name of a record: the credentials that are built from it. */
  readonly #watched = new Map<string, { readonly key: StoreKey; readonly callbacks: Set<() => void> }>()
  /** Writes to the shared store that are under way. */
  readonly #writing = new Set<Promise<unknown>>()

  /**
   * `folder`: absolute, of this configuration; `undefined`: everything ends with the process. `onTrouble` hears of a disk that fails.
   * `shared`: of all replicas.
   */
  constructor(seal: Seal, folder: string | undefined, onTrouble: (error: Error) => void, shared?: Store) {
    this.#seal = seal
    this.#shared = shared
    shared?.subscribe(CHANNEL, (name) => {
      const watched = this.#watched.get(name)
      if (watched !== undefined) void this.#pull(watched.key)
    })
    this.#folder = folder === undefined ? undefined : join(folder, 'credentials')
    this.#onTrouble = onTrouble
  }

  /** What was written last, by whichever process; `undefined`: nothing, or nothing that opens. */
  read<T extends object>(key: StoreKey<T>): T | undefined {
    const name = nameOf(key)
    // Cast: `write` put it there under the same key.
    if (this.#folder === undefined || this.#memory.has(name)) return this.#memory.get(name) as T | undefined
    try {
      return this.#seal.open(purposeOf(key), readFileSync(join(this.#folder, name), 'utf8'))
    } catch {
      return undefined
    }
  }

  /** Calls back after another replica has changed the record; what the store has already is read now. */
  watch(key: StoreKey, callback: () => void): void {
    if (this.#shared === undefined) return
    const name = nameOf(key)
    const watched = this.#watched.get(name) ?? { key, callbacks: new Set() }
    watched.callbacks.add(callback)
    this.#watched.set(name, watched)
    void this.#pull(key)
  }

  write<T extends object>(key: StoreKey<T>, value: NoInfer<T>): void {
    this.#writeHere(key, value)
    const shared = this.#shared
    if (shared === undefined) return
    const name = nameOf(key)
    const sealed = this.#seal.seal(purposeOf(key), value)
    this.#share(shared.set(recordOf(name), sealed, SHARED_MS).then(() => shared.publish(CHANNEL, name)))
  }

  #share(write: Promise<unknown>): void {
    // Without the store the other replicas learn of it when this one writes again.
    const settled = write.catch(() => undefined).finally(() => this.#writing.delete(settled))
    this.#writing.add(settled)
  }

  /** Takes over what another replica has written last. */
  async #pull(key: StoreKey): Promise<void> {
    const name = nameOf(key)
    const sealed = await this.#shared?.get(recordOf(name)).catch(() => undefined)
    const value = sealed === undefined ? undefined : this.#seal.open(purposeOf(key), sealed)
    if (value === undefined || isDeepStrictEqual(value, this.read(key))) return
    this.#writeHere(key, value)
    for (const changed of this.#watched.get(name)?.callbacks ?? []) changed()
  }

  #writeHere(key: StoreKey, value: object): void {
    const name = nameOf(key)
    if (this.#folder !== undefined)
      try {
        makeFolder(this.#folder)
        const file = join(this.#folder, name)
        writeFileSync(`${file}.new`, this.#seal.seal(purposeOf(key), value), { mode: 0o600 })
        renameSync(`${file}.new`, file)
        this.#memory.delete(name)
        return
      } catch (error) {
        this.#onTrouble(asError(error))
      }
    this.#memory.set(name, value)
  }

  remove(key: StoreKey): void {
    const name = nameOf(key)
    this.#memory.delete(name)
    if (this.#shared !== undefined) this.#share(this.#shared.delete(recordOf(name)))
    if (this.#folder !== undefined) rmSync(join(this.#folder, name), { force: true })
  }

  /** Runs one change of a record at a time, in this process and among all that share the folder. */
  async exclusively<T>(key: StoreKey, change: () => Promise<T>): Promise<T> {
    const name = nameOf(key)
    const before = this.#queues.get(name) ?? Promise.resolve()
    const turn = before.then(() => this.#locked(name, () => this.#lockedByAll(key, change)))
    const settled = turn.catch(() => undefined)
    this.#queues.set(name, settled)
    try {
      return await turn
    } finally {
      if (this.#queues.get(name) === settled) this.#queues.delete(name)
    }
  }

  async #locked<T>(name: string, change: () => Promise<T>): Promise<T> {
    if (this.#folder === undefined) return change()
    const lock = join(this.#folder, `${name}.lock`)
    // A disk that supports no locks is no reason to stop.
    const isHeld = await acquireFileLock(lock, STALE_LOCK_MS)
    try {
      return await change()
    } finally {
      if (isHeld) releaseFileLock(lock)
    }
  }

  /** The lock of all replicas. Without the store there is none, as without a folder that supports locks. */
  async #lockedByAll<T>(key: StoreKey, change: () => Promise<T>): Promise<T> {
    const shared = this.#shared
    if (shared === undefined) return change()
    const lock = `lock:${nameOf(key)}`
    const owner = randomUUID()
    const isHeld = await this.#acquire(shared, lock, owner)
    try {
      await this.#pull(key)
      return await change()
    } finally {
      await Promise.all(this.#writing)
      if (isHeld) await shared.release(lock, owner).catch(() => false)
    }
  }

  async #acquire(shared: Store, lock: string, owner: string): Promise<boolean> {
    const endMs = performance.now() + STALE_LOCK_MS
    try {
      while ((await shared.claim(lock, owner, STALE_LOCK_MS)) !== owner) {
        if (performance.now() >= endMs) return false
        await new Promise((resolve) => setTimeout(resolve, LOCK_LOOK_MS))
      }
      return true
    } catch {
      return false
    }
  }
}

/** Replicas are told the names of changed records here. */
const CHANNEL = 'credentials'
/** A record that no replica has written for so long is a sign-in that has ended. */
const SHARED_MS = 90 * 24 * 3_600_000
const LOCK_LOOK_MS = 50

const recordOf = (name: string): string => `credential:${name}`

const purposeOf = <T extends object>(key: StoreKey<T>): Purpose<T> => `credential ${JSON.stringify(key)}`

/** Says nothing of the server or the principal to who only sees the folder. */
const nameOf = (key: StoreKey): string => createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 32)
