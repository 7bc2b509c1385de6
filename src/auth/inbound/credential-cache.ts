/**
 * A cache of valid credentials by the SHA-256 of their text: the second request of a host costs a hash and a lookup (DECISIONS 7).
 *
 * Four-way set-associative with a fixed size, so that nothing grows or is rebuilt, and no long-lived `Map` refers to removed entries (see
 * `wire/message/id-table.ts`). If a set is full, the entry that expires first is replaced.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Admitted } from '../identity.ts'

const WAYS = 4
/** After this time a credential is verified again. */
export const REMEMBERED_MS = 60_000

export class CredentialCache {
  readonly #sets: number
  readonly #digests: (Buffer | undefined)[]
  readonly #admitted: (Admitted | undefined)[]
  readonly #untilMs: Float64Array

  /** `places`: number of entries; a power of two, at most 262144. */
  constructor(places = 4_096) {
    this.#sets = places / WAYS
    this.#digests = Array.from({ length: places })
    this.#admitted = Array.from({ length: places })
    this.#untilMs = new Float64Array(places)
  }

  /** `digest`: 32 bytes. */
  find(digest: Buffer, nowMs: number): Admitted | undefined {
    const at = this.#placeOf(digest)
    if (at === undefined) return undefined
    // Cast: each place has a number.
    const leftMs = this.#untilMs[at]! - nowMs
    // More time is left than any entry gets: the clock was set back (F-27).
    return leftMs <= 0 || leftMs > REMEMBERED_MS ? undefined : this.#admitted[at]
  }

  /** Adds a credential for `REMEMBERED_MS`, at most until it expires. */
  set(digest: Buffer, admitted: Admitted, nowMs: number): void {
    const at = this.#placeOf(digest) ?? this.#firstToExpire(digest)
    this.#digests[at] = digest
    this.#admitted[at] = admitted
    this.#untilMs[at] = Math.min(nowMs + REMEMBERED_MS, admitted.untilMs)
  }

  #placeOf(digest: Buffer): number | undefined {
    const first = this.#firstPlace(digest)
    for (let at = first; at < first + WAYS; at++) {
      const kept = this.#digests[at]
      if (kept !== undefined && timingSafeEqual(kept, digest)) return at
    }
    return undefined
  }

  #firstToExpire(digest: Buffer): number {
    const first = this.#firstPlace(digest)
    let chosen = first
    // Cast: each place has a number.
    for (let at = first + 1; at < first + WAYS; at++) if (this.#untilMs[at]! < this.#untilMs[chosen]!) chosen = at
    return chosen
  }

  #firstPlace(digest: Buffer): number {
    return (digest.readUInt16LE(0) % this.#sets) * WAYS
  }
}
