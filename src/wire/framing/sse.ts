/**
 * Server-sent events as bytes, in both directions.
 *
 * The surprise: the data of an event is a slice of its chunk, if one chunk holds its line and the owner does not reuse the memory. Else it
 * is a copy.
 */
import { Gathered } from './gathered.ts'
import type { ExpectedSize, Memory } from './gathered.ts'
import { HEAD_BYTES, lastBytes, onOneLine, TAIL_BYTES } from './lines.ts'
import { AHEAD_FROM_BYTES, ScanAhead } from '../json/scan-ahead.ts'
import { readAhead } from '../message/envelope.ts'
import type { Parts } from '../message/payload.ts'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BOM = Buffer.from([0xef, 0xbb, 0xbf])
const NEWLINE = Buffer.from('\n')
const END_OF_EVENT = Buffer.from('\n\n')
const START_OF_MESSAGE = Buffer.from('event: message\ndata: ')
const EMPTY = Buffer.alloc(0)
const DATA = Buffer.from('data:')

/**
 * A comment, which keeps a quiet stream open ([2026-07-28 basic/transports/streamable-http]). No empty line follows it: the parser of the
 * Java SDK requests one more line for a comment but none for an empty line, so that it would stop reading after 256 pairs.
 */
export const COMMENT: Uint8Array = Buffer.from(':\n')

export interface SseEvent {
  /** `message` if the stream named none. */
  readonly event: string
  /** The data lines joined with LF; empty for an event that has only an id or a retry. */
  readonly data: Buffer
  /** The scan of the data while it was received. */
  readonly ahead: ScanAhead | undefined
  /** The id in this event; ids of earlier events are not inherited. */
  readonly id: string | undefined
  /** Milliseconds to wait before reconnecting, if this event has them. */
  readonly retry: number | undefined
}

export interface SseDecoderOptions {
  /** Largest event, in bytes of the stream without comments. */
  readonly maxEventBytes: number
  /** Memory for lines that are received in pieces. */
  readonly memory?: Memory
  /** The size that such lines are expected to have, shared by the streams of one pool. */
  readonly expected?: ExpectedSize
  /** Called for every event that carries data, an id or a retry. */
  onEvent(event: SseEvent): void
  /**
   * An event exceeds the limit and is dropped. Decoding continues with the next one. Called twice: with the beginning of its data, and when
   * the event has ended also with the end of its last line that may be the end of a message.
   */
  onOversize(head: Buffer, tail?: Buffer): void
}

/** Decodes a stream, independent of chunk boundaries. An incomplete event at the end of the stream is dropped [HTML, Server-sent events]. */
export class SseDecoder {
  readonly #options: SseDecoderOptions
  /** The incomplete line. */
  readonly #held: Gathered
  /** The size of the incomplete line, even if it is not kept. */
  #heldBytes = 0
  /** The first data line of the event. */
  #first: Buffer | undefined
  /** All of its data lines, if there are several: joined as they are received, since each may be as short as one byte. */
  #joined: Gathered | undefined
  /** The scan of the event's first line, which is incomplete. */
  #ahead: ScanAhead | undefined
  /** Bytes of the event's lines so far. */
  #eventBytes = 0
  #event = ''
  #id: string | undefined
  #retry: number | undefined
  #isFirstLine = true
  #skipsLf = false
  /** The beginning of the data of an event over the limit; `undefined`: the event is within the limit. */
  #head: Buffer | undefined
  /** The ends of its present line and of the last line that ends with a brace. */
  #lineTail: Buffer = EMPTY
  #tail: Buffer = EMPTY

  constructor(options: SseDecoderOptions) {
    this.#options = options
    this.#held = new Gathered(options.memory, options.expected)
  }

