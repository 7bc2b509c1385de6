/**
 * Tokens and registrations at rest: one sealed file each, 0600, in a folder of their own (T-14; BRIDGING 6.2.7). A file opens only
 * under the name it was written for, so a token copied to another principal or server is no token there.
 *
 * The surprise: processes of one configuration share the folder. A change is made under a lock, to what stands there then.
 */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { acquireFileLock, releaseFileLock } from '../../file-lock.ts'
import { makeFolder } from '../../make-folder.ts'
import type { Seal } from '../seal.ts'

/** What a record is of: a word for its kind, then all that it must not be mixed up with. */
export type StoreKey = readonly string[]

/** A lock that is older than any grant takes was left behind by a process that ended. */
const STALE_LOCK_MS = 30_000

export class TokenStore {
  readonly #seal: Seal
  readonly #folder: string | undefined
  /** Where there is no folder, or it cannot be written. */
  readonly #memory = new Map<string, object>()
  readonly #queues = new Map<string, Promise<unknown>>()
  readonly #onTrouble: (error: Error) => void

  /** `folder`: absolute, of this configuration; `undefined`: everything ends with the process. `onTrouble` hears of a disk that fails. */
  constructor(seal: Seal, folder: string | undefined, onTrouble: (error: Error) => void) {
    this.#seal = seal
    this.#folder = folder === undefined ? undefined : join(folder, 'credentials')
    this.#onTrouble = onTrouble
  }

  /** What was written last, by whichever process; `undefined`: nothing, or nothing that opens. */
  read(key: StoreKey): object | undefined {
    const name = nameOf(key)
    if (this.#folder === undefined || this.#memory.has(name)) return this.#memory.get(name)
    try {
      return this.#seal.open(purposeOf(key), readFileSync(join(this.#folder, name), 'utf8'))
    } catch {
      return undefined
    }
  }

  write(key: StoreKey, value: object): void {
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
        this.#onTrouble(error as Error)
      }
    this.#memory.set(name, value)
  }

  remove(key: StoreKey): void {
    const name = nameOf(key)
    this.#memory.delete(name)
    if (this.#folder !== undefined) rmSync(join(this.#folder, name), { force: true })
  }

  /** Runs one change of a record at a time, in this process and among all that share the folder. */
  async exclusively<T>(key: StoreKey, change: () => Promise<T>): Promise<T> {
    const name = nameOf(key)
    const before = this.#queues.get(name) ?? Promise.resolve()
    const turn = before.then(() => this.#locked(name, change))
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
}

const purposeOf = (key: StoreKey): string => `credential ${JSON.stringify(key)}`

/** Says nothing of the server or the principal to who only sees the folder. */
const nameOf = (key: StoreKey): string => createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 32)
