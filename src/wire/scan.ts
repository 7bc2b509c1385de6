/**
 * A JSON scanner that finds where things stand instead of building values.
 *
 * It walks one value, checks that it is JSON, counts depth, values and keys against limits, and can list the members of an
 * object as spans of the bytes. Nothing is decoded but the keys that are listed. The surprise: on `lenient` input (configured
 * servers) the inside of strings is skipped with `indexOf`, so a control character inside a string goes unnoticed there.
 */
import { wordAt } from './words.ts'

export interface Span {
  /** Offset of the first byte. */
  readonly start: number
  /** Offset behind the last byte. */
  readonly end: number
}

/** One member of an object; the span is its value's. */
export interface Member extends Span {
  readonly key: string
  /** Offset of the key's opening quote. */
  readonly keyStart: number
}

export interface ScanLimits {
  readonly maxDepth: number
  readonly maxValues: number
  readonly maxKeysPerObject: number
}

export const NO_LIMITS: ScanLimits = { maxDepth: 512, maxValues: Infinity, maxKeysPerObject: Infinity }

/** What an error calls a limit: where it is configured. Messages of servers are read without limits. */
const LIMIT_NAMES: Readonly<Record<keyof ScanLimits, string>> = {
  maxDepth: 'listen.limits.max_depth',
  maxValues: 'listen.limits.max_values',
  maxKeysPerObject: 'listen.limits.max_keys',
}

/** What was wrong and where: `syntax` is not JSON, `key` is an escaped or repeated key where names matter, `limit` names the limit. */
export class ScanError extends Error {
  readonly kind: 'syntax' | 'key' | 'limit'
  readonly offset: number
  /** The option of that limit. */
  readonly limit: string | undefined
  constructor(kind: 'syntax' | 'key' | 'limit', message: string, offset: number, limit?: string) {
    super(message)
    this.limit = limit
    this.name = 'ScanError'
    this.kind = kind
    this.offset = offset
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
/** Strings longer than this are skipped with `indexOf` on lenient input. */
const SHORT_STRING = 48

export class Scanner {
  readonly bytes: Buffer
  position: number
  readonly #limits: ScanLimits
  readonly #strict: boolean
  #depth = 0
  #values = 0

  constructor(bytes: Buffer, options: { start?: number; limits?: ScanLimits; strict?: boolean } = {}) {
    this.bytes = bytes
    this.position = options.start ?? 0
    this.#limits = options.limits ?? NO_LIMITS
    this.#strict = options.strict ?? true
  }

  /** The next byte that is not white space, not taken. */
  peek(): number {
    const { bytes } = this
    let at = this.position
    let byte = bytes[at]
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at]
    this.position = at
    return byte ?? -1
  }

  /** Throws unless only white space is left. */
  expectEnd(): void {
    if (this.peek() !== -1) throw this.#syntax('unexpected text after the value')
  }

  /** Skips one value and returns where it stood. */
  skip(): Span {
    this.peek()
    const start = this.position
    this.#skipValue()
    return { start, end: this.position }
  }

  #skipValue(): void {
    const byte = this.peek()
    if (++this.#values > this.#limits.maxValues) throw this.#limit('maxValues', this.#limits.maxValues)
    if (byte === QUOTE) this.#skipString()
    else if (byte === OPEN_BRACE) this.#skipObject()
    else if (byte === OPEN_BRACKET) this.#skipArray()
    else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) this.#skipNumber()
    else if (byte === 0x74) this.#skipWord('true')
    else if (byte === 0x66) this.#skipWord('false')
    else if (byte === 0x6e) this.#skipWord('null')
    else throw this.#syntax(byte === -1 ? 'unexpected end' : 'unexpected character')
  }

  /**
   * Walks the object at the position and lists its members. Keys must be plain (no backslash) and appear once: first against
   * last wins is how a policy is bypassed. `into` may walk a member's value itself (it must take exactly that value).
   */
  members(into?: (key: string) => boolean): Member[] {
    if (this.peek() !== OPEN_BRACE) throw this.#syntax('expected an object')
    this.#enter()
    this.position++
    const found: Member[] = []
    if (this.peek() === CLOSE_BRACE) {
      this.#leave()
      return found
    }
    for (;;) {
      if (this.peek() !== QUOTE) throw this.#syntax('expected a key')
      const keyStart = this.position
      const key = this.#plainKey()
      for (const other of found) if (other.key === key) throw new ScanError('key', `duplicate key "${key}"`, keyStart)
      if (found.length >= this.#limits.maxKeysPerObject) throw this.#limit('maxKeysPerObject', this.#limits.maxKeysPerObject)
      if (this.peek() !== COLON) throw this.#syntax('expected ":"')
      this.position++
      const byte = this.peek()
      const start = this.position
      if (byte === -1 || into === undefined || !into(key)) this.#skipValue()
      found.push({ key, keyStart, start, end: this.position })
      const next = this.peek()
      this.position++
      if (next === COMMA) continue
      if (next !== CLOSE_BRACE) throw this.#syntax('expected "," or "}"')
      this.position--
      this.#leave()
      return found
    }
  }

  /** Walks the array at the position and returns the span of each element. */
  elements(): Span[] {
    if (this.peek() !== OPEN_BRACKET) throw this.#syntax('expected an array')
    this.#enter()
    this.position++
    const found: Span[] = []
    if (this.peek() === CLOSE_BRACKET) {
      this.#leave()
      return found
    }
    for (;;) {
      found.push(this.skip())
      const next = this.peek()
      if (next === CLOSE_BRACKET) {
        this.#leave()
        return found
      }
      if (next !== COMMA) throw this.#syntax('expected "," or "]"')
      this.position++
    }
  }

  #enter(): void {
    if (++this.#depth > this.#limits.maxDepth) throw this.#limit('maxDepth', this.#limits.maxDepth)
  }

  /** Takes the closing bracket. */
  #leave(): void {
    this.#depth--
    this.position++
  }