  /** `isReused`: `chunk` is only valid until this returns. */
  push(chunk: Buffer, isReused = false): void {
    if (chunk.length === 0) return
    let at = this.#skipsLf && chunk[0] === LF ? 1 : 0
    this.#skipsLf = false
    let lf = chunk.indexOf(LF, at)
    let cr = chunk.indexOf(CR, at)
    while (lf !== -1 || cr !== -1) {
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf
      this.#endLine(chunk.subarray(at, end), isReused)
      at = end + 1
      if (end === cr) {
        if (at === chunk.length) this.#skipsLf = true
        else if (chunk[at] === LF) at++
        cr = chunk.indexOf(CR, at)
      }
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at)
    }
    if (at < chunk.length) this.#hold(chunk.subarray(at), isReused)
  }

  /** Whether a part of the data of an incomplete event was received. */
  get hasBegun(): boolean {
    return this.#first !== undefined || (this.#heldBytes > 0 && this.#held.bytes.subarray(0, DATA.length).equals(DATA))
  }

  #hold(piece: Buffer, isReused: boolean): void {
    this.#heldBytes += piece.length
    if (this.#head !== undefined) this.#lineTail = lastBytes([this.#lineTail, piece], TAIL_BYTES)
    else if (this.#eventBytes + this.#heldBytes > this.#options.maxEventBytes) this.#drop(piece)
    else {
      this.#held.add(piece, isReused)
      if (this.#heldBytes >= AHEAD_FROM_BYTES && this.#first === undefined) this.#readAhead(this.#held.bytes)
    }
  }

  /** Scans an incomplete line that may be the only data line of its event. */
  #readAhead(line: Buffer): void {
    if (line.compare(DATA, 0, DATA.length, 0, DATA.length) !== 0) return
    readAhead(line.subarray(DATA.length + (line[DATA.length] === SPACE ? 1 : 0)), (this.#ahead ??= new ScanAhead()))
  }

  #endLine(last: Buffer, isReused: boolean): void {
    const isBlank = last.length + this.#heldBytes === 0
    if (this.#head !== undefined) return this.#endDroppedLine(last, isBlank)
    if (this.#eventBytes + this.#heldBytes + last.length > this.#options.maxEventBytes) {
      this.#drop(last)
      return this.#endDroppedLine(EMPTY, isBlank)
    }
    let line = last
    const mustCopy = isReused && this.#heldBytes === 0
    if (this.#heldBytes > 0) {
      this.#held.add(last)
      line = this.#held.take()
      this.#heldBytes = 0
    }
    if (this.#isFirstLine) {
      this.#isFirstLine = false
      if (line.subarray(0, 3).equals(BOM)) line = line.subarray(3)
    }
    if (line.length === 0) this.#dispatch()
    else if (line[0] !== COLON) {
      this.#eventBytes += line.length
      this.#field(line, mustCopy)
    }
  }

  #field(line: Buffer, mustCopy: boolean): void {
    const colon = line.indexOf(COLON)
    const end = colon === -1 ? line.length : colon
    // No known field has a longer name.
    if (end > 5) return
    const value = colon === -1 ? EMPTY : line.subarray(line[end + 1] === SPACE ? end + 2 : end + 1)
    const name = line.toString('latin1', 0, end)
    if (name === 'data') this.#addData(value, mustCopy)
    else if (name === 'event') this.#event = value.toString()
    else if (name === 'id' && !value.includes(0)) this.#id = value.toString()
    else if (name === 'retry') {
      const text = value.toString('latin1')
      if (/^[0-9]+$/.test(text)) this.#retry = Number(text)
    }
  }

  #dispatch(): void {
    const ahead = this.#ahead
    const event = { event: this.#event || 'message', data: this.#data(), ahead, id: this.#id, retry: this.#retry }
    const isBare = this.#first === undefined && event.id === undefined && event.retry === undefined
    this.#reset()
    if (!isBare) this.#options.onEvent(event)
  }

  #addData(line: Buffer, mustCopy: boolean): void {
    if (this.#first === undefined) {
      this.#first = mustCopy ? Buffer.from(line) : line
      return
    }
    if (this.#joined === undefined) {
      this.#joined = new Gathered()
      this.#joined.add(this.#first, true)
    }
    this.#joined.add(NEWLINE, true)
    this.#joined.add(line, true)
  }

  #data(): Buffer {
    return this.#joined?.take() ?? this.#first ?? EMPTY
  }

  /** `piece`: the bytes of the present line after those that are held. */
  #drop(piece: Buffer): void {
    const line = [this.#held.bytes, piece]
    const start = this.#first ?? dataOf(Buffer.concat(line.map((each) => each.subarray(0, HEAD_BYTES))))
    this.#head = Buffer.from(start.subarray(0, HEAD_BYTES))
    this.#tail = EMPTY
    this.#lineTail = lastBytes(line, TAIL_BYTES)
    this.#held.drop()
    this.#reset()
    this.#options.onOversize(this.#head)
  }

  #endDroppedLine(last: Buffer, isBlank: boolean): void {
    const line = lastBytes([this.#lineTail, last], TAIL_BYTES)
    this.#heldBytes = 0
    this.#lineTail = EMPTY
    if (line.toString('latin1').trimEnd().endsWith('}')) this.#tail = line
    if (!isBlank) return
    const head = this.#head ?? EMPTY
    this.#head = undefined
    this.#options.onOversize(head, this.#tail)
  }

  #reset(): void {
    this.#first = this.#joined = undefined
    this.#ahead = undefined
    this.#eventBytes = 0
    this.#event = ''
    this.#id = undefined
    this.#retry = undefined
  }
}

/** The value of an incomplete line of data; empty for any other line. */
const dataOf = (line: Buffer): Buffer => (line.subarray(0, DATA.length).equals(DATA) ? line.subarray(DATA.length) : EMPTY)

/** One event with one data line. `data`: JSON, whose line ends become spaces. `id` and `event` must have no line ends. */
export const encodeEvent = (event: { data: Parts; id?: string; event?: string; retry?: number }): Parts => [
  startOf(event),
  ...event.data.map(onOneLine),
  END_OF_EVENT,
]

const startOf = (event: { id?: string; event?: string; retry?: number }): Buffer => {
  if (event.event === 'message' && event.id === undefined && event.retry === undefined) return START_OF_MESSAGE
  const head =
    (event.event === undefined ? '' : `event: ${event.event}\n`) +
    (event.id === undefined ? '' : `id: ${event.id}\n`) +
    (event.retry === undefined ? '' : `retry: ${event.retry}\n`)
  return Buffer.from(`${head}data: `)
}
