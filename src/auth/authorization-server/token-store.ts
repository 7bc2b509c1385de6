/**
 * Stores tokens and registrations: one sealed file each, mode 0600, in one folder (T-14; BRIDGING 6.2.7). A file opens only under its own
 * name, so that it cannot be copied to another principal or server.
 *
 * Processes of one configuration share the folder, and change a record under a lock. Replicas share the sealed records and the lock by
 * their store: each has a copy in its folder, which a newer record of the store replaces (F-17). What could not be written to the store
 * is newer than its record, and replaces that once the store is back (F-28).
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
import { attempt } from '../../values/attempt.ts'

/** Never present at run time: it ties a key to the type of its record. */
declare const HOLDS: unique symbol

/** Names a record of type `T`: its kind, then everything that identifies it. */
export type StoreKey<T extends object = object> = readonly string[] & { readonly [HOLDS]?: T }

/** A record, and when it was written: wall clock in milliseconds, more than that of the record before. */
interface Version<T extends object> {
  readonly value: T
  readonly writtenMs: number
}

/** In place of a record that replicas may still have: theirs is older, whatever their clocks say, and is not shared again. */
const REMOVED = { isRemoved: true } as const

/** An older lock is of a process that has ended, since no grant takes as long. */
const STALE_LOCK_MS = 30_000

export class TokenStore {
  readonly #seal: Seal
  readonly #folder: string | undefined
  /** Records without a folder, or in a folder that cannot be written. */
  readonly #memory = new Map<string, Version<object>>()
  readonly #queues = new Map<string, Promise<unknown>>()
  readonly #onTrouble: (error: Error) => void
  readonly #shared: Store | undefined
  /** By name of a record. */
  readonly #watched = new Map<string, { readonly key: StoreKey; readonly callbacks: Set<() => void> }>()
  /** Pending writes to the shared store. */
  readonly #writing = new Set<Promise<unknown>>()
  /** Names of records that the shared store could not take, and that are offered to it again. */
  readonly #unshared = new Set<string>()
  #isClosed = false

  /** `folder`: absolute; `undefined`: nothing outlives the process. `onTrouble`: for errors of the disk. */
  constructor(seal: Seal, folder: string | undefined, onTrouble: (error: Error) => void, shared?: Store) {
    this.#seal = seal
    this.#shared = shared
    shared?.subscribe(CHANNEL, (name) => {
      const watched = this.#watched.get(name)
      if (watched !== undefined) void this.refresh(watched.key)
    })
    this.#folder = folder === undefined ? undefined : join(folder, 'credentials')
    this.#onTrouble = onTrouble
  }

  /** Returns the latest record of any process; `undefined`: none, or it cannot be opened. */
  read<T extends object>(key: StoreKey<T>): T | undefined {
    const value = this.#latest(key)?.value
    return value === undefined || isDeepStrictEqual(value, REMOVED) ? undefined : value
  }

  #latest<T extends object>(key: StoreKey<T>): Version<T> | undefined {
    const name = nameOf(key)
    const folder = this.#folder
    // Cast: `write` put it there under the same key.
    const own = this.#memory.get(name) as Version<T> | undefined
    if (folder === undefined) return own
    const kept = attempt(() => this.#opened(key, readFileSync(join(folder, name), 'utf8')))
    return own === undefined || (kept !== undefined && kept.writtenMs > own.writtenMs) ? kept : own
  }

