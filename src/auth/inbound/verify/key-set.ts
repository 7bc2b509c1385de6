/**
 * The public keys of an authorization server: fetched when a token first needs one, again after `MAX_AGE_MS`, and again for an unknown key
 * id, because keys are rotated; for a token without a key id, if its signature fits none of the keys. Invented key ids and signatures cause
 * at most six fetches at once, then one in five seconds.
 *
 * An unknown key refuses a token only if the set was just fetched for it, since the key may be new.
 *
 * An issuer that does not answer delays one token, not each: old keys are used at once while the last fetch has failed.
 */
import { createLocalJWKSet, errors } from 'jose'
import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose'
import { asError } from '../../../values/as-error.ts'
import { setBounded } from '../../../values/bounded-map.ts'
import { TokenBucket } from '../../../rpc/rate.ts'
import { IssuerUnreachable } from './issuer.ts'

const MAX_AGE_MS = 600_000
/** Limit of fetches for unknown keys, which any token can have. */
const FETCH_RATE = { amount: 6, periodMs: 30_000, text: '6/30s' }
/** Number of keys cached as absent, and for how long: an issuer may publish a key after its first token. */
const MOST_ABSENT = 256
const ABSENT_MS = 5_000
/** Pause after a failed fetch. */
const RETRY_MS = 2_000

export class KeySet {
  readonly #read: () => Promise<string>
  readonly #now: () => number
  #keys: ReturnType<typeof createLocalJWKSet> | undefined
  #readMs = -Infinity
  #triedMs = -Infinity
  readonly #fetches = new TokenBucket(FETCH_RATE)
  /** Absent keys, by their ids or a signature by them, and when they were fetched; oldest first. */
  readonly #absent = new Map<unknown, number>()
  /** Why the last fetch failed; `undefined`: it did not fail. */
  #failure: Error | undefined
  #reading: Promise<void> | undefined

  /** `read`: resolves with the document's text. `now`: monotonic, in milliseconds. */
  constructor(read: () => Promise<string>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  /** Resolves with the key that a token names. Rejects with an error of jose if it does not exist, or with `IssuerUnreachable`. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.#keys === undefined || this.#now() - this.#readMs >= MAX_AGE_MS) {
      const usesOldKeys = this.#failure !== undefined && this.#keys !== undefined
      const refreshed = this.#refresh(RETRY_MS)
      if (!usesOldKeys) await refreshed
    }
    if (this.#keys === undefined) throw this.#unreachable()
    const before = this.#keys
    try {
      return await before(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      await this.fetchFor(header.kid ?? token.signature)
      return this.#keys(header, token)
    }
  }

  /** Fetches the set for an unknown key id or signature. False: that was just done. Rejects with `IssuerUnreachable`. */
  async fetchFor(key: unknown): Promise<boolean> {
    const nowMs = this.#now()
    if (this.#failure === undefined && nowMs - (this.#absent.get(key) ?? -Infinity) < ABSENT_MS) return false
    if (this.#reading === undefined && this.#failure === undefined) {
      if (this.#fetches.waitMs(nowMs) > 0)
        throw new IssuerUnreachable('a key that is not known; the keys were fetched a moment ago, and are fetched again soon')
      this.#fetches.take(nowMs)
    }
    await this.#refresh(this.#failure === undefined ? 0 : RETRY_MS)
    if (this.#failure !== undefined) throw this.#unreachable()
    setBounded(this.#absent, key, nowMs, MOST_ABSENT)
    return true
  }

  /** Fetches the set, at most once at a time and once per `pauseMs`. Never rejects: a failure keeps the old keys. */
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
