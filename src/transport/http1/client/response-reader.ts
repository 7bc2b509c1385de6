/**
 * Reads HTTP/1.1 responses from the bytes of one connection, one response at a time ([RFC 9112]).
 *
 * Ambiguous input is refused and ends the connection. Informational heads are passed over, as many as come: some servers send one every few
 * seconds during a long request, and the time limit of the request ends them. The surprise: bytes given to `push` are valid only during the call, since the
 * next read uses the same buffer. Bytes that are kept are copied.
 *
 * Gain: a call through undici uses about twice as much CPU (decision 0009).
 */
import { isField, ResponseError, ResponseHead } from './response-head.ts'

/** Events of a response; the bytes of `onData` are valid during the call. */
export interface ResponseEvents {
  onHead(head: ResponseHead): void
  onData(bytes: Buffer): void
}

/** Maximum bytes of a head, or of the trailers, as in node:http. */
const MAX_HEAD_BYTES = 16 * 1024
/** Maximum bytes of a chunk's size and extensions. */
const MAX_SIZE_LINE_BYTES = 1024
/** A longer head is parsed each time. */
const MAX_REPEATED_BYTES = 1024

const SIZE_LINE = /^([0-9a-fA-F]{1,12})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?$/
const EMPTY = Buffer.alloc(0)
const CR = 0x0d
const LF = 0x0a

type State = 'head' | 'counted' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-close' | 'done'

export class ResponseReader {
  #events: ResponseEvents | undefined
  #state: State = 'done'
  /** Remaining bytes of the body or of the chunk. */
  #remaining = 0
  /** Bytes of an incomplete element. */
  #incomplete = EMPTY
  #trailerBytes = 0
  #keepsAlive = false
  /** One-entry cache: the head of the last response, with its bytes. */
  #head: ResponseHead | undefined
  readonly #headBytes = Buffer.allocUnsafe(MAX_REPEATED_BYTES)
  #headLength = 0

  /** Events of the next response go to `events`. */
  begin(events: ResponseEvents): void {
    this.#events = events
    this.#state = 'head'
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }
  /** Whether the connection may carry another request after this response. */
  get keepsAlive(): boolean {
    return this.#keepsAlive
  }

  /**
   * Parses the first `length` of `bytes`; throws `ResponseError`. Bytes after the response belong to no request: the connection
   * must not be used again.
   */
  push(bytes: Buffer, length = bytes.length): void {
    const isJoined = this.#incomplete.length > 0
    const input = isJoined ? Buffer.concat([this.#incomplete, bytes.subarray(0, length)]) : bytes
    const end = isJoined ? input.length : length
    this.#incomplete = EMPTY
    let at = 0
    while (at < end && this.#state !== 'done') {
      const next = this.#step(input, at, end)
      if (next === at) {
        this.#incomplete = Buffer.from(input.subarray(at, end))
        return
      }
      at = next
    }
    if (at < end) this.#keepsAlive = false
  }

  /** The server has closed its side, which ends a body without a length. False: the response is incomplete. */
  finish(): boolean {
    if (this.#state !== 'until-close') return this.#state === 'done'
    this.#state = 'done'
    return true
  }

  /** Reads one element of the message; returns the offset after it, or `at` if it is incomplete. */
  #step(input: Buffer, at: number, end: number): number {
    if (this.#state === 'head') return this.#readHead(input, at, end)
    if (this.#state === 'counted' || this.#state === 'chunk') return this.#readCounted(input, at, end)
    if (this.#state === 'until-close') {
      this.#events?.onData(input.subarray(at, end))
      return end
    }
    const maxBytes = this.#state === 'chunk-end' ? 0 : this.#state === 'size' ? MAX_SIZE_LINE_BYTES : MAX_HEAD_BYTES
    const lineEnd = endOf(input, 1, at, end, maxBytes)
    if (lineEnd === -1) return at
    if (this.#state === 'size') this.#readSize(input.toString('latin1', at, lineEnd))
    else if (this.#state === 'chunk-end') this.#state = 'size'
    else this.#readTrailer(input.toString('latin1', at, lineEnd))
    return lineEnd + 2
  }

  #readCounted(input: Buffer, at: number, end: number): number {
    const next = Math.min(end, at + this.#remaining)
    this.#remaining -= next - at
    // The state is set first: the callback for the last byte may check whether the response is complete.
    if (this.#remaining === 0) this.#state = this.#state === 'chunk' ? 'chunk-end' : 'done'
    this.#events?.onData(input.subarray(at, next))
    return next
  }

  #readHead(input: Buffer, at: number, end: number): number {
    if (this.#head !== undefined && this.#isRepeated(input, at, end)) {
      this.#begin(this.#head)
      return at + this.#headLength
    }
    const lastLine = endOf(input, 2, at, end, MAX_HEAD_BYTES)
    if (lastLine === -1) return at
    const head = ResponseHead.read(input.toString('latin1', at, lastLine + 2), this.#head)
    if (head.isFinal) {
      this.#head = head
      this.#headLength = lastLine + 4 - at
      if (this.#headLength <= MAX_REPEATED_BYTES) input.copy(this.#headBytes, 0, at, lastLine + 4)
      this.#begin(head)
    } else if (head.status === 101) throw new ResponseError('101 Switching Protocols, which was not requested')
    return lastLine + 4
  }

  #isRepeated(input: Buffer, at: number, end: number): boolean {
    const length = this.#headLength
    if (length > MAX_REPEATED_BYTES || end - at < length) return false
    const bytes = this.#headBytes
    for (let index = 0; index < length; index++) if (bytes[index] !== input[at + index]) return false
    return true
  }

  #begin(head: ResponseHead): void {
    this.#keepsAlive = head.keepsAlive
    this.#remaining = head.length
    this.#trailerBytes = 0
    this.#state = head.framing === 'none' ? 'done' : head.framing === 'chunked' ? 'size' : head.framing
    this.#events?.onHead(head)
  }

  #readSize(line: string): void {
    const size = SIZE_LINE.exec(line)?.[1]
    if (size === undefined) throw new ResponseError(`not a chunk size: ${JSON.stringify(line.slice(0, 80))}`)
    this.#remaining = Number.parseInt(size, 16)
    this.#state = this.#remaining === 0 ? 'trailers' : 'chunk'
  }

  /** Trailers are checked and dropped; the empty line ends the message. */
  #readTrailer(line: string): void {
    this.#trailerBytes += line.length + 2
    if (this.#trailerBytes > MAX_HEAD_BYTES) throw new ResponseError(`trailers of more than ${MAX_HEAD_BYTES} bytes`)
    if (line === '') this.#state = 'done'
    else if (!isField(line)) throw new ResponseError('a malformed trailer')
  }
}

/**
 * The offset of the first `breaks` CRLF in a row, from `at` on, with at most `maxBytes` before them; -1: not received yet. A line that ends
 * with LF alone is refused: the end would never be found.
 */
const endOf = (input: Buffer, breaks: 1 | 2, at: number, end: number, maxBytes: number): number => {
  const last = Math.min(end, at + maxBytes + 2 * breaks)
  for (let index = at; index < last; index++) {
    if (input[index] !== LF) continue
    if (index === at || input[index - 1] !== CR) throw new ResponseError('a line does not end with CRLF')
    if (breaks === 1) return index - 1
    if (index - 3 >= at && input[index - 2] === LF) return index - 3
  }
  if (end - 2 * breaks < at + maxBytes) return -1
  throw new ResponseError(maxBytes === 0 ? 'a chunk does not end with CRLF' : `more than ${maxBytes} bytes without an end`)
}
