/**
 * One message per line, as every pipe of MCP carries them ([2026-07-28 basic/transports/stdio]): bytes to lines and back.
 *
 * The result does not depend on chunk boundaries. A line over the limit is not kept: its beginning is reported at once, its end after
 * its newline, so that the owner can find the id of the response.
 */
import { Gathered } from './gathered.ts'
import type { Memory } from './gathered.ts'
import { AHEAD_FROM_BYTES, ScanAhead } from '../json/scan-ahead.ts'
import { readAhead } from '../message/envelope.ts'
import type { Parts } from '../message/payload.ts'

export interface LineHandler {
  /** A complete line without its LF or CR LF; never empty. `ahead`: what was read of it while it came. */
  line(bytes: Buffer, ahead: ScanAhead | undefined): void
  /** A line exceeds the limit; `head` is its beginning. The rest is dropped. */
  overflow(head: Buffer): void
  /** That line has ended; `tail` is its end. */
  discarded(head: Buffer, tail: Buffer): void
}

export interface LineLimits {
  /** Bytes of a line, without its LF. */
  readonly maxBytes: number
  /** Bytes kept of the beginning of a longer line; at most `maxBytes`. */
  readonly headBytes?: number
  /** For lines that come in pieces. */
  readonly memory?: Memory
  /** Lines are messages of a server: long ones are read while they come. */
  readonly readsAhead?: boolean
}

const LF = 10
const CR = 13
const HEAD_BYTES = 4096
const TAIL_BYTES = 256

export class LineFramer {
  readonly #handler: LineHandler
  readonly #maxBytes: number
  readonly #headBytes: number
  readonly #gathered: Gathered
  readonly #readsAhead: boolean
  /** What is known of the line that is gathered. */
  #ahead: ScanAhead | undefined
  /** Of a line over the limit: its beginning, and its end so far. */
  #head: Buffer | undefined
  #tail: Buffer = Buffer.alloc(0)

  constructor(handler: LineHandler, limits: LineLimits) {
    this.#handler = handler
    this.#maxBytes = limits.maxBytes
    this.#gathered = new Gathered(limits.memory)
    this.#readsAhead = limits.readsAhead ?? false
    this.#headBytes = Math.min(limits.headBytes ?? HEAD_BYTES, limits.maxBytes)
  }

  /** `isReused`: `chunk` is only valid until this returns. */
  push(chunk: Buffer, isReused = false): void {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const piece = chunk.subarray(start, end)
      start = end + 1
      if (this.#gathered.length === 0 && this.#head === undefined && piece.length <= this.#maxBytes)
        this.#deliver(isReused ? Buffer.from(piece) : piece)
      else this.#finish(piece, isReused)
    }
    if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start), isReused)
  }

  /** The stream has ended; bytes after the last LF are a line. */
  end(): void {
    this.#finish(Buffer.alloc(0), false)
  }

  #keep(piece: Buffer, isReused: boolean): void {
    const gathered = this.#gathered
    if (this.#head !== undefined) {
      this.#tail = lastBytes([this.#tail, piece], TAIL_BYTES)
    } else if (gathered.length + piece.length > this.#maxBytes) {
      const pieces = [gathered.bytes, piece]
      this.#head = Buffer.concat(pieces, Math.min(this.#headBytes, gathered.length + piece.length))
      this.#tail = lastBytes(pieces, TAIL_BYTES)
      gathered.drop()
      this.#ahead = undefined
      this.#handler.overflow(this.#head)
    } else {
      gathered.add(piece, isReused)
      if (this.#readsAhead && gathered.length >= AHEAD_FROM_BYTES) readAhead(gathered.bytes, (this.#ahead ??= new ScanAhead()))
    }
  }

  #finish(piece: Buffer, isReused: boolean): void {
    this.#keep(piece, isReused)
    const head = this.#head
    this.#head = undefined
    if (head === undefined) this.#deliver(this.#gathered.take(), this.#ahead)
    else this.#handler.discarded(head, this.#tail)
  }

  #deliver(line: Buffer, ahead?: ScanAhead): void {
    this.#ahead = undefined
    const bytes = line.at(-1) === CR ? line.subarray(0, -1) : line
    if (bytes.length > 0) this.#handler.line(bytes, ahead)
  }
}

const lastBytes = (pieces: readonly Buffer[], count: number): Buffer => {
  const kept: Buffer[] = []
  let missing = count
  for (const whole of pieces.toReversed()) {
    if (missing <= 0) break
    const piece = whole.subarray(-missing)
    kept.unshift(piece)
    missing -= piece.length
  }
  return Buffer.concat(kept)
}

const NEWLINE = Buffer.from('\n')

/**
 * A message as one line (B226). LF and CR can only occur between the tokens of pretty-printed JSON; they become spaces, in a copy,
 * so that the original bytes stay unchanged.
 */
export const toLine = (parts: Parts): Parts => [...parts.map(onOneLine), NEWLINE]

const onOneLine = (part: Uint8Array): Uint8Array =>
  part.includes(LF) || part.includes(CR) ? part.map((byte) => (byte === LF || byte === CR ? 0x20 : byte)) : part
