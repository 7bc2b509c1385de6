/**
 * Task ids as hosts see them: which server, which task, and a mark that binds both to the principal who made it (BRIDGING 3.17;
 * B177). Nothing is stored, so an id works after a restart and on every replica that shares the key.
 *
 *     t1.<server key>.<base64url(original)>.<mark>
 */
import type { Seal } from './seal.ts'

const PURPOSE = 'task'
const VERSION = 't1'

export interface OpenedTask {
  /** Server key. */
  readonly server: string
  /** The id the server knows. */
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

  /** What `expose` was given; `undefined` for every other text, and for the id of another principal. */
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
