/**
 * The public keys of the authorization server: fetched when a token first needs one, again when they are old, and again, rarely, when
 * a token names one that is not among them: that is how keys are rotated. Invented key ids cause one fetch in half a minute.
 *
 * A key id that is not known says nothing about the token while the set cannot be read: the key may be new.
 */
import { createLocalJWKSet, errors } from 'jose'
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'
import { IssuerUnreachable } from './issuer.ts'

const MAX_AGE_MS = 600_000
/** Between two fetches for keys that are not known: anybody can name one. */
const COOLDOWN_MS = 30_000
/** Until a set that could not be read is tried again. */
const RETRY_MS = 2_000

export class KeySet {
  readonly #read: () => Promise<string>
  readonly #now: () => number
  #keys: ReturnType<typeof createLocalJWKSet> | undefined
  #readMs = -Infinity
  #triedMs = -Infinity
  /** When a key that was not known was last looked for. */
  #lookedMs = -Infinity
  /** Why the last attempt to read failed; `undefined`: it did not. */
  #failure: Error | undefined
  #reading: Promise<void> | undefined

  /** `read`: the document's text; `now`: monotonic, in milliseconds. */
  constructor(read: () => Promise<string>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  /** The key a token names. Rejects with an error of jose where there is none, with `IssuerUnreachable` where that cannot be found out. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#keys === undefined || this.#now() - this.#readMs >= MAX_AGE_MS) await this.#refresh(RETRY_MS)
    if (this.#keys === undefined) throw this.#unreachable()
    const before = this.#keys
    try {
      return await before(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      await this.#lookAgain()
      if (this.#failure !== undefined) throw this.#unreachable()
      if (this.#keys === before) throw error
      return this.#keys(header, token)
    }
  }

  async #lookAgain(): Promise<void> {
    const nowMs = this.#now()
    if (this.#failure === undefined && nowMs - this.#lookedMs < COOLDOWN_MS) return this.#reading
    this.#lookedMs = nowMs
    await this.#refresh(this.#failure === undefined ? 0 : RETRY_MS)
  }

  /** At most one fetch at a time and one per `pauseMs`. What is known stays known where it fails. */
  #refresh(pauseMs: number): Promise<void> {
    if (this.#reading !== undefined) return this.#reading
    const nowMs = this.#now()
    if (nowMs - this.#triedMs < pauseMs) return Promise.resolve()
    this.#triedMs = nowMs
    const reading = this.#read().then((text) => {
      this.#keys = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
      this.#readMs = nowMs
      this.#failure = undefined
    })
    return (this.#reading = reading
      .catch((error: unknown) => {
        this.#failure = error instanceof Error ? error : new Error(String(error))
      })
      .finally(() => (this.#reading = undefined)))
  }

  #unreachable(): IssuerUnreachable {
    return new IssuerUnreachable(`no keys: ${this.#failure?.message}`, this.#failure)
  }
}
