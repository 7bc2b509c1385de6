/**
 * The head of a fast-path request: a POST, GET, OPTIONS or DELETE of HTTP/1.1 in the form of usual MCP clients, each header once, in
 * printable ASCII. A POST has a body with a stated length, or in chunks. The other methods have no body. This is not a complete parser of
 * HTTP: node:http reads every head of another form.
 *
 * The next request on a connection mostly has the same head, except for the body length. A comparison of bytes detects this.
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import { readChunks } from './chunked-body.ts'
import type { HeadNotes } from '../request/http-request.ts'

/** Limit of a head on the fast path. */
const MAX_HEAD_BYTES = 8 * 1024
const END = Buffer.from('\r\n\r\n')
const REQUEST_LINE = /^(POST|GET|OPTIONS|DELETE) (\/[\w/.~%?&=+,:@!$'()*;-]*) HTTP\/1\.1\r\n/
const NAME = /^[A-Za-z][A-Za-z0-9-]*$/
const VALUE = /^[!-~][ -~]*$/
const LENGTH = /^(?:0|[1-9]\d{0,7})$/
const MAX_DIGITS = 8
const ZERO = 48
/** Headers that change how the body or the connection is handled. node:http reads requests with them. */
const UNSUPPORTED = new Set(['expect', 'upgrade', 'te', 'trailer', 'proxy-connection', 'set-cookie'])

/** The received beginning of a body of `length` bytes. */
export interface BodyPart {
  readonly part: Buffer
  readonly length: number
}
/**
 * The received part of the body of a request with a known head: the whole body, the beginning of a body with a stated length, incomplete
 * chunks (`'more'`), or bytes that the fast path does not read (`'beyond'`): a further request, or chunks of another form.
 */
export type FastBody = Buffer | BodyPart | 'more' | 'beyond'

/** How the end of the body is found. */
type Framing = 'length' | 'chunked' | 'none'

export class FastHead {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** By lower-case name; without `content-length`, which may change with the next request. */
  readonly headers: Readonly<Record<string, string>>
  /** Number of headers. */
  readonly lines: number
  readonly notes: HeadNotes = { credential: undefined }
  /** Bytes of the head without the digits of the length. */
  readonly size: number
  readonly #framing: Framing
  /** The bytes before and after the digits of the length. Without a length: all bytes, and none. */
  readonly #before: Buffer
  readonly #after: Buffer

  private constructor(
    [, method = '', target = '']: RegExpExecArray,
    headers: Readonly<Record<string, string>>,
    lines: number,
    framing: Framing,
    before: Buffer,
    after: Buffer,
  ) {
    this.method = method
    this.target = target
    this.headers = headers
    this.lines = lines
    this.size = before.length + after.length
    this.#framing = framing
    this.#before = before
    this.#after = after
  }

  /** Reads the head at the beginning of `bytes`. `'more'`: the head is incomplete; `undefined`: not a head of the fast path. */
  static read(bytes: Buffer): FastHead | 'more' | undefined {
    const end = bytes.indexOf(END) + END.length
    if (end < END.length) return bytes.length < MAX_HEAD_BYTES ? 'more' : undefined
    if (end > MAX_HEAD_BYTES) return undefined
    const text = bytes.toString('latin1', 0, end)
    const first = REQUEST_LINE.exec(text)
    if (first === null) return undefined
    const headers: Record<string, string> = {}
    let lengthAt = -1
    let length = ''
    let lines = 0
    for (let at = first[0].length, next = 0; at < end - 2; at = next + 2) {
      next = text.indexOf('\r\n', at)
      const colon = text.indexOf(':', at)
      const name = text.slice(at, Math.min(colon, next)).toLowerCase()
      const value = text.slice(colon + 2, next)
      if (!NAME.test(name) || text[colon + 1] !== ' ' || !VALUE.test(value) || value.endsWith(' ')) return undefined
      if (Object.hasOwn(headers, name) || UNSUPPORTED.has(name)) return undefined
      lines++
      if (name !== 'content-length') headers[name] = value
      else if (lengthAt === -1 && LENGTH.test(value)) {
        length = value
        lengthAt = colon + 2
      } else return undefined
    }
    const framing = framingOf(first[1] ?? '', lengthAt !== -1, headers['transfer-encoding'])
    if (framing === undefined || headers.host === undefined || !isKeptAlive(headers.connection)) return undefined
    // A copy, so that the head does not keep the memory of the whole request.
    const copy = Buffer.from(bytes.subarray(0, end))
    const cut = framing === 'length' ? lengthAt : end
    return new FastHead(first, headers, lines, framing, copy.subarray(0, cut), copy.subarray(cut + length.length))
  }

  /** Reads the body of the request at the beginning of `bytes`; `undefined`: the request has another head. */
  bodyIn(bytes: Buffer): FastBody | undefined {
    const before = this.#before
    const after = this.#after
    if (bytes.length < before.length || bytes.compare(before, 0, before.length, 0, before.length) !== 0) return undefined
    if (this.#framing === 'chunked') return readChunks(bytes, before.length)
    if (this.#framing === 'none') return bytes.length === before.length ? EMPTY : 'beyond'
    let length = 0
    let at = before.length
    for (let digit = 0; (digit = (bytes[at] ?? 0) - ZERO) >= 0 && digit <= 9; at++) length = length * 10 + digit
    const digits = at - before.length
    if (digits === 0 || digits > MAX_DIGITS || (digits > 1 && bytes[before.length] === ZERO)) return undefined
    const start = at + after.length
    if (bytes.length < start || bytes.compare(after, 0, after.length, at, start) !== 0) return undefined
    const end = start + length
    if (bytes.length === end) return bytes.subarray(start)
    return bytes.length < end ? { part: bytes.subarray(start), length } : 'beyond'
  }
}

const EMPTY = Buffer.alloc(0)
const isKeptAlive = (connection = 'keep-alive'): boolean => connection.toLowerCase() === 'keep-alive'

/** How the body is framed; `undefined`: not in a form of the fast path. */
const framingOf = (method: string, hasLength: boolean, encoding: string | undefined): Framing | undefined => {
  if (method !== 'POST') return hasLength || encoding !== undefined ? undefined : 'none'
  if (hasLength) return encoding === undefined ? 'length' : undefined
  return encoding === 'chunked' ? 'chunked' : undefined
}