  #skipObject(): void {
    this.#enter()
    this.position++
    if (this.peek() === CLOSE_BRACE) return this.#leave()
    for (let keys = 1; ; keys++) {
      if (keys > this.#limits.maxKeysPerObject) throw this.#limit('maxKeysPerObject', this.#limits.maxKeysPerObject)
      if (this.peek() !== QUOTE) throw this.#syntax('expected a key')
      this.#skipString()
      if (this.peek() !== COLON) throw this.#syntax('expected ":"')
      this.position++
      this.#skipValue()
      const next = this.peek()
      if (next === CLOSE_BRACE) return this.#leave()
      if (next !== COMMA) throw this.#syntax('expected "," or "}"')
      this.position++
    }
  }

  #skipArray(): void {
    this.#enter()
    this.position++
    if (this.peek() === CLOSE_BRACKET) return this.#leave()
    for (;;) {
      this.#skipValue()
      const next = this.peek()
      if (next === CLOSE_BRACKET) return this.#leave()
      if (next !== COMMA) throw this.#syntax('expected "," or "]"')
      this.position++
    }
  }

  #plainKey(): string {
    const start = this.position + 1
    this.#skipString()
    const end = this.position - 1
    const word = wordAt(this.bytes, start, end)
    if (word !== undefined) return word
    const key = this.bytes.toString('latin1', start, end)
    if (key.includes('\\')) throw new ScanError('key', 'a key of the envelope must not be escaped', start)
    for (let at = 0; at < key.length; at++) if (key.charCodeAt(at) > 0x7f) return this.bytes.toString('utf8', start, end)
    return key
  }

  #skipString(): void {
    const { bytes } = this
    let at = this.position + 1
    const short = this.#strict ? Infinity : at + SHORT_STRING
    for (;;) {
      const byte = bytes[at]
      if (byte === QUOTE) break
      if (byte === BACKSLASH) at = this.#skipEscape(at)
      else if (byte === undefined || byte < 0x20) {
        this.position = at
        throw this.#syntax(byte === undefined ? 'unterminated string' : 'control character in a string')
      } else at++
      if (at > short) {
        at = this.#closingQuote(at)
        break
      }
    }
    this.position = at + 1
  }

  /** The closing quote from `from` on, by native search: a quote behind an even number of backslashes. */
  #closingQuote(from: number): number {
    const { bytes } = this
    let at = bytes.indexOf(QUOTE, from)
    while (at !== -1) {
      let back = at - 1
      while (back >= from && bytes[back] === BACKSLASH) back--
      if ((at - back) % 2 === 1) return at
      at = bytes.indexOf(QUOTE, at + 1)
    }
    this.position = bytes.length
    throw this.#syntax('unterminated string')
  }

  #skipEscape(at: number): number {
    const byte = this.bytes[at + 1]
    if (byte === 0x75) {
      for (let digit = at + 2; digit < at + 6; digit++) {
        const hex = this.bytes[digit] ?? 0
        const isHex = (hex >= 0x30 && hex <= 0x39) || (hex >= 0x41 && hex <= 0x46) || (hex >= 0x61 && hex <= 0x66)
        if (!isHex) {
          this.position = digit
          throw this.#syntax('bad \\u escape')
        }
      }
      return at + 6
    }
    // one of " \ / b f n r t
    const isEscape =
      byte === QUOTE ||
      byte === BACKSLASH ||
      byte === 0x2f ||
      byte === 0x62 ||
      byte === 0x66 ||
      byte === 0x6e ||
      byte === 0x72 ||
      byte === 0x74
    if (!isEscape) {
      this.position = at
      throw this.#syntax('bad escape')
    }
    return at + 2
  }

  #skipNumber(): void {
    const { bytes } = this
    let at = this.position
    if (bytes[at] === 0x2d) at++
    if (bytes[at] === 0x30) at++
    else at = this.#digits(at)
    if (bytes[at] === 0x2e) at = this.#digits(at + 1)
    if (bytes[at] === 0x65 || bytes[at] === 0x45) {
      at++
      if (bytes[at] === 0x2b || bytes[at] === 0x2d) at++
      at = this.#digits(at)
    }
    this.position = at
  }

  #digits(from: number): number {
    let at = from
    while ((this.bytes[at] ?? 0) >= 0x30 && (this.bytes[at] ?? 0) <= 0x39) at++
    if (at === from) {
      this.position = at
      throw this.#syntax('expected a digit')
    }
    return at
  }

  #skipWord(word: string): void {
    for (let at = 0; at < word.length; at++)
      if (this.bytes[this.position + at] !== word.charCodeAt(at)) throw this.#syntax('unexpected character')
    this.position += word.length
  }

  #syntax(what: string): ScanError {
    return new ScanError('syntax', `${what} at byte ${this.position}`, this.position)
  }

  #limit(name: keyof ScanLimits, value: number): ScanError {
    const limit = LIMIT_NAMES[name]
    return new ScanError('limit', `the message exceeds ${limit} (${value})`, this.position, limit)
  }
}
