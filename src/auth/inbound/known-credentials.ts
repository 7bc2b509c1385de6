/**
 * Credentials that were found good a moment ago, by the SHA-256 of their text: what makes the second request of a host cost a hash and
 * a look (DECISIONS 7).
 *
 * A fixed number of places, four for each beginning of a digest: nothing grows, nothing is rebuilt, and nothing old points at a trail
 * of what was forgotten (see `wire/message/id-table.ts`). Who finds its four places taken replaces the one that ends first.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Admitted } from '../identity.ts'

const WAYS = 4
/** How long a decision holds: after it the credential is verified again. */
export const REMEMBERED_MS = 60_000

export class KnownCredentials {
  readonly #rows: number
  readonly #digests: (Buffer | undefined)[]
  readonly #admitted: (Admitted | undefined)[]
  readonly #untilMs: Float64Array

  /** `places`: credentials kept at one time; a power of two, at most 262144. */
  constructor(places = 4_096) {
    this.#rows = places / WAYS
    this.#digests = Array.from({ length: places })
    this.#admitted = Array.from({ length: places })
    this.#untilMs = new Float64Array(places)
  }

  /** `digest`: 32 bytes. */
  find(digest: Buffer, nowMs: number): Admitted | undefined {
    const at = this.#placeOf(digest)
    if (at === undefined) return undefined
    // Cast: there is a number for each place.
    const leftMs = this.#untilMs[at]! - nowMs
    // More is left than there ever was: the clock was set back (F-27).
    return leftMs <= 0 || leftMs > REMEMBERED_MS ? undefined : this.#admitted[at]
  }

  /** Keeps it for `REMEMBERED_MS`, and never longer than it is good. */
  keep(digest: Buffer, admitted: Admitted, nowMs: number): void {
    const at = this.#placeOf(digest) ?? this.#firstToEnd(digest)
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

  #firstToEnd(digest: Buffer): number {
    const first = this.#firstPlace(digest)
    let chosen = first
    // Cast: there is a number for each place.
    for (let at = first + 1; at < first + WAYS; at++) if (this.#untilMs[at]! < this.#untilMs[chosen]!) chosen = at
    return chosen
  }

  #firstPlace(digest: Buffer): number {
    return (digest.readUInt16LE(0) % this.#rows) * WAYS
  }
}
