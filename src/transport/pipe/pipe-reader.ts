/**
 * Reads the messages that a server writes to its pipe. Lines that are no messages are reported and skipped (B227).
 *
 * The surprise: it keeps the ids of unanswered requests, because the id of a response that is too long to keep may be unknown (F-06),
 * and because no request may be reported as lost after its response.
 */
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import type { BodyPool } from '../body-pool.ts'
import type { ChannelEvents } from '../channel/channel.ts'
import { isSingle, readIncoming, readOversized } from '../channel/incoming.ts'
import type { Recipient, Unparsable } from '../channel/incoming.ts'

export interface PipeReaderOptions {
  /** Longest line, in bytes. */
  readonly maxMessageBytes: number
  /** Time that all pending requests have left after a response over the limit whose id is unknown. */
  readonly unclaimedMs: number
}

const MIB = 1024 * 1024

export class PipeReader implements Recipient {
  readonly #unclaimedMs: number
  #maxMessageBytes: number
  readonly #framer: LineFramer
  /** Requests that were sent and neither answered nor abandoned. `true`: a host's call, whose response goes to that host only. */
  readonly #unanswered = new Map<number, boolean>()
  readonly #bodies: BodyPool
  readonly #timers = new Set<NodeJS.Timeout>()
  /** `undefined` once it is disposed of. */
  #events: ChannelEvents | undefined
  /** The line that is being read is a single message. */
  #isSingle = false

  constructor(events: ChannelEvents, options: PipeReaderOptions, bodies: BodyPool) {
    this.#bodies = bodies
    this.#events = events
    this.#unclaimedMs = options.unclaimedMs
    this.#maxMessageBytes = options.maxMessageBytes
    this.#framer = new LineFramer(
      {
        line: (line, ahead) => {
          this.#isSingle = isSingle(line)
          readIncoming(line, this, ahead)
        },
        overflow: (head) => this.#oversize(head),
        discarded: (head, tail) => this.#oversize(head, tail),
      },
      { maxBytes: options.maxMessageBytes, memory: bodies, readsAhead: true },
    )
  }

  /** Changes the limit of messages. */
  resize(maxMessageBytes: number): void {
    this.#maxMessageBytes = maxMessageBytes
    this.#framer.resize(maxMessageBytes)
  }

  /** `isReused`: `chunk` is only valid until this returns. */
  push(chunk: Buffer, isReused = false): void {
    this.#framer.push(chunk, isReused)
  }

  /** The pipe has ended, possibly within a line. */
  end(): void {
    this.#framer.end()
  }

  /** The request `id` was sent. */
  expect(id: number, isRelayed = false): void {
    this.#unanswered.set(id, isRelayed)
  }

  /** The response to `id` is no longer needed. */
  forget(id: number): void {
    this.#unanswered.delete(id)
  }

  /** Reports nothing from now on. */
  [Symbol.dispose](): void {
    this.#events = undefined
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#unanswered.clear()
  }

  /** A message of a line. */
  receive(message: Envelope): void {
    if (message.kind === 'response') {
      const id = Number(message.id)
      // Other messages of a batch lie in the same memory.
      if (this.#isSingle && this.#unanswered.get(id) === true) this.#bodies.relayed(message.bytes)
      this.#unanswered.delete(id)
    }
    this.#events?.receive(message)
  }

  /** JSON that is no call and has the id of a pending request counts as its response (BRIDGING 7.2). */
  refuse({ reason, sample, id, requestId }: Unparsable): void {
    this.#events?.unparsable(reason, sample, requestId)
    if (id !== undefined) this.#lose(Number(id), new Failure('bad_response', reason))
  }

  #oversize(head: Buffer, tail?: Buffer): void {
    const amount = this.#maxMessageBytes / MIB
    const reason = `a message exceeds limits.max_message (${this.#maxMessageBytes} bytes)`
    const { kind, id, report } = readOversized(reason, head, tail)
    if (report !== undefined) this.refuse(report)
    if (kind !== 'response') return
    const lose = (lost: number): void =>
      this.#lose(lost, new Failure('too_large', reason, { amount, limit: 'limits.max_message' }))
    if (id !== undefined) lose(Number(id))
    else if (tail !== undefined) this.#loseLater([...this.#unanswered.keys()], lose)
  }

  #lose(id: number, failure: Failure): void {
    if (this.#unanswered.delete(id)) this.#events?.lost(id, failure)
  }

  #loseLater(ids: readonly number[], lose: (id: number) => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      ids.forEach(lose)
    }, this.#unclaimedMs)
    this.#timers.add(timer)
  }
}
