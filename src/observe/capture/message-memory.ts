/**
 * Memory of captured messages, which are copied into large segments that are reused when their calls are removed. So capturing a message
 * allocates little and gives the garbage collector nothing to move.
 *
 * Bytes are copied unchanged, because the search for secrets costs far more than the call itself. The search follows soon, in short slices
 * (`secret-search.ts`), and always before a message is shown. Bytes of a message with secrets are then overwritten (0135).
 */
import { byteLength } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { withoutSecrets } from './body.ts'
import type { Hide, KeptBody } from './body.ts'
import { firstBytes, lastBytes } from '../../values/cut-text.ts'

const SEGMENT_BYTES = 1024 * 1024
/** Segments kept for reuse. */
const MAX_FREE = 2
/** Bytes kept around a cut, so that a secret across it is found. */
export const MARGIN = 4_096
/** Approximate memory of a captured message besides its bytes. */
const BASE_SIZE = 128

interface Segment {
  readonly bytes: Buffer
  /** Bytes written. */
  used: number
  /** Number of messages in it. */
  messages: number
}

export class MessageMemory {
  #current: Segment | undefined
  readonly #free: Segment[] = []
  #segments = 0

  /** Segments in use or kept for reuse. */
  get segments(): number {
    return this.#segments
  }

  /** Copies a message: whole up to `maxBytes`, else its beginning and end. */
  copy(parts: Parts, maxBytes: number, isStreamed = false): CapturedMessage {
    const bytes = byteLength(parts)
    if (bytes <= maxBytes) return this.#keep(parts, bytes, bytes, 0, bytes, isStreamed)
    const half = Math.floor(maxBytes / 2)
    const edge = Math.min(bytes, half + MARGIN)
    const ends = [...slices(parts, 0, edge), ...slices(parts, bytes - edge, bytes)]
    return this.#keep(ends, 2 * edge, bytes, half, edge, isStreamed)
  }

  /** Copies the kept ends of a streamed message of `bytes`. */
  copyEnds(head: Parts, tail: Parts, bytes: number, maxBytes: number): CapturedMessage {
    const headBytes = byteLength(head)
    const length = headBytes + byteLength(tail)
    if (length === bytes) return this.copy([...head, ...tail], maxBytes, true)
    const half = Math.floor(maxBytes / 2)
    return this.#keep([...head, ...tail], length, bytes, half, headBytes, true)
  }

  /** Releases one message of a segment. */
  release(segment: Segment): void {
    if (--segment.messages > 0) return
    if (segment === this.#current) segment.used = 0
    else this.#retire(segment)
  }

  #keep(parts: Parts, length: number, bytes: number, half: number, headBytes: number, isStreamed: boolean): CapturedMessage {
    const segment = this.#withRoom(length)
    const start = segment.used
    let at = start
    for (const part of parts) {
      segment.bytes.set(part, at)
      at += part.length
    }
    segment.used = at
    segment.messages++
    return new CapturedMessage({ memory: this, segment, start, end: at, bytes, half, headBytes, isStreamed })
  }

  #withRoom(length: number): Segment {
    const current = this.#current
    if (current !== undefined && current.bytes.length - current.used >= length) return current
    const isUsual = length <= SEGMENT_BYTES
    const next = (isUsual ? this.#free.pop() : undefined) ?? this.#open(Math.max(length, SEGMENT_BYTES))
    this.#current = next
    if (current?.messages === 0) this.#retire(current)
    return next
  }

  #open(length: number): Segment {
    this.#segments++
    return { bytes: Buffer.allocUnsafeSlow(length), used: 0, messages: 0 }
  }

  #retire(segment: Segment): void {
    segment.used = 0
    if (segment.bytes.length === SEGMENT_BYTES && this.#free.length < MAX_FREE) this.#free.push(segment)
    else this.#segments--
  }
}

interface MessagePlace {
  readonly memory: MessageMemory
  readonly segment: Segment
  readonly start: number
  readonly end: number
  /** Size of the message. */
  readonly bytes: number
  /** Bytes shown of each end; 0: the whole message is kept. */
  readonly half: number
  /** Length of the kept beginning. */
  readonly headBytes: number
  readonly isStreamed: boolean
}

export class CapturedMessage {
  readonly #memory: MessageMemory
  readonly #start: number
  readonly #end: number
  readonly #bytes: number
  readonly #half: number
  readonly #headBytes: number
  readonly #isStreamed: boolean
  /** `undefined`: its bytes are overwritten or released. */
  #segment: Segment | undefined
  /** The message without secrets; `undefined`: none were found. */
  #shown: KeptBody | undefined
  #isSearched = false

