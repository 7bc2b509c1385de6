/**
 * The connections to one server over HTTP+SSE. Servers that connect one `Server` object to every stream (the README of the SDK of
 * TypeScript up to 1.9) write all answers on the stream that was opened last, so a connection may receive an answer to a request of
 * another one. It is handed over while all connections serve one caller. Servers that write each answer to all streams are noticed by
 * the second copy; their answers are not handed over, since progress may still be on its way on the right stream.
 */
import type { Envelope } from '../wire/message/envelope.ts'
import type { Connection, RequestIds } from './connection.ts'

export class SseSiblings {
  readonly #ids: RequestIds
  /** With the caller of each; `undefined`: the main link. */
  readonly #members = new Map<Connection, string | undefined>()
  /** The id of the last answer that was handed over. */
  #handedOver: number | undefined
  #isWrittenToAll = false

  /** `ids`: the counter of all servers. */
  constructor(ids: RequestIds) {
    this.#ids = ids
  }

  /** The ids for a further connection. `principal`: its only caller; `undefined`: the gateway itself. */
  idsFor(principal: string | undefined): RequestIds {
    const ids = this.#ids
    return {
      get next() {
        return ids.next
      },
      set next(next) {
        ids.next = next
      },
      siblings: {
        add: (connection) => void this.#members.set(connection, principal),
        remove: (connection) => void this.#members.delete(connection),
        answer: (id, message) => this.#answer(id, message),
        progress: (token, message) => this.#mayHandOver() && this.#some((member) => member.progressed(token, message)),
      },
    }
  }

  #answer(id: number, message: Envelope): boolean {
    if (id === this.#handedOver) this.#isWrittenToAll = true
    if (!this.#mayHandOver() || !this.#some((member) => member.answered(id, message))) return false
    this.#handedOver = id
    return true
  }

  #mayHandOver(): boolean {
    if (this.#isWrittenToAll) return false
    const principals = new Set(this.#members.values())
    principals.delete(undefined)
    return principals.size <= 1
  }

  #some(takes: (member: Connection) => boolean): boolean {
    for (const member of this.#members.keys()) if (takes(member)) return true
    return false
  }
}
