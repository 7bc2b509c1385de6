/**
 * Judges that a session is served by one replica at a time: once another one has run a call of it, the one before runs none that began
 * later, unless it has claimed the session again.
 */
import { createHash } from 'node:crypto'
import type { SimulatedNode } from './node.ts'

interface Run {
  readonly node: SimulatedNode
  readonly atMs: number
}

interface Call {
  readonly session: string
  readonly beganMs: number
}

export class Ownership {
  readonly #nowMs: () => number
  readonly #found: (finding: string) => void
  /** By the number of the call. */
  readonly #calls = new Map<number, Call>()
  /** By digest of the session: the latest that a server has run, and when each replica claimed it last. */
  readonly #runs = new Map<string, Run>()
  readonly #claims = new Map<string, Map<SimulatedNode, number>>()

  constructor(nowMs: () => number, found: (finding: string) => void) {
    this.#nowMs = nowMs
    this.#found = found
  }

  /** A call of this session begins. */
  began(nonce: number, session: string): void {
    this.#calls.set(nonce, { session: digestOf(session), beganMs: this.#nowMs() })
  }

  claimed(session: string, by: SimulatedNode): void {
    const claims = this.#claims.get(session) ?? new Map<SimulatedNode, number>()
    this.#claims.set(session, claims.set(by, this.#nowMs()))
  }

  /** A server has got the call from this replica. */
  executed(nonce: number, node: SimulatedNode): void {
    const call = this.#calls.get(nonce)
    if (call === undefined) return
    this.#calls.delete(nonce)
    const { session, beganMs } = call
    const before = this.#runs.get(session)
    this.#runs.set(session, { node, atMs: this.#nowMs() })
    if (before === undefined || before.node === node || before.node.isDead || before.atMs > beganMs) return
    const claimedMs = this.#claims.get(session)?.get(node)
    if (claimedMs !== undefined && claimedMs >= (this.#claims.get(session)?.get(before.node) ?? 0)) return
    this.#found(
      `call ${nonce} was run by ${node.name} at ${Math.round(this.#nowMs())} ms, though ${before.node.name} has had its session since ${Math.round(before.atMs)} ms`,
    )
  }
}

const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 22)