  constructor({ memory, segment, start, end, bytes, half, headBytes, isStreamed }: MessagePlace) {
    this.#memory = memory
    this.#segment = segment
    this.#start = start
    this.#end = end
    this.#bytes = bytes
    this.#half = half
    this.#headBytes = headBytes
    this.#isStreamed = isStreamed
  }

  /** Approximate memory in bytes. */
  get size(): number {
    return BASE_SIZE + this.#end - this.#start
  }

  /** Returns the message without secrets, also those that became known after its capture. */
  shown(hide: Hide): KeptBody {
    return this.#shown === undefined ? this.#search(hide) : { ...this.#shown, ...hiddenIn(this.#shown, hide) }
  }

  /** Searches for secrets once, and overwrites the bytes if there are any. */
  search(hide: Hide): void {
    if (!this.#isSearched) this.#search(hide)
  }

  /** Releases its memory for reuse. */
  release(): void {
    if (this.#segment !== undefined) this.#memory.release(this.#segment)
    this.#segment = undefined
  }

  #search(hide: Hide): KeptBody {
    const bytes = this.#bytes
    const half = this.#half
    const middle = this.#start + this.#headBytes
    this.#isSearched = true
    const streamed = this.#isStreamed ? { streamed: true as const } : {}
    const first = this.#text(this.#start, middle)
    const head = withoutSecrets(first, hide)
    if (half === 0) return this.#keepIf(head !== first, { bytes, text: head, ...streamed })
    const last = this.#text(middle, this.#end)
    const tail = withoutSecrets(last, hide)
    const omitted = Math.max(0, bytes - 2 * half)
    // Of a cut end as much is left out as if nothing was hidden: a secret may be cut with it.
    const most = (kept: number, text: string): number =>
      kept < bytes ? Math.min(half, Buffer.byteLength(text) - kept + half) : half
    const ends = {
      head: firstBytes(head, most(middle - this.#start, head)),
      tail: lastBytes(tail, most(this.#end - middle, tail)),
    }
    return this.#keepIf(head !== first || tail !== last, { bytes, ...ends, omitted, ...streamed })
  }

  #text(start: number, end: number): string {
    return this.#segment?.bytes.toString('utf8', start, end) ?? ''
  }

  #keepIf(hasSecrets: boolean, body: KeptBody): KeptBody {
    if (!hasSecrets) return body
    this.#shown = body
    this.#segment?.bytes.fill(0, this.#start, this.#end)
    this.release()
    return body
  }
}

const hiddenIn = ({ text, head, tail }: KeptBody, hide: Hide): Partial<KeptBody> =>
  text === undefined ? { head: hide(head ?? ''), tail: hide(tail ?? '') } : { text: hide(text) }

/** Returns the bytes from `start` to `end` without joining the parts. */
const slices = (parts: Parts, start: number, end: number): Parts => {
  const found: Uint8Array[] = []
  let at = 0
  for (const part of parts) {
    const from = Math.max(0, start - at)
    const to = Math.min(part.length, end - at)
    if (from < to) found.push(part.subarray(from, to))
    at += part.length
    if (at >= end) break
  }
  return found
}

/** Collects the beginning and end of a streamed message. */
export class EndsCollector {
  readonly #maxBytes: number
  readonly #half: number
  readonly #head: Buffer[] = []
  #tail: Buffer[] = []
  #headBytes = 0
  #tailBytes = 0
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#half = Math.floor(maxBytes / 2) + MARGIN
  }

  /** Copies from `chunk`, whose memory may be reused afterwards. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    const room = Math.min(chunk.length, this.#half - this.#headBytes)
    if (room > 0) this.#head.push(Buffer.from(chunk.subarray(0, room)))
    this.#headBytes += Math.max(0, room)
    const rest = chunk.subarray(Math.max(0, room))
    if (rest.length === 0) return
    this.#tail.push(Buffer.from(rest.subarray(-this.#half)))
    this.#tailBytes += Math.min(rest.length, this.#half)
    // Drops the oldest pieces when the newer ones are enough.
    for (let first = this.#tail[0]; first !== undefined && this.#tailBytes - first.length >= this.#half; first = this.#tail[0]) {
      this.#tail.shift()
      this.#tailBytes -= first.length
    }
  }

  captured(memory: MessageMemory): CapturedMessage {
    return memory.copyEnds(this.#head, this.#tail, this.#bytes, this.#maxBytes)
  }
}
