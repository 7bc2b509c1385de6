/**
 * Exposed task ids: server key, original id, and a mark that binds both to the principal of the task (BRIDGING 3.17; B177). Nothing is
 * stored, so an id is valid after a restart and on every replica with the same key.
 *
 *     t1.<server key>.<base64url(original)>.<mark>
 */
import type { Seal } from './seal.ts'

const PURPOSE = 'task'
const VERSION = 't1'

export interface OpenedTask {
  /** Server key. */
  readonly server: string
  /** The server's id. */
  readonly original: string
}

export class TaskIds {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  expose(principal: string, server: string, original: string): string {
    const mark = this.#seal.mark(PURPOSE, textOf(principal, server, original))
    return [VERSION, server, Buffer.from(original).toString('base64url'), mark].join('.')
  }

  /** Returns the arguments of `expose`; `undefined`: any other text, or an id of another principal. */
  open(principal: string, exposed: string): OpenedTask | undefined {
    const [version, server, encoded, mark, ...more] = exposed.split('.')
    if (version !== VERSION || server === undefined || encoded === undefined || mark === undefined || more.length > 0)
      return undefined
    const original = Buffer.from(encoded, 'base64url').toString()
    if (Buffer.from(original).toString('base64url') !== encoded) return undefined
    return this.#seal.isMark(PURPOSE, textOf(principal, server, original), mark) ? { server, original } : undefined
  }
}

const textOf = (...parts: readonly string[]): string => JSON.stringify(parts)
