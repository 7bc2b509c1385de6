/**
 * A JSON scanner that finds positions instead of building values.
 *
 * It walks one value, checks that it is JSON, counts depth, values and keys against limits, and can list the members of an object as
 * spans. Only listed keys are decoded. The surprise: on lenient input (`strict: false`, messages of configured servers) only the
 * beginning of a string is checked for control characters. The scan kernel skips values if enough bytes follow. Where it is missing or
 * cannot decide, this scanner reads every byte.
 *
 * Cast: `!` at a byte whose offset is below the length of its buffer.
 */
import type { DecidingKeys } from '../protocol/deciding-keys.ts'
import { deepValueEnd } from './deep-value.ts'
import { CHECK_ALL, CHECK_BEGINNING, Kernel } from '../kernel/kernel.ts'
import type { SkipLimits } from '../kernel/kernel.ts'
import { ScanError } from './scan-error.ts'
import type { ListProgress, ScanAhead } from './scan-ahead.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  END,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  afterSpace,
  decodeString,
  scalarEnd,
  stringEnd,
  syntax,
} from './tokens.ts'
import { wordAt } from './known-words.ts'

export interface Span {
  /** Offset of the first byte. */
  readonly start: number
  /** Offset behind the last byte. */
  readonly end: number
}

/** One member of an object, with the span of its value. */
export interface Member extends Span {
  /** The decoded key. */
  readonly key: string
  /** Offset of the key's opening quote. */
  readonly keyStart: number
  /** The members of its value, if the scan has listed them. */
  readonly members: readonly Member[] | undefined
}

/**
 * Called at each member that is an object or array. Either walks the value and returns its members, or returns `undefined` without
 * walking, so that the scanner skips it. `keyStart`: offset of the opening quote of its key.
 */
export type Into = (key: string, scanner: Scanner, keyStart: number) => readonly Member[] | undefined

export type ScanLimits = SkipLimits

export const NO_LIMITS: ScanLimits = { maxDepth: Infinity, maxValues: Infinity, maxKeysPerObject: Infinity }
/** Depth of recursion if no depth limit is set; deeper values are walked in a loop. */
const MAX_RECURSION = 512

/** With fewer bytes left, an object or array is walked here, since a call of the kernel costs as much. */
const MIN_KERNEL_BYTES = 512

/** The option of each limit, for errors. Only messages of hosts have limits. */
const LIMIT_NAMES: Readonly<Record<keyof ScanLimits, string>> = {
  maxDepth: 'listen.limits.max_depth',
  maxValues: 'listen.limits.max_values',
  maxKeysPerObject: 'listen.limits.max_keys',
}

/** Longest string that `takeShort` takes. */
const MAX_SHORT = 128
/** Depth of the lists of content blocks: members of the result, which is a member of the message. */
const LIST_DEPTH = 2
const SPACE = 0x20

export class Scanner {
  readonly bytes: Buffer
  position: number
  readonly #limits: ScanLimits
  readonly #strict: boolean
  readonly #maxRecursion: number
  readonly #ahead: ScanAhead | undefined
  #isPlain: boolean
  #depth = 0
  #values = 0

  /** `isPlain`: reads without the kernel, with the same result. `ahead`: an earlier scan of these bytes, lenient and without limits. */
  constructor(
    bytes: Buffer,
    options: { start?: number; limits?: ScanLimits; strict?: boolean; isPlain?: boolean; ahead?: ScanAhead | undefined } = {},
  ) {
    this.bytes = bytes
    this.position = options.start ?? 0
    this.#limits = options.limits ?? NO_LIMITS
    this.#strict = options.strict ?? true
    this.#isPlain = options.isPlain ?? false
    this.#ahead = options.ahead
    this.#maxRecursion = this.#limits.maxDepth === Infinity ? MAX_RECURSION : Infinity
  }

  /** Returns the next byte that is not white space, and moves to it. */
  peek(): number {
    this.position = afterSpace(this.bytes, this.position)
    return byteAt(this.bytes, this.position)
  }

  /** Throws unless only white space is left. */
  expectEnd(): void {
    if (this.peek() !== END) throw syntax('unexpected text after the value', this.position)
  }

  /** Skips one value and returns its span. */
  skip(): Span {
    const start = afterSpace(this.bytes, this.position)
    this.position = this.#value(start)
    return { start, end: this.position }
  }

