/**
 * A host's pipe: lines in, one line per message out, over any pair of streams (our own stdin and stdout, or a socket that
 * stands for them). It knows lines only; what they say is read above.
 */
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Failure } from '../../wire/message/failure.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { BodyPool } from '../body-pool.ts'
import { readInPlace } from '../read-in-place.ts'
import { takenBytes } from '../stall-timer.ts'
import { LineWriter } from './line-writer.ts'

export interface HostPipeOptions {
  /** One line from the host, in bytes. */
  readonly maxLineBytes: number
  /** What may wait to be read by a host that takes nothing. More than a stream of HTTP may hold: here all answers to all calls share one pipe. */
  readonly maxQueuedBytes: number
  /** A host that reads nothing for so long is given up (F-21). */
  readonly stallMs: number
  /** How long `close` waits until what was written has been taken. */
  readonly closeMs: number
  /** Where big messages lie until they are written, and what is read goes through. */
  readonly bodies?: BodyPool
}

const MIB = 1024 * 1024
/** Bytes that may wait for the host before a server that sends to this host alone is paused (backpressure). */
const STALLED_BYTES = MIB
/** `maxQueuedBytes` applies when the host has taken nothing for this part of `stallMs`. */
const SILENT_PART = 0.25

export const DEFAULT_HOST_PIPE: HostPipeOptions = {
  maxLineBytes: 4 * MIB,
  maxQueuedBytes: 64 * MIB,
  stallMs: 10_000,
  closeMs: 1000,
}

export interface HostPipeEvents {
  /** A line without its LF; never empty, not yet looked into. */
  line(bytes: Buffer): void
  /** A line was over the limit: its beginning and its end, in which `readEnds` may find the id. */
  overflow(head: Buffer, tail: Buffer): void
  /** Nothing more will come, once: `undefined` at the end of the input, else why the host was given up. */
  ended(failure: Failure | undefined): void
}

export class HostPipe {
  readonly #input: Readable
  readonly #output: Writable
  readonly #options: HostPipeOptions
  readonly #writer: LineWriter
  #events: HostPipeEvents | undefined
  #framer: LineFramer | undefined
  #maxLineBytes: number
  /** Queued bytes that are counted as held. Few bytes are not counted. */
  #held = 0
  /** What the system had taken when the queue was last full, and when that changed last. */
  #taken: number | undefined
  #takenMs = 0
  #hasEnded = false
  #closing: Promise<void> | undefined

  constructor(input: Readable, output: Writable, options: Partial<HostPipeOptions> = {}) {
    this.#input = input
    this.#output = output
    this.#options = { ...DEFAULT_HOST_PIPE, ...options }
    const { maxLineBytes, maxQueuedBytes, stallMs, bodies } = this.#options
    this.#maxLineBytes = maxLineBytes
    const onStall = (): void => this.#end(new Failure('lost', `the host read nothing for ${stallMs / 1000} s`))
    // A stream in memory hands on the bytes themselves: when they have been read is not known.
    const isSystem = output instanceof Socket
    this.#writer = new LineWriter(output, {
      maxQueuedBytes,
      mayExceed: (bytes) => this.#isReading() && bodies?.held.hasRoomFor(bytes) === true,
      slowBytes: STALLED_BYTES,
      stallMs,
      onStall,
      onTaken: () => {
        if (this.#held > 0) this.#hold(this.#writer.queuedBytes)
      },
      ...(bodies && isSystem && { bodies }),
    })
  }

  /** Begins to read. */
  open(events: HostPipeEvents): void {
    this.#events = events
    const framer = new LineFramer(
      {
        line: (bytes) => this.#hasEnded || events.line(bytes),
        overflow: () => {},
        discarded: (head, tail) => this.#hasEnded || events.overflow(head, tail),
      },
      { maxBytes: this.#maxLineBytes },
    )
    this.#framer = framer
    const { bodies } = this.#options
    if (bodies === undefined || readInPlace(this.#input, bodies.reads, (bytes) => framer.push(bytes, true)) === undefined)
      this.#input.on('data', (chunk: Buffer) => framer.push(chunk))
    this.#input.once('end', () => {
      framer.end()
      this.#end(undefined)
    })
    this.#input.once('close', () => this.#end(undefined))
    this.#input.on('error', (error) => this.#end(new Failure('lost', `reading from the host: ${error.message}`, {}, error)))
    this.#output.on('error', (error) => this.#end(new Failure('lost', `writing to the host: ${error.message}`, {}, error)))
  }

  /** Changes the limit of a line. */
  resize(maxLineBytes: number): void {
    this.#maxLineBytes = maxLineBytes
    this.#framer?.resize(maxLineBytes)
  }

  /** Much waits for the host. */
  get isStalled(): boolean {
    return this.#writer.queuedBytes > STALLED_BYTES && !this.#hasEnded
  }

  /** Queues one message; once the host is gone it is dropped. */
  write(parts: Parts): void {
    if (this.#closing !== undefined) return
    const result = this.#writer.write(parts)
    if (result === 'slow') this.#hold(this.#writer.queuedBytes)
    if (result !== 'full') return
    this.#end(new Failure('lost', `the host does not read: ${this.#options.maxQueuedBytes / MIB} MiB wait for it`))
  }

  /** Stops reading and ends the output; resolves when the host has taken everything, at the latest after `closeMs`. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#writer.flush()
    this.#hasEnded = true
    this.#input.destroy()
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, this.#options.closeMs)
      const done = (): void => {
        clearTimeout(late)
        resolve()
      }
      this.#output.once('close', done)
      this.#output.end(done)
    })
    this.#writer.dispose()
    this.#hold(0)
  }

  /** Whether the host has taken bytes lately. It then gets its answers, which other limits bound (F-21). */
  #isReading(): boolean {
    const taken = takenBytes(this.#output)
    const nowMs = performance.now()
    if (taken !== this.#taken) {
      this.#taken = taken
      this.#takenMs = nowMs
    }
    return taken !== undefined && nowMs - this.#takenMs < this.#options.stallMs * SILENT_PART
  }

  #hold(bytes: number): void {
    this.#options.bodies?.held.add(bytes - this.#held)
    this.#held = bytes
  }

  #end(failure: Failure | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#events?.ended(failure)
  }
}
