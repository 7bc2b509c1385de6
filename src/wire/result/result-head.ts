/** Finds the `content` of a tool's result in the first bytes of a response. */
import { OPEN_BRACE, OPEN_BRACKET } from '../json/tokens.ts'
import { ENVELOPE_KEYS, RESULT_KEYS } from '../protocol/deciding-keys.ts'
import { Scanner } from '../json/scan.ts'
import { ScanError } from '../json/scan-error.ts'

/** A result whose `content` begins behind this many bytes is not streamed. */
const MAX_HEAD_BYTES = 16 * 1024

export interface HeadPlace {
  /** Offset of the brace of the result. */
  readonly resultStart: number
  /** Offset of the key of `content`. */
  readonly keyStart: number
}

/** Thrown to end a scan early. Shared, since creating an error costs more than the scan. */
const FOUND = new Error('found')

/** `more`: `content` may still follow; `undefined`: the response has no `content`, or it is invalid. */
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
