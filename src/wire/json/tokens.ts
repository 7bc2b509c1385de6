/**
 * Tokens of JSON text: strings, numbers, words and white space. Each function takes the offset of a token and returns the offset
 * behind it. Throws `ScanError` for an invalid token.
 *
 * Cast: `!` at a byte whose offset is below the length of its buffer.
 */
import { DOUBT, Kernel, MORE } from '../kernel/kernel.ts'
import { ScanError } from './scan-error.ts'

// The bytes that structure JSON text.
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
/** The first byte of `null`, and of no other value. */
export const NULL = 0x6e
/** Stands for the byte after the last one. */
export const END = -1

/** Lenient input: this many bytes of a string, its quote included, are read one by one; the rest is searched for its end. */
const SHORT_STRING = 50
/** Strict input: this many bytes are read one by one before the kernel is called, if `MIN_KERNEL_BYTES` follow. A call costs as much as 50. */
const CHECKED_STRING = 64
const MIN_KERNEL_BYTES = 128
/** From this distance between quotes on, a native search is faster than the kernel. */
const SPARSE_BYTES = 512
/** From this length on, a native search is faster than a loop. */
const LONG_STRING = 64
/** The bytes that may follow a backslash, except `u`. */
const ESCAPES: readonly (number | undefined)[] = Array.from('"\\/bfnrt', (character) => character.charCodeAt(0))

/** Returns the offset of the first byte from `at` on that is not white space. */
export const afterSpace = (bytes: Buffer, at: number): number => {
  let next = at
  while (next < bytes.length && isSpace(bytes[next]!)) next++
  return next
}

/**
 * The end of the string whose quote is at `from`. `strict`: control characters are refused anywhere, else only in the first bytes.
 * `isPlain`: reads without the kernel, with the same result.
 */
export const stringEnd = (bytes: Buffer, from: number, strict: boolean, isPlain = false): number => {
  let at = from + 1
  let end = Math.min(from + (strict ? CHECKED_STRING : SHORT_STRING), bytes.length)
  for (;;) {
    while (at < end) {
      const byte = bytes[at]!
      if (byte === QUOTE) return at + 1
      if (byte === BACKSLASH) at = escapeEnd(bytes, at)
      else if (byte < 0x20) throw syntax('control character in a string', at)
      else at++
    }
    if (!strict || at >= bytes.length) return restOfString(bytes, at, isPlain)
    if (!isPlain && bytes.length - at >= MIN_KERNEL_BYTES) {
      const found = Kernel.shared?.checkedStringEnd(bytes, at) ?? DOUBT
      if (found >= 0) return found
    }
    end = bytes.length
  }
}

/** The end of the string that contains `from`, whose byte is not escaped. */
export const restOfString = (bytes: Buffer, from: number, isPlain = false): number => {
  const quote = closingQuote(bytes, from, isPlain)
  if (quote === -1) throw syntax('unterminated string', bytes.length)
  return quote + 1
}

/** The text between two quotes. Throws `ScanError` for an invalid escape, which a lenient scan does not find. */
export const decodeString = (bytes: Buffer, start: number, end: number): string => {
  if (!hasEscape(bytes, start, end)) return bytes.toString('utf8', start, end)
  try {
    // Cast: JSON text in quotes is a string, or `parse` throws.
    return JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string
  } catch (cause) {
    throw new ScanError('syntax', `bad escape in the string at byte ${start - 1}`, start - 1, { cause })
  }
}

const hasEscape = (bytes: Buffer, start: number, end: number): boolean => {
  if (end - start > LONG_STRING) return bytes.subarray(start, end).includes(BACKSLASH)
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

/**
 * The offset of the closing quote of the string that contains `from`, or -1. It is the first quote after an even number of backslashes.
 * A native search takes 0.01 ns a byte and 50 ns for each quote that it finds; the kernel takes 0.15 ns a byte. The distance between the
 * quotes decides which one is used.
 */
export const closingQuote = (bytes: Buffer, from: number, isPlain = false): number => {
  let start = from
  let at = from < bytes.length ? bytes.indexOf(QUOTE, from) : -1
  let ahead = SPARSE_BYTES
  let last = from
  while (at !== -1) {
    let back = at - 1
    while (back >= start && bytes[back] === BACKSLASH) back--
    if ((at - back) % 2 === 1) return at
    start = at + 1
    ahead = Math.min(ahead + at - last - SPARSE_BYTES, 4 * SPARSE_BYTES)
    last = at
    if (ahead < 0 && !isPlain) {
      const kernel = bytes.length - start < MIN_KERNEL_BYTES ? undefined : Kernel.shared
      if (kernel !== undefined) {
        const end = kernel.stringEnd(bytes, start)
        if (end !== MORE) return end - 1
        start = kernel.searchedTo + (kernel.isEscaped ? 1 : 0)
        ahead = SPARSE_BYTES
        last = start
      }
    }
    at = start < bytes.length ? bytes.indexOf(QUOTE, start) : -1
  }
  return -1
}

const escapeEnd = (bytes: Buffer, at: number): number => {
  if (bytes[at + 1] !== 0x75) {
    if (!ESCAPES.includes(bytes[at + 1])) throw syntax('bad escape', at)
    return at + 2
  }
  // Cast: a byte behind the end is `undefined`, for which every comparison is false.
  for (let digit = at + 2; digit < at + 6; digit++) if (!isHex(bytes[digit]!)) throw syntax('bad \\u escape', digit)
  return at + 6
}

const numberEnd = (bytes: Buffer, from: number): number => {
  let at = bytes[from] === 0x2d ? from + 1 : from
  at = bytes[at] === 0x30 ? at + 1 : digitsEnd(bytes, at)
  if (at < bytes.length && bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1)
  if (at >= bytes.length || (bytes[at]! | 0x20) !== 0x65) return at
  const isSigned = bytes[at + 1] === 0x2b || bytes[at + 1] === 0x2d
  return digitsEnd(bytes, isSigned ? at + 2 : at + 1)
}

const digitsEnd = (bytes: Buffer, from: number): number => {
  let at = from
  while (at < bytes.length && isDigit(bytes[at]!)) at++
  if (at === from) throw syntax('expected a digit', at)
  return at
}

const wordEnd = (bytes: Buffer, at: number, word: 'true' | 'false' | 'null'): number => {
  for (let index = 0; index < word.length; index++)
    if (bytes[at + index] !== word.charCodeAt(index)) throw syntax('unexpected character', at)
  return at + word.length
}

/** The end of a string, a number or a word. */
export const scalarEnd = (bytes: Buffer, at: number, strict: boolean, isPlain = false): number => {
  const byte = at < bytes.length ? bytes[at]! : END
  if (byte === QUOTE) return stringEnd(bytes, at, strict, isPlain)
  if (byte === 0x2d || isDigit(byte)) return numberEnd(bytes, at)
  if (byte === 0x74) return wordEnd(bytes, at, 'true')
  if (byte === 0x66) return wordEnd(bytes, at, 'false')
  if (byte === 0x6e) return wordEnd(bytes, at, 'null')
  throw syntax(byte === END ? 'unexpected end' : 'unexpected character', at)
}

export const syntax = (what: string, at: number): ScanError => new ScanError('syntax', `${what} at byte ${at}`, at)

const isSpace = (byte: number): boolean => byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
const isHex = (byte: number): boolean => isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
