/** Finds where the `content` of a tool's result begins, in the first bytes of a response. */
import { ENVELOPE_KEYS, RESULT_KEYS } from '../protocol/deciding-keys.ts'
import { Scanner } from '../json/scan.ts'
import { ScanError } from '../json/scan-error.ts'

const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
/** A result without `content` in its first bytes up to here is read whole. */
const MAX_HEAD_BYTES = 16 * 1024

export interface HeadPlace {
  /** Of the result's brace, and of the key of `content`. */
  readonly resultStart: number
  readonly keyStart: number
}

/** Thrown to end a scan early; shared, since creating an error costs more than the scan. */
const FOUND = new Error('found')

/** `more`: all of it may be plain, and `content` is still to come; `undefined`: it has none, or is no such response. */
export const findContent = (bytes: Buffer): HeadPlace | 'more' | undefined => {
  const head = bytes.subarray(0, MAX_HEAD_BYTES)
  const scanner = new Scanner(head, { strict: false })
  let resultStart = -1
  let contentKeyStart = -1
  try {
    scanner.members((key) => {
      if (key !== 'result' || scanner.peek() !== OPEN_BRACE) return undefined
      resultStart = scanner.position
      return scanner.members((name, _scanner, keyStart) => {
        contentKeyStart = keyStart
        if (name === 'content' && scanner.peek() === OPEN_BRACKET) throw FOUND
        return undefined
      }, RESULT_KEYS)
    }, ENVELOPE_KEYS)
  } catch (error) {
    if (error === FOUND) return { resultStart, keyStart: contentKeyStart }
    if (!(error instanceof ScanError)) throw error
    return bytes.length < MAX_HEAD_BYTES && error.kind === 'syntax' && error.offset >= head.length - 6 ? 'more' : undefined
  }
  return undefined
}
