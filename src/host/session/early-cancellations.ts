/**
 * Cancellations that arrive before their requests: over HTTP each message has its own connection, and the later one can be faster. Only numbers
 * above the ids of all requests so far are kept, because other ids belong to requests that have ended: a host that uses an id again gets
 * its answer.
 */
import { setBounded } from '../../values/bounded-map.ts'
import { byteLength } from '../../wire/message/payload.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Id } from '../../wire/message/envelope.ts'

/** Limits: number, bytes of one, and for how long they are kept, ms. */
const MAX_KEPT = 32
const MAX_BYTES = 1024
const KEPT_MS = 5_000

interface Kept {
  readonly notice: Payload
  /** When it arrived. */
  readonly atMs: number
}

export class EarlyCancellations {
  /** The greatest number that was the id of a request. */
  #highest = -1
  #kept: Map<Id, Kept> | undefined

  /** A cancellation whose id (`idKey`) no request in flight has. */
  keep(id: Id, notice: Payload): void {
    if (!(Number(id) > this.#highest) || byteLength(notice.parts()) > MAX_BYTES) return
    this.#kept ??= new Map()
    setBounded(this.#kept, id, { notice, atMs: performance.now() }, MAX_KEPT)
  }

  /** A request begins; returns its cancellation, if that has arrived. */
  begun(id: Id): Payload | undefined {
    const number = Number(id)
    if (number > this.#highest) this.#highest = number
    const kept = this.#kept?.get(id)
    if (kept === undefined) return undefined
    this.#kept?.delete(id)
    return performance.now() - kept.atMs > KEPT_MS ? undefined : kept.notice
  }
}
