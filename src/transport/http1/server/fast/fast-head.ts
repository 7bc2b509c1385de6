/**
 * The head of a plain request: a POST, GET, OPTIONS or DELETE of HTTP/1.1 as every MCP client writes it, each header once, in printable
 * ASCII. A POST has a body of a stated length, or in chunks that are all there; the others have none. This is no parser of HTTP but
 * knows one form of it: whatever differs by a byte is not plain, and node:http reads it.
 *
 * The next request on a connection mostly has the same head, except for the body length: comparing bytes detects this.
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import { readChunks } from './chunked-body.ts'
import type { HeadNotes } from '../request/http-request.ts'

/** A larger head is not plain. */
const MAX_HEAD_BYTES = 8 * 1024
const END = Buffer.from('\r\n\r\n')
const REQUEST_LINE = /^(POST|GET|OPTIONS|DELETE) (\/[\w/.~%?&=+,:@!$'()*;-]*) HTTP\/1\.1\r\n/
const NAME = /^[A-Za-z][A-Za-z0-9-]*$/
const VALUE = /^[!-~][ -~]*$/
const LENGTH = /^(?:0|[1-9]\d{0,7})$/
const MAX_DIGITS = 8
const ZERO = 48
/** What would change how the rest is read, or the connection. */
const NOT_PLAIN = new Set(['expect', 'upgrade', 'te', 'trailer', 'proxy-connection', 'set-cookie'])

/** A body of `length` bytes of which the beginning has come. */
export interface BodyPart {
  readonly part: Buffer
  readonly length: number
}
/**
 * What of a request with a known head has come: its body, the beginning of a body of a stated length, chunks that are not complete yet
 * (`'more'`), or something else than one plain body (`'beyond'`): bytes behind it, or chunks of another form.
 */
export type FastBody = Buffer | BodyPart | 'more' | 'beyond'

/** How the end of the body is found. */
type Framing = 'length' | 'chunked' | 'none'

export class FastHead {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** By names in lower case; without `content-length`, which may be another in the next request. */
  readonly headers: Readonly<Record<string, string>>
  readonly lines: number
  readonly notes: HeadNotes = { credential: undefined }
  /** Bytes of the head without the digits of the length. */
  readonly size: number
  readonly #framing: Framing
  /** The bytes before and behind the digits of the length; without a length all of them, and none. */
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

  /** The head that `bytes` begin with; `'more'`: it may still become one, `undefined`: never. */
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
      if (Object.hasOwn(headers, name) || NOT_PLAIN.has(name)) return undefined
      lines++
      if (name !== 'content-length') headers[name] = value
      else if (lengthAt === -1 && LENGTH.test(value)) {
        length = value
        lengthAt = colon + 2
      } else return undefined
    }
    const framing = framingOf(first[1] ?? '', lengthAt !== -1, headers['transfer-encoding'])
    if (framing === undefined || headers.host === undefined || !isKeptAlive(headers.connection)) return undefined
    // A copy: the bytes of a whole request are not kept for the sake of its head.
    const copy = Buffer.from(bytes.subarray(0, end))
    const cut = framing === 'length' ? lengthAt : end
    return new FastHead(first, headers, lines, framing, copy.subarray(0, cut), copy.subarray(cut + length.length))
  }

  /** What has come of the request that `bytes` begin with; `undefined`: it has another head. */
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

/** `undefined`: not plain. A body is framed in one way, or there is none. */
const framingOf = (method: string, hasLength: boolean, encoding: string | undefined): Framing | undefined => {
  if (method !== 'POST') return hasLength || encoding !== undefined ? undefined : 'none'
  if (hasLength) return encoding === undefined ? 'length' : undefined
  return encoding === 'chunked' ? 'chunked' : undefined
}