  #sealed<T extends object>(key: StoreKey<T>, { value, writtenMs }: Version<T>): string {
    return `${this.#seal.seal(purposeOf(key, writtenMs), value)}.${writtenMs}`
  }

  #opened<T extends object>(key: StoreKey<T>, text: string): Version<T> | undefined {
    const [sealed = '', time] = text.split('.')
    const writtenMs = Number(time)
    const value = this.#seal.open(purposeOf(key, writtenMs), sealed)
    return value && { value, writtenMs }
  }

  /** Calls back when another replica has changed the record, until the returned function is called. Starts reading the store's record. */
  watch(key: StoreKey, callback: () => void): () => void {
    if (this.#shared === undefined) return () => undefined
    const name = nameOf(key)
    const watched = this.#watched.get(name) ?? { key, callbacks: new Set() }
    const call = (): void => callback()
    watched.callbacks.add(call)
    this.#watched.set(name, watched)
    void this.refresh(key)
    return () => {
      watched.callbacks.delete(call)
      if (watched.callbacks.size === 0 && this.#watched.get(name) === watched) this.#watched.delete(name)
    }
  }

  write<T extends object>(key: StoreKey<T>, value: NoInfer<T>): void {
    this.#put(key, { value, writtenMs: Math.max(Date.now(), this.#nextMs(key)) })
  }

  #nextMs(key: StoreKey): number {
    return (this.#latest(key)?.writtenMs ?? 0) + 1
  }

  #put(key: StoreKey, version: Version<object>): void {
    this.#writeHere(key, version)
    const shared = this.#shared
    if (shared === undefined) return
    const name = nameOf(key)
    const written = shared.set(recordOf(name), this.#sealed(key, version), SHARED_MS)
    this.#share(
      key,
      written.then(() => shared.publish(CHANNEL, name)),
    )
  }

  #share(key: StoreKey, write: Promise<unknown>): void {
    const settled = write.catch(() => this.#shareLater(key)).finally(() => this.#writing.delete(settled))
    this.#writing.add(settled)
  }

  /** While the store is unavailable, other replicas keep the old record, which may have ended. */
  #shareLater(key: StoreKey): void {
    const name = nameOf(key)
    if (this.#isClosed || this.#unshared.has(name)) return
    this.#unshared.add(name)
    setTimeout(() => {
      this.#unshared.delete(name)
      void this.#offer(key)
    }, OFFER_MS).unref()
  }

  /** Offers nothing to the shared store again. */
  close(): void {
    this.#isClosed = true
  }

  async #offer(key: StoreKey): Promise<void> {
    const shared = this.#shared
    const own = this.#latest(key)
    if (shared === undefined || own === undefined) return
    const name = nameOf(key)
    try {
      await shared.claim(recordOf(name), this.#sealed(key, own), SHARED_MS)
      await this.refresh(key)
      await shared.publish(CHANNEL, name)
    } catch {
      this.#shareLater(key)
    }
  }

  /**
   * Reads the store's record, for one that may have missed its change: replaces the local record if the store's is newer; if it is older,
   * the other way round. Does nothing while the store is unavailable.
   */
  async refresh(key: StoreKey): Promise<void> {
    const name = nameOf(key)
    const shared = this.#shared
    const sealed = await shared?.get(recordOf(name)).catch(() => undefined)
    const theirs = sealed === undefined ? undefined : this.#opened(key, sealed)
    if (shared === undefined || theirs === undefined) return
    const own = this.#latest(key)
    if (own !== undefined && own.writtenMs > theirs.writtenMs) {
      // Replaces no record that another replica has written meanwhile.
      const claimed = shared.claim(recordOf(name), this.#sealed(key, own), SHARED_MS, sealed)
      return this.#share(
        key,
        claimed.then(() => shared.publish(CHANNEL, name)),
      )
    }
    if (isDeepStrictEqual(theirs, own)) return
    this.#writeHere(key, theirs)
    if (isDeepStrictEqual(theirs.value, own?.value)) return
    for (const changed of this.#watched.get(name)?.callbacks ?? []) changed()
  }

  #writeHere(key: StoreKey, version: Version<object>): void {
    const name = nameOf(key)
    if (this.#folder !== undefined)
      try {
        makeFolder(this.#folder)
        const file = join(this.#folder, name)
        writeFileSync(`${file}.new`, this.#sealed(key, version), { mode: 0o600 })
        renameSync(`${file}.new`, file)
        this.#memory.delete(name)
        return
      } catch (error) {
        this.#onTrouble(asError(error))
      }
    this.#memory.set(name, version)
  }

  remove(key: StoreKey): void {
    // Not newer than necessary: another replica may have renewed it meanwhile.
    if (this.#shared !== undefined) return this.#put(key, { value: REMOVED, writtenMs: this.#nextMs(key) })
    const name = nameOf(key)
    this.#memory.delete(name)
    if (this.#folder !== undefined) rmSync(join(this.#folder, name), { force: true })
  }

  /** Runs one change of a record at a time, among all processes and replicas. */
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
    // Continues without a lock if the disk does not support locks.
    const isHeld = await acquireFileLock(lock, STALE_LOCK_MS)
    try {
      return await change()
    } finally {
      if (isHeld) releaseFileLock(lock)
    }
  }

  /** Runs a change under the lock of all replicas; without a lock if the store is unavailable. */
  async #lockedByAll<T>(key: StoreKey, change: () => Promise<T>): Promise<T> {
    const shared = this.#shared
    if (shared === undefined) return change()
    const lock = `lock:${nameOf(key)}`
    const owner = randomUUID()
    try {
      await this.#acquire(shared, lock, owner)
      await this.refresh(key)
      return await change()
    } finally {
      await Promise.all(this.#writing)
      // Also a lock that was not confirmed in time: the store may hold it nevertheless.
      await shared.release(lock, owner).catch(() => false)
    }
  }

  async #acquire(shared: Store, lock: string, owner: string): Promise<void> {
    const endMs = performance.now() + STALE_LOCK_MS
    const claim = (): Promise<string> => shared.claim(lock, owner, STALE_LOCK_MS).catch(() => owner)
    while ((await claim()) !== owner && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
  }
}

/** Channel for the names of changed records. */
const CHANNEL = 'credentials'
/** A record that was not written for this time is of a sign-in that has ended. */
const SHARED_MS = 90 * 24 * 3_600_000
const LOCK_POLL_MS = 50
const OFFER_MS = 5_000

const recordOf = (name: string): string => `credential:${name}`

const purposeOf = <T extends object>(key: StoreKey<T>, writtenMs: number): Purpose<T> =>
  `credential ${JSON.stringify(key)} ${writtenMs}`

/** Returns a file name that does not reveal server and principal. */
const nameOf = (key: StoreKey): string => createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 32)
