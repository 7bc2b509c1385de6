/**
 * What a server writes to its pipe, as messages. Lines that are no messages are reported and skipped (B227).
 *
 * The surprise: it knows which requests are unanswered, because an answer that is too long to keep may not tell whose it was
 * (F-06), and because no request may be reported as lost after it was answered.
 */
import { EnvelopeError, numberedId, readServerMessage, splitBatch } from '../../wire/message/envelope.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import { readEnds } from '../../wire/message/message-ends.ts'
import { Scanner } from '../../wire/json/scan.ts'
import type { ScanAhead } from '../../wire/json/scan-ahead.ts'
import type { BodyPool } from '../body-pool.ts'
import type { ChannelEvents } from '../channel/channel.ts'
import { OPEN_BRACE } from '../channel/incoming.ts'

export interface PipeReaderOptions {
  /** One line, in bytes. */
  readonly maxMessageBytes: number
  /** After an answer too long to keep that does not tell whose it was, how long all requests of the time have left. */
  readonly unclaimedMs: number
}

const MIB = 1024 * 1024
const SAMPLE_LENGTH = 200

export class PipeReader {
  readonly #options: PipeReaderOptions
  readonly #framer: LineFramer
  /** Requests that were sent and neither answered nor given up; `true`: a host's call, whose response goes to that host alone. */
  readonly #unanswered = new Map<number, boolean>()
  readonly #bodies: BodyPool
  readonly #timers = new Set<NodeJS.Timeout>()
  /** None once it is disposed of. */
  #events: ChannelEvents | undefined

  constructor(events: ChannelEvents, options: PipeReaderOptions, bodies: BodyPool) {
    this.#bodies = bodies
    this.#events = events
    this.#options = options
    this.#framer = new LineFramer(
      {
        line: (line, ahead) => this.#readLine(line, ahead),
        overflow: (head) => this.#readEnds(head),
        discarded: (head, tail) => this.#readEnds(head, tail),
      },
      { maxBytes: options.maxMessageBytes, memory: bodies, readsAhead: true },
    )
  }

  /** `isReused`: `chunk` is only valid until this returns. */
  push(chunk: Buffer, isReused = false): void {
    this.#framer.push(chunk, isReused)
  }

  /** The pipe has ended, perhaps within a line. */
  end(): void {
    this.#framer.end()
  }

  /** The request `id` was sent. */
  expect(id: number, isRelayed = false): void {
    this.#unanswered.set(id, isRelayed)
  }

  /** The response to `id` is not needed any more. */
  forget(id: number): void {
    this.#unanswered.delete(id)
  }

  /** Reports nothing from here on. */
  [Symbol.dispose](): void {
    this.#events = undefined
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#unanswered.clear()
  }

  /** A line may hold a batch ([2025-03-26 basic/index]). */
  #readLine(line: Buffer, ahead: ScanAhead | undefined): void {
    try {
      // Only `[` needs the look for a batch: a message begins with a brace.
      const batch = line[0] === OPEN_BRACE ? undefined : splitBatch(line)
      if (batch === undefined) this.#readMessage(line, true, ahead)
      else for (const message of batch) this.#readMessage(message, false)
    } catch (error) {
      this.#refuse(error, line)
    }
  }

  /** `isAlone`: no other message lies in the same memory. */
  #readMessage(bytes: Buffer, isAlone: boolean, ahead?: ScanAhead): void {
    let envelope: Envelope
    try {
      envelope = readServerMessage(bytes, ahead)
    } catch (error) {
      this.#refuse(error, bytes)
      return
    }
    if (envelope.kind === 'response') {
      const id = Number(envelope.id)
      if (isAlone && this.#unanswered.get(id) === true) this.#bodies.relayed(bytes)
      this.#unanswered.delete(id)
    }
    this.#events?.receive(envelope)
  }

  /** What is JSON, no call, and has the id of one of our requests, was meant as its answer (BRIDGING 7.2). */
  #refuse(error: unknown, bytes: Buffer): void {
    // An unexpected error costs the message that caused it, like any other (B271).
    if (!(error instanceof EnvelopeError)) return this.#events?.unparsable(`unexpected error: ${String(error)}`, sampleOf(bytes))
    this.#events?.unparsable(error.message, sampleOf(bytes))
    if (error.id !== undefined && !mayBeCall(bytes))
      this.#lose(Number(numberedId(error.id)), new Failure('bad_response', error.message))
  }

  #readEnds(head: Buffer, tail?: Buffer): void {
    const { kind, id } = readEnds(head, tail)
    const amount = this.#options.maxMessageBytes / MIB
    const reason = `a line of more than ${amount} MiB`
    if (tail === undefined) this.#events?.unparsable(reason, sampleOf(head))
    if (kind !== 'response') return
    const lose = (lost: number): void =>
      this.#lose(lost, new Failure('too_large', reason, { amount, limit: 'limits.max_message' }))
    if (id !== undefined) lose(Number(numberedId(id)))
    else if (tail !== undefined) this.#loseLater([...this.#unanswered.keys()], lose)
  }

  #lose(id: number, failure: Failure): void {
    if (this.#unanswered.delete(id)) this.#events?.lost(id, failure)
  }

  #loseLater(ids: readonly number[], lose: (id: number) => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      ids.forEach(lose)
    }, this.#options.unclaimedMs)
    this.#timers.add(timer)
  }
}

/** The scan is lenient inside strings, so that what it took for JSON may be none. Not parsed: depth makes that slow (T-24). */
const mayBeCall = (bytes: Buffer): boolean => {
  try {
    return new Scanner(bytes).members().some(({ key }) => key === 'method')
  } catch {
    return true
  }
}

const sampleOf = (bytes: Buffer): string => bytes.toString('utf8', 0, 4 * SAMPLE_LENGTH).slice(0, SAMPLE_LENGTH)
