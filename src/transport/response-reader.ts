/**
 * Reads HTTP/1.1 responses out of the bytes of one connection, one response at a time ([RFC 9112]).
 *
 * It refuses rather than guesses: whatever two readers could understand differently ends the connection. The surprise: bytes
 * handed to `push` are only lent, as they come from a buffer that the next read fills again; what must wait is copied.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** What is told of a response; `onData` lends its bytes. */
export interface ResponseEvents {
  onHead(status: number, headers: IncomingHttpHeaders): void
  onData(bytes: Buffer): void
}

/** The server did not speak HTTP/1.1, or not strictly. */
export class ResponseError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ResponseError'
  }
}

/** As node:http: a head, or the trailers, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024
const MAX_HEADERS = 100
/** A chunk's size and its extensions. */
const MAX_SIZE_LINE_BYTES = 1024
const MAX_INFORMATIONAL = 8
/** Header lines remembered for the next response of the connection. */
const MAX_KNOWN = 32

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/
const SIZE_LINE = /^([0-9a-fA-F]{1,12})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?$/
const EMPTY = Buffer.alloc(0)

type Header = readonly [name: string, value: string]

type State = 'head' | 'counted' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-close' | 'done'

export class ResponseReader {
  #events: ResponseEvents | undefined
  #state: State = 'done'
  /** Bytes of the body, or of the chunk, that are to come. */
  #left = 0
  #held = EMPTY
  #informational = 0
  #trailerBytes = 0
  #keepsAlive = false
  #hasBegun = false
  readonly #known = new Map<string, Header>()

  /** The next response is told to `events`. */
  begin(events: ResponseEvents): void {
    this.#events = events
    this.#state = 'head'
    this.#informational = 0
    this.#hasBegun = false
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }
  /** Whether a byte of the response has come. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }
  /** Whether the connection may carry another request after this response. */
  get keepsAlive(): boolean {
    return this.#keepsAlive
  }

  /** Takes what came; throws `ResponseError`. Bytes behind the response are nobody's: the connection must not be used again. */
  push(bytes: Buffer): void {
    this.#hasBegun = true
    const input = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    this.#held = EMPTY
    let at = 0
    while (at < input.length && this.#state !== 'done') {
      const next = this.#step(input, at)
      if (next === at) {
        this.#held = Buffer.from(input.subarray(at))
        return
      }
      at = next
    }
    if (at < input.length) this.#keepsAlive = false
  }

