/**
 * The head of one HTTP/1.1 response, and what it determines: how the body ends, and whether the connection is kept ([RFC 9112]).
 *
 * The surprise: a server sends nearly the same head with every response, so only lines that differ from the previous head are parsed.
 * Ambiguous heads are refused.
 *
 * Gain: a call through undici uses about twice as much CPU (decision 0009).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { encodingOf, formOf } from './reply-head.ts'
import type { ReplyHead } from './reply-head.ts'

/** The server violated HTTP/1.1. */
export class ResponseError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ResponseError'
  }
}

const MAX_HEADERS = 100
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
/** White space around the value is cut off afterwards: here each character must have one place only (T-27). */
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([\t\x20-\x7e\x80-\xff]*)$/

interface StatusLine {
  /** The received line, with its CRLF. */
  readonly line: string
  readonly status: number
  readonly minor: string
}

interface Field {
  /** The received line, with its CRLF. */
  readonly line: string
  readonly name: string
  readonly value: string
}

export class ResponseHead implements ReplyHead {
  readonly status: number
  readonly form: ReplyHead['form']
  readonly length: number
  /** How the end of the body is determined ([RFC 9112] 6.3). */
  readonly framing: 'none' | 'counted' | 'chunked' | 'until-close'
  /** Whether the connection may carry another request after this response. */
  readonly keepsAlive: boolean
  /** The server's keep-alive time, if the head has one. */
  readonly keptMs: number | undefined
  readonly encoding: string | undefined
  readonly #start: StatusLine
  readonly #fields: readonly Field[]
  #headers: IncomingHttpHeaders | undefined

  /** Every line of `text` ends with CRLF, including the last one. Throws `ResponseError`. */
  static read(text: string, previous: ResponseHead | undefined): ResponseHead {
    const start = previous !== undefined && text.startsWith(previous.#start.line) ? previous.#start : readStatus(lineAt(text, 0))
    const known = previous === undefined ? [] : previous.#fields
    const fields: Field[] = []
    for (let at = start.line.length; at < text.length;) {
      const same = known[fields.length]
      const field = same !== undefined && text.startsWith(same.line, at) ? same : readField(lineAt(text, at))
      if (fields.push(field) > MAX_HEADERS) throw new ResponseError(`more than ${MAX_HEADERS} headers`)
      at += field.line.length
    }
    return new ResponseHead(start, fields)
  }

  private constructor(start: StatusLine, fields: readonly Field[]) {
    this.#start = start
    this.#fields = fields
    this.status = start.status
    this.form = formOf(valueOf(fields, 'content-type'))
    const length = valueOf(fields, 'content-length')
    const coding = valueOf(fields, 'transfer-encoding')
    this.framing = this.isFinal ? framingOf(start.status, coding, length) : 'none'
    this.length = Number(length ?? 0)
    const connection = valueOf(fields, 'connection')
    const isKept = start.minor === '1' ? !hasOption(connection, 'close') : hasOption(connection, 'keep-alive')
    // Some servers send a body behind a 204: its bytes would be read as the next response.
    const isBodyStated = coding !== undefined || this.length > 0
    this.keepsAlive = isKept && this.framing !== 'until-close' && !(this.framing === 'none' && isBodyStated)
    const seconds = /\btimeout=(\d{1,6})\b/.exec(valueOf(fields, 'keep-alive') ?? '')?.[1]
    this.keptMs = seconds === undefined ? undefined : Number(seconds) * 1_000
    this.encoding = encodingOf(valueOf(fields, 'content-encoding'))
  }

  /** False: an informational response; the final one follows. */
  get isFinal(): boolean {
    return this.status >= 200
  }

  get headers(): IncomingHttpHeaders {
    return (this.#headers ??= headersOf(this.#fields))
  }
}

const lineAt = (text: string, at: number): string => text.slice(at, text.indexOf('\r\n', at) + 2)

const readStatus = (line: string): StatusLine => {
  const [, minor, status] = STATUS_LINE.exec(line.slice(0, -2)) ?? []
  if (minor === undefined) throw new ResponseError(`not an HTTP/1.1 status line: ${excerptOf(line)}`)
  return { line, status: Number(status), minor }
}

const readField = (line: string): Field => {
  const [, name, value = ''] = HEADER_LINE.exec(line.slice(0, -2)) ?? []
  if (name === undefined) throw new ResponseError(`not a header line: ${excerptOf(line)}`)
  return { line, name: name.toLowerCase(), value: trimmed(value) }
}

/** Without the spaces and tabs around it. `trim` would also remove 0xa0, which is the end of characters in UTF-8. */
const trimmed = (value: string): string => {
  let [start, end] = [0, value.length]
  while (start < end && isBlank(value[start])) start++
  while (end > start && isBlank(value[end - 1])) end--
  return value.slice(start, end)
}
const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** Whether this is a valid header or trailer line, without its CRLF. */
export const isField = (line: string): boolean => HEADER_LINE.test(line)

const excerptOf = (line: string): string => JSON.stringify(line.slice(0, -2).slice(0, 80))

/** Values of a repeated header are joined as a list. */
const valueOf = (fields: readonly Field[], name: string): string | undefined => {
  let found: string | undefined
  for (const field of fields) if (field.name === name) found = found === undefined ? field.value : `${found}, ${field.value}`
  return found
}

const headersOf = (fields: readonly Field[]): IncomingHttpHeaders => {
  const headers: IncomingHttpHeaders = Object.create(null)
  for (const { name, value } of fields) {
    const previous = headers[name]
    if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
    else headers[name] = previous === undefined ? value : `${String(previous)}, ${value}`
  }
  return headers
}

/** Conflicting framing headers are refused: they are used for response smuggling. */
const framingOf = (status: number, coding: string | undefined, length: string | undefined): ResponseHead['framing'] => {
  if (coding !== undefined && length !== undefined) throw new ResponseError('both Transfer-Encoding and Content-Length')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw new ResponseError(`Transfer-Encoding: ${coding}`)
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new ResponseError(`Content-Length: ${length}`)
  if (status === 204 || status === 304 || Number(length) === 0) return 'none'
  return coding !== undefined ? 'chunked' : length !== undefined ? 'counted' : 'until-close'
}

const hasOption = (header: string | undefined, option: string): boolean =>
  header !== undefined &&
  header
    .toLowerCase()
    .split(',')
    .some((each) => each.trim() === option)