  /**
   * Walks the object at the position and lists its members, repeated ones included. `deciding`: keys that are refused if they are
   * repeated or in another case, since parsers that use different members could bypass a policy.
   */
  members(into?: Into, deciding?: DecidingKeys): Member[] {
    const { bytes } = this
    const { maxKeysPerObject } = this.#limits
    let at = afterSpace(bytes, this.position)
    if (byteAt(bytes, at) !== OPEN_BRACE) throw syntax('expected an object', at)
    const found: Member[] = []
    at = this.#enter(at)
    if (byteAt(bytes, at) === CLOSE_BRACE) {
      this.position = this.#leave(at)
      return found
    }
    for (;;) {
      if (byteAt(bytes, at) !== QUOTE) throw syntax('expected a key', at)
      const keyStart = at
      at = stringEnd(bytes, at, this.#strict, this.#isPlain)
      const key = this.#key(keyStart + 1, at - 1)
      if (deciding !== undefined) checkKey(key, keyStart, found, deciding)
      if (found.length >= maxKeysPerObject) throw this.#limit('maxKeysPerObject', at)
      const start = this.#colon(at)
      const members = into === undefined ? undefined : this.#listed(into, key, start, keyStart)
      const end = members === undefined ? this.#value(start) : this.position
      found.push({ key, keyStart, start, end, members })
      at = afterSpace(bytes, end)
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACE) {
        this.position = this.#leave(at)
        return found
      }
      if (next !== COMMA) throw syntax('expected "," or "}"', at)
      at = afterSpace(bytes, at + 1)
    }
  }

  /** As `members`; `undefined` if the value at the position is no object. */
  object(into?: Into, deciding?: DecidingKeys): Member[] | undefined {
    return this.peek() === OPEN_BRACE ? this.members(into, deciding) : undefined
  }

  /** Walks the array at the position and returns the spans of its elements. Throws a `limit` error for more than `maxElements`. */
  elements(maxElements = Infinity): Span[] {
    if (this.peek() !== OPEN_BRACKET) throw syntax('expected an array', this.position)
    const found: Span[] = []
    this.position = this.#array(this.position, found, maxElements)
    return found
  }

  /** The progress of the array at the position, if it is a list of blocks in a large message. */
  listProgress(): ListProgress | undefined {
    return this.#depth === LIST_DEPTH ? this.#ahead?.list(this.position) : undefined
  }