  /** The server has closed its side: the end of a body that says no length; of all else the server broke off (false). */
  finish(): boolean {
    if (this.#state !== 'until-close') return this.#state === 'done'
    this.#state = 'done'
    return true
  }

  /** Reads one element of the message; returns where it ended, or `at` where not all of it has come. */
  #step(input: Buffer, at: number): number {
    if (this.#state === 'counted' || this.#state === 'chunk') return this.#readCounted(input, at)
    if (this.#state === 'until-close') {
      this.#events?.onData(at === 0 ? input : input.subarray(at))
      return input.length
    }
    if (this.#state === 'head') return this.#readHead(input, at)
    const line = this.#state === 'size' ? MAX_SIZE_LINE_BYTES : MAX_HEAD_BYTES
    const end = endOf(input, '\r\n', at, this.#state === 'chunk-end' ? 0 : line)
    if (end === -1) return at
    if (this.#state === 'size') this.#readSize(input.toString('latin1', at, end))
    else if (this.#state === 'chunk-end') this.#state = 'size'
    else this.#readTrailer(input.toString('latin1', at, end))
    return end + 2
  }

  #readCounted(input: Buffer, at: number): number {
    const end = Math.min(input.length, at + this.#left)
    this.#left -= end - at
    // Settled first: whoever takes the last byte may find the response complete.
    if (this.#left === 0) this.#state = this.#state === 'chunk' ? 'chunk-end' : 'done'
    this.#events?.onData(at === 0 && end === input.length ? input : input.subarray(at, end))
    return end
  }

  #readHead(input: Buffer, at: number): number {
    const end = endOf(input, '\r\n\r\n', at, MAX_HEAD_BYTES)
    if (end === -1) return at
    const lines = input.toString('latin1', at, end).split('\r\n')
    const first = lines[0] ?? ''
    const start = STATUS_LINE.exec(first)
    if (start === null) throw new ResponseError(`no HTTP/1.1 status line: ${JSON.stringify(first.slice(0, 80))}`)
    const status = Number(start[2])
    const headers = this.#readHeaders(lines)
    if (status < 200) this.#passInformational(status)
    else {
      this.#keepsAlive = start[1] === '1' ? !listed(headers.connection, 'close') : listed(headers.connection, 'keep-alive')
      this.#frame(status, headers)
      this.#events?.onHead(status, headers)
    }
    return end + 4
  }

  #readHeaders(lines: readonly string[]): IncomingHttpHeaders {
    if (lines.length > MAX_HEADERS + 1) throw new ResponseError(`more than ${MAX_HEADERS} headers`)
    const headers: IncomingHttpHeaders = Object.create(null)
    for (let at = 1; at < lines.length; at++) {
      const [name, value] = this.#header(lines[at] ?? '')
      const before = headers[name]
      if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
      else if (before === undefined) headers[name] = value
      else headers[name] = `${String(before)}, ${value}`
    }
    return headers
  }

  /** Servers say most of their headers again with every response. */
  #header(line: string): Header {
    let header = this.#known.get(line)
    if (header !== undefined) return header
    header = readHeader(line)
    if (this.#known.size < MAX_KNOWN) this.#known.set(line, header)
    return header
  }

  #passInformational(status: number): void {
    if (status === 101) throw new ResponseError('101 Switching Protocols, which was not asked for')
    if (++this.#informational > MAX_INFORMATIONAL) throw new ResponseError('too many informational heads')
  }

  /** How the body ends ([RFC 9112] 6.3). Two answers to that question are an attack on somebody. */
  #frame(status: number, headers: IncomingHttpHeaders): void {
    const coding = headers['transfer-encoding']
    const length = headers['content-length']
    if (coding !== undefined && length !== undefined) throw new ResponseError('both Transfer-Encoding and Content-Length')
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw new ResponseError(`Transfer-Encoding: ${coding}`)
    if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new ResponseError(`Content-Length: ${length}`)
    if (status === 204 || status === 304) this.#state = 'done'
    else if (coding !== undefined) {
      this.#state = 'size'
      this.#trailerBytes = 0
    } else if (length !== undefined) {
      this.#left = Number(length)
      this.#state = this.#left === 0 ? 'done' : 'counted'
    } else {
      this.#keepsAlive = false
      this.#state = 'until-close'
    }
  }

  #readSize(line: string): void {
    const size = SIZE_LINE.exec(line)?.[1]
    if (size === undefined) throw new ResponseError(`no chunk size: ${JSON.stringify(line.slice(0, 80))}`)
    this.#left = Number.parseInt(size, 16)
    this.#state = this.#left === 0 ? 'trailers' : 'chunk'
  }

  /** Trailers are checked and dropped; the empty line ends the message. */
  #readTrailer(line: string): void {
    this.#trailerBytes += line.length + 2
    if (this.#trailerBytes > MAX_HEAD_BYTES) throw new ResponseError(`trailers of more than ${MAX_HEAD_BYTES} bytes`)
    if (line === '') this.#state = 'done'
    else if (!HEADER_LINE.test(line)) throw new ResponseError('a trailer that is none')
  }
}

/** Where `mark` stands from `at` on, with at most `maxBytes` before it; -1: not yet. */
const endOf = (input: Buffer, mark: string, at: number, maxBytes: number): number => {
  const end = input.indexOf(mark, at, 'latin1')
  if ((end === -1 ? input.length - mark.length + 1 : end) - at > maxBytes)
    throw new ResponseError(
      maxBytes === 0 ? 'a chunk does not end where it should' : `more than ${maxBytes} bytes without an end`,
    )
  return end
}

const readHeader = (line: string): Header => {
  const found = HEADER_LINE.exec(line)
  if (found === null) throw new ResponseError(`no header: ${JSON.stringify(line.slice(0, 80))}`)
  const [, field = '', value = ''] = found
  return [field.toLowerCase(), value]
}

const listed = (header: string | undefined, option: string): boolean =>
  header !== undefined &&
  header
    .toLowerCase()
    .split(',')
    .some((each) => each.trim() === option)
