/**
 * One message per line, in both directions ([2026-07-28 basic/transports/stdio]).
 *
 * The result does not depend on chunk boundaries. A line over the limit is not kept: its beginning is reported at once, and its end
 * after the newline, so that the owner can find the id of the message.
 */
import { Gathered } from './gathered.ts'
import type { Memory } from './gathered.ts'
import { AHEAD_FROM_BYTES, ScanAhead } from '../json/scan-ahead.ts'
import { readAhead } from '../message/envelope.ts'
import type { Parts } from '../message/payload.ts'

export interface LineHandler {
  /** A complete line without its LF or CR LF; never empty. `ahead`: the scan of the line while it was received. */
  line(bytes: Buffer, ahead: ScanAhead | undefined): void
  /** A line exceeds the limit and is dropped; `head`: its beginning. */
  overflow(head: Buffer): void
  /** The dropped line has ended; `tail`: its end. */
  discarded(head: Buffer, tail: Buffer): void
}

export interface LineLimits {
  /** Longest line, without its LF. */
  readonly maxBytes: number
  /** Bytes of `head` for longer lines; at most `maxBytes`. */
  readonly headBytes?: number
  /** Memory for lines that are received in pieces. */
  readonly memory?: Memory
  /** Lines are messages of a server: long ones are scanned while they are received. */
  readonly readsAhead?: boolean
}

const LF = 10
const CR = 13
const SPACE = 0x20
export const HEAD_BYTES = 4096
export const TAIL_BYTES = 256

export class LineFramer {
  readonly #handler: LineHandler
  #maxBytes: number
  readonly #headBytes: number
  readonly #gathered: Gathered
  readonly #readsAhead: boolean
  /** The scan of the incomplete line. */
  #ahead: ScanAhead | undefined
  /** Beginning and end so far of a line over the limit. */
  #head: Buffer | undefined
  #tail: Buffer = Buffer.alloc(0)

  constructor(handler: LineHandler, limits: LineLimits) {
    this.#handler = handler
    this.#maxBytes = limits.maxBytes
    this.#gathered = new Gathered(limits.memory)
    this.#readsAhead = limits.readsAhead ?? false
    this.#headBytes = Math.min(limits.headBytes ?? HEAD_BYTES, limits.maxBytes)
  }

  /** Changes the limit, also for the line that is being received. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes
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

  /** The stream has ended: the bytes after the last LF are a line, too. */
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

/** The last `count` bytes of the pieces, copied. */
export const lastBytes = (pieces: readonly Buffer[], count: number): Buffer => {
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

/** A message as one line (B226). */
export const toLine = (parts: Parts): Parts => [...parts.map(onOneLine), NEWLINE]

/** Part of a message, with spaces in place of LF and CR, which JSON allows between tokens only. The original stays unchanged. */
export const onOneLine = (part: Uint8Array): Uint8Array => {
  let lf = part.indexOf(LF)
  let cr = part.indexOf(CR)
  if (lf === -1 && cr === -1) return part
  const copy = Buffer.from(part)
  for (; lf !== -1; lf = copy.indexOf(LF, lf)) copy[lf] = SPACE
  for (; cr !== -1; cr = copy.indexOf(CR, cr)) copy[cr] = SPACE
  return copy
}
