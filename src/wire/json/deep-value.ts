/**
 * Walks JSON of any depth in a loop, so that deep messages cannot overflow the call stack (T-24). The scanner recurses down to a limit,
 * which is faster, and continues here.
 */
import { Brackets } from './brackets.ts'
import type { Span } from './scan.ts'
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  afterSpace,
  scalarEnd,
  stringEnd,
  syntax,
} from './tokens.ts'

/** Returns the offset behind the object or array that begins at `from`. Throws `ScanError` for invalid JSON. */
export const deepValueEnd = (bytes: Buffer, from: number, strict: boolean, isPlain = false): number => {
  const open = new Brackets()
  let at = from
  for (;;) {
    const byte = bytes[at]
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      open.push(byte === OPEN_BRACE)
      at = afterSpace(bytes, at + 1)
      if (bytes[at] !== closing(open.isObject)) {
        if (open.isObject) at = valueStart(bytes, at, strict, isPlain)
        continue
      }
    } else at = afterSpace(bytes, scalarEnd(bytes, at, strict, isPlain))
    // Behind a value, or in an empty object or array.
    while (bytes[at] === closing(open.isObject)) {
      open.pop()
      if (open.size === 0) return at + 1
      at = afterSpace(bytes, at + 1)
    }
    if (bytes[at] !== COMMA) throw syntax(`expected "," or "${open.isObject ? '}' : ']'}"`, at)
    at = afterSpace(bytes, at + 1)
    if (open.isObject) at = valueStart(bytes, at, strict, isPlain)
  }
}

/** Whether the JSON value at `span` has more than `levels` levels of objects and arrays. Stops at the first one beyond. */
export const isDeeperThan = (bytes: Buffer, { start, end }: Span, levels: number): boolean => {
  if (end - start <= 2 * levels) return false
  let depth = 0
  for (let at = start; at < end;) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = stringEnd(bytes, at, false)
      continue
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > levels) return true
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
    at++
  }
  return false
}

const closing = (isObject: boolean): number => (isObject ? CLOSE_BRACE : CLOSE_BRACKET)

/** Reads a key and its colon; returns the offset of the value. */
const valueStart = (bytes: Buffer, at: number, strict: boolean, isPlain: boolean): number => {
  if (bytes[at] !== QUOTE) throw syntax('expected a key', at)
  const colon = afterSpace(bytes, stringEnd(bytes, at, strict, isPlain))
  if (bytes[colon] !== COLON) throw syntax('expected ":"', colon)
  return afterSpace(bytes, colon + 1)
}
