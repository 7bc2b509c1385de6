/**
 * The public keys of the authorization server: fetched when a token first needs one, again when they are old, and again, rarely, when
 * a token names one that is not among them: that is how keys are rotated. Invented key ids cause six fetches
 * at once, then one in five seconds.
 *
 * A key id for which the set was not just fetched says nothing about the token: the key may be new.
 *
 * An issuer that does not answer delays one token, not each: old keys are used at once while the last attempt to read them failed.
 */
import { createLocalJWKSet, errors } from 'jose'
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'
import { asError } from '../../values/as-error.ts'
import { TokenBucket } from '../../rpc/rate.ts'
import { IssuerUnreachable } from './issuer.ts'

const MAX_AGE_MS = 600_000
/** Fetches for keys that are not known: every token may name one. */
const LOOKS = { amount: 6, periodMs: 30_000, text: '6/30s' }
/** Key ids that are remembered as absent, and how long: an issuer may publish a key after the first token by it. */
const MOST_ABSENT = 256
const ABSENT_MS = 5_000
/** Until a set that could not be read is tried again. */
const RETRY_MS = 2_000

export class KeySet {
  readonly #read: () => Promise<string>
  readonly #now: () => number
  #keys: ReturnType<typeof createLocalJWKSet> | undefined
  #readMs = -Infinity
  #triedMs = -Infinity
  readonly #looks = new TokenBucket(LOOKS)
  /** Key ids that a fetch did not bring, and when it was made; oldest first. */
  readonly #absent = new Map<unknown, number>()
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
    if (this.#keys === undefined || this.#now() - this.#readMs >= MAX_AGE_MS) {
      const isAway = this.#failure !== undefined && this.#keys !== undefined
      const refreshed = this.#refresh(RETRY_MS)
      if (!isAway) await refreshed
    }
    if (this.#keys === undefined) throw this.#unreachable()
    const before = this.#keys
    try {
      return await before(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const isLooked = await this.#lookAgain(header.kid)
      if (this.#failure !== undefined) throw this.#unreachable()
      if (!isLooked)
        throw new IssuerUnreachable('a key that is not known; the keys were fetched a moment ago, and are fetched again soon')
      return this.#keys(header, token)
    }
  }

  /** Whether the set was just fetched for this key. */
  async #lookAgain(kid: unknown): Promise<boolean> {
    const nowMs = this.#now()
    if (nowMs - (this.#absent.get(kid) ?? -Infinity) < ABSENT_MS) return true
    if (this.#reading === undefined && this.#failure === undefined) {
      if (this.#looks.waitMs(nowMs) > 0) return false
      this.#looks.take(nowMs)
    }
    await this.#refresh(this.#failure === undefined ? 0 : RETRY_MS)
    if (this.#failure === undefined) this.#noteAbsent(kid, nowMs)
    return true
  }

  #noteAbsent(kid: unknown, nowMs: number): void {
    this.#absent.delete(kid)
    const [oldest] = this.#absent.keys()
    if (this.#absent.size >= MOST_ABSENT) this.#absent.delete(oldest)
    this.#absent.set(kid, nowMs)
  }

  /** At most one fetch at a time and one per `pauseMs`. What is known stays known where it fails. */
  #refresh(pauseMs: number): Promise<void> {
    if (this.#reading !== undefined) return this.#reading
    const nowMs = this.#now()
    if (nowMs - this.#triedMs < pauseMs) return Promise.resolve()
    this.#triedMs = nowMs
    const reading = this.#read().then((text) => {
      // Cast: jose checks the shape itself.
      this.#keys = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
      this.#readMs = nowMs
      this.#failure = undefined
    })
    return (this.#reading = reading
      .catch((error: unknown) => {
        this.#failure = asError(error)
      })
      .finally(() => (this.#reading = undefined)))
  }

  #unreachable(): IssuerUnreachable {
    return new IssuerUnreachable(`no keys: ${this.#failure?.message}`, this.#failure)
  }
}
