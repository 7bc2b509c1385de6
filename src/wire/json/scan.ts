/**
 * A JSON scanner that finds positions instead of building values.
 *
 * It walks one value, checks that it is JSON, counts depth, values and keys against limits, and can list the members of an object as
 * spans. Only listed keys are decoded. The surprise: on `lenient` input (configured servers) only the beginning of a string is
 * checked, so a later control character is not found. The scan kernel skips values where enough bytes follow. Where it cannot
 * decide, or is missing, this scanner reads every byte.
 *
 * Cast: `!` behind a byte that stands below the length of its buffer.
 */
import type { DecidingKeys } from '../protocol/deciding-keys.ts'
import { deepValueEnd } from './deep-value.ts'
import { CHECK_ALL, CHECK_BEGINNING, Kernel } from '../kernel/kernel.ts'
import { ScanError } from './scan-error.ts'
import type { ListProgress, ScanAhead } from './scan-ahead.ts'
import { afterSpace, decodeString, scalarEnd, stringEnd, syntax } from './tokens.ts'
import { wordAt } from './known-words.ts'

export interface Span {
  /** Offset of the first byte. */
  readonly start: number
  /** Offset behind the last byte. */
  readonly end: number
}

/** One member of an object; the span is its value's. */
export interface Member extends Span {
  /** Decoded. */
  readonly key: string
  /** Offset of the key's opening quote. */
  readonly keyStart: number
  /** The members of its value, where the scan has listed them. */
  readonly members: readonly Member[] | undefined
}

/**
 * Called at each object or array: walks it and lists its members, or returns without walking, so that it is skipped. `keyStart`:
 * offset of the opening quote of its key.
 */
export type Into = (key: string, scanner: Scanner, keyStart: number) => readonly Member[] | undefined

export interface ScanLimits {
  readonly maxDepth: number
  readonly maxValues: number
  readonly maxKeysPerObject: number
}

export const NO_LIMITS: ScanLimits = { maxDepth: Infinity, maxValues: Infinity, maxKeysPerObject: Infinity }
/** Depth of recursion without a depth limit; deeper values are walked in a loop. */
const MAX_RECURSION = 512

/** With fewer bytes left an object or array is walked here, since a call of the kernel costs as much. */
const MIN_KERNEL_BYTES = 512

/** The option of each limit, for errors. Messages of servers are read without limits. */
const LIMIT_NAMES: Readonly<Record<keyof ScanLimits, string>> = {
  maxDepth: 'listen.limits.max_depth',
  maxValues: 'listen.limits.max_values',
  maxKeysPerObject: 'listen.limits.max_keys',
}

/** Characters of a string that is taken at a glance. */
const MAX_SHORT = 128
/** The result of a message, of which the lists of blocks are members. */
const LIST_DEPTH = 2

const QUOTE = 0x22
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const SPACE = 0x20
/** No byte: the end. */
const END = -1

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

  /** `isPlain`: without the kernel, with the same outcome. `ahead`: what is known of these bytes; they are lenient, without limits. */
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

  /** The next byte that is not white space, not taken. */
  peek(): number {
    this.position = afterSpace(this.bytes, this.position)
    return byteAt(this.bytes, this.position)
  }

  /** Throws unless only white space is left. */
  expectEnd(): void {
    if (this.peek() !== END) throw syntax('unexpected text after the value', this.position)
  }

  /** Skips one value and returns where it stood. */
  skip(): Span {
    const start = afterSpace(this.bytes, this.position)
    this.position = this.#value(start)
    return { start, end: this.position }
  }

  /**
   * Walks the object at the position and lists its members, repeated ones too. A key of `deciding` that is repeated, also in another
   * case, is refused, since parsers that use different ones could bypass a policy. `into` is called for each object and array.
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
      const members = into === undefined ? undefined : this.#look(into, key, start, keyStart)
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

  /** The members of the object at the position, as `members`; `undefined` if none stands there. */
  object(into?: Into, deciding?: DecidingKeys): Member[] | undefined {
    return this.peek() === OPEN_BRACE ? this.members(into, deciding) : undefined
  }

  /** Walks the array at the position and returns the span of each element. */
  elements(): Span[] {
    const { bytes } = this
    let at = afterSpace(bytes, this.position)
    if (byteAt(bytes, at) !== OPEN_BRACKET) throw syntax('expected an array', at)
    const found: Span[] = []
    at = this.#enter(at)
    if (byteAt(bytes, at) === CLOSE_BRACKET) {
      this.position = this.#leave(at)
      return found
    }
    for (;;) {
      const start = at
      const end = this.#value(start)
      found.push({ start, end })
      at = afterSpace(bytes, end)
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACKET) {
        this.position = this.#leave(at)
        return found
      }
      if (next !== COMMA) throw syntax('expected "," or "]"', at)
      at = afterSpace(bytes, at + 1)
    }
  }

  /** How far the array at the position is read, if it is a member of the result of a large message. */
  listProgress(): ListProgress | undefined {
    return this.#depth === LIST_DEPTH ? this.#ahead?.list(this.position) : undefined
  }

  /**
   * Walks the array at the position. `take` is called where an element is an object, and must walk it; others are skipped. `progress`: where
   * it goes on, and what is told how far it got.
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
   * Takes an object that begins with `beginning`, which ends within a string, if few plain characters and its closing brace follow;
   * false: nothing is taken. Five times as fast as listing its members.
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

  // The methods below take the offset of a token and return the offset after it: a local variable is faster than a field.

  /** Takes the opening bracket and what white space follows it. */
  #enter(at: number): number {
    if (++this.#depth > this.#limits.maxDepth) throw this.#limit('maxDepth', at)
    return afterSpace(this.bytes, at + 1)
  }

  /** Takes the closing bracket. */
  #leave(at: number): number {
    this.#depth--
    return at + 1
  }

  /** Takes the colon and the white space around it. */
  #colon(from: number): number {
    const { bytes } = this
    const at = afterSpace(bytes, from)
    if (byteAt(bytes, at) !== COLON) throw syntax('expected ":"', at)
    return afterSpace(bytes, at + 1)
  }

  #look(into: Into, key: string, at: number, keyStart: number): readonly Member[] | undefined {
    const byte = byteAt(this.bytes, at)
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return undefined
    this.position = at
    return into(key, this, keyStart)
  }

  #count(at: number): void {
    if (++this.#values > this.#limits.maxValues) throw this.#limit('maxValues', at)
  }

  /** No white space stands before it. */
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

  /** The object or array at `at`, by the kernel; negative: it is to be read here, and so is all that follows. */
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

  #array(from: number): number {
    const { bytes } = this
    let at = this.#enter(from)
    if (byteAt(bytes, at) === CLOSE_BRACKET) return this.#leave(at)
    for (;;) {
      at = afterSpace(bytes, this.#value(at))
      const next = byteAt(bytes, at)
      if (next === CLOSE_BRACKET) return this.#leave(at)
      if (next !== COMMA) throw syntax('expected "," or "]"', at)
      at = afterSpace(bytes, at + 1)
    }
  }

  /** The key between its quotes, decoded. */
  #key(start: number, end: number): string {
    const word = wordAt(this.bytes, start, end)
    return word ?? decodeString(this.bytes, start, end)
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