  /**
   * Walks the array at the position. Calls `take` at each element that is an object, which `take` must walk; skips other elements.
   * `progress`: where the walk starts; it is updated after each element.
   */
  each(take: () => void, progress?: ListProgress): void {
    const { bytes } = this
    this.#count(this.position)
    let at = this.#enter(afterSpace(bytes, this.position))
    if (progress !== undefined && progress.at > at) at = afterSpace(bytes, progress.at)
    else if (byteAt(bytes, at) === CLOSE_BRACKET) {
      this.position = this.#leave(at)
      return
    }
    for (;;) {
      if (byteAt(bytes, at) === OPEN_BRACE) {
        this.#count(at)
        this.position = at
        take()
        at = this.position
      } else at = this.#value(at)
      at = afterSpace(bytes, at)
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACKET) {
        this.position = this.#leave(at)
        return
      }
      if (next !== COMMA) throw syntax('expected "," or "]"', at)
      at = afterSpace(bytes, at + 1)
      progress?.reached(at)
    }
  }

  /**
   * Walks an object of one form: `beginning`, which ends within a string, then a few plain characters, a quote and the closing brace.
   * False: the object has another form and was not walked. Five times as fast as listing its members.
   */
  takeShort(beginning: Buffer): boolean {
    const { bytes, position } = this
    if (this.#limits !== NO_LIMITS) return false
    for (let index = 0; index < beginning.length; index++) if (byteAt(bytes, position + index) !== beginning[index]) return false
    const first = position + beginning.length
    const last = Math.min(first + MAX_SHORT, bytes.length - 1)
    for (let at = first; at < last; at++) {
      const byte = bytes[at]!
      if (byte === QUOTE) {
        if (bytes[at + 1] !== CLOSE_BRACE) return false
        this.position = at + 2
        return true
      }
      if (byte === BACKSLASH || byte < SPACE) return false
    }
    return false
  }

  // The methods below take the offset of a token and return the offset behind it: a local variable is faster than a field.

  /** Reads the opening bracket and the white space behind it. */
  #enter(at: number): number {
    if (++this.#depth > this.#limits.maxDepth) throw this.#limit('maxDepth', at)
    return afterSpace(this.bytes, at + 1)
  }

  /** Reads the closing bracket. */
  #leave(at: number): number {
    this.#depth--
    return at + 1
  }

  /** Reads the colon and the white space around it. */
  #colon(from: number): number {
    const { bytes } = this
    const at = afterSpace(bytes, from)
    if (byteAt(bytes, at) !== COLON) throw syntax('expected ":"', at)
    return afterSpace(bytes, at + 1)
  }

  /** The members of an object or array, if `into` lists them. */
  #listed(into: Into, key: string, at: number, keyStart: number): readonly Member[] | undefined {
    const byte = byteAt(this.bytes, at)
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return undefined
    this.position = at
    return into(key, this, keyStart)
  }

  #count(at: number): void {
    if (++this.#values > this.#limits.maxValues) throw this.#limit('maxValues', at)
  }

  /** Reads the value at `at`, where no white space stands. */
  #value(at: number): number {
    this.#count(at)
    const { bytes } = this
    const byte = byteAt(bytes, at)
    if (byte === QUOTE) return this.#ahead?.stringEnd(bytes, at) ?? stringEnd(bytes, at, this.#strict, this.#isPlain)
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return scalarEnd(bytes, at, this.#strict, this.#isPlain)
    if (!this.#isPlain && bytes.length - at >= MIN_KERNEL_BYTES) {
      const end = this.#skipped(at)
      if (end >= 0) return end
    }
    if (this.#depth >= this.#maxRecursion) return deepValueEnd(bytes, at, this.#strict, this.#isPlain)
    return byte === OPEN_BRACE ? this.#object(at) : this.#array(at)
  }

  /** Skips the object or array at `at` with the kernel. Negative: this scanner must read it, and everything after it. */
  #skipped(at: number): number {
    const known = this.#ahead?.valueEnd(this.bytes, at)
    if (known !== undefined) return known
    const { maxDepth, maxValues, maxKeysPerObject } = this.#limits
    const left = { maxDepth: maxDepth - this.#depth, maxValues: maxValues - this.#values + 1, maxKeysPerObject }
    const kernel = Kernel.shared
    const end = kernel?.valueEnd(this.bytes, at, left, this.#strict ? CHECK_ALL : CHECK_BEGINNING) ?? -1
    if (kernel === undefined || end < 0) this.#isPlain = true
    else this.#values += kernel.values - 1
    return end
  }

  #object(from: number): number {
    const { bytes } = this
    const { maxKeysPerObject } = this.#limits
    let at = this.#enter(from)
    if (byteAt(bytes, at) === CLOSE_BRACE) return this.#leave(at)
    for (let keys = 1; ; keys++) {
      if (keys > maxKeysPerObject) throw this.#limit('maxKeysPerObject', at)
      if (byteAt(bytes, at) !== QUOTE) throw syntax('expected a key', at)
      at = afterSpace(bytes, this.#value(this.#colon(stringEnd(bytes, at, this.#strict, this.#isPlain))))
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACE) return this.#leave(at)
      if (next !== COMMA) throw syntax('expected "," or "}"', at)
      at = afterSpace(bytes, at + 1)
    }
  }

  /** `found`: gets the span of each element, of at most `maxElements`. */
  #array(from: number, found?: Span[], maxElements = Infinity): number {
    const { bytes } = this
    let at = this.#enter(from)
    if (byteAt(bytes, at) === CLOSE_BRACKET) return this.#leave(at)
    for (;;) {
      const end = this.#value(at)
      if (found !== undefined && found.push({ start: at, end }) > maxElements)
        throw new ScanError('limit', `more than ${maxElements} elements`, at)
      at = afterSpace(bytes, end)
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACKET) return this.#leave(at)
      if (next !== COMMA) throw syntax('expected "," or "]"', at)
      at = afterSpace(bytes, at + 1)
    }
  }

  /** The decoded key between its quotes. */
  #key(start: number, end: number): string {
    return wordAt(this.bytes, start, end) ?? decodeString(this.bytes, start, end)
  }

  #limit(name: keyof ScanLimits, at: number): ScanError {
    const limit = LIMIT_NAMES[name]
    return new ScanError('limit', `the message exceeds ${limit} (${this.#limits[name]})`, at, { limit })
  }
}

const byteAt = (bytes: Buffer, at: number): number => (at < bytes.length ? bytes[at]! : END)

const checkKey = (key: string, at: number, found: readonly Member[], deciding: DecidingKeys): void => {
  if (deciding.has(key)) {
    if (isAmong(found, key)) throw new ScanError('key', `duplicate key ${JSON.stringify(key)}`, at)
    return
  }
  const variant = deciding.variantOf(key)
  if (variant !== undefined)
    throw new ScanError('key', `the key ${JSON.stringify(key)} differs from "${variant}" only in case`, at)
}

const isAmong = (members: readonly Member[], key: string): boolean => {
  for (const member of members) if (member.key === key) return true
  return false
}
