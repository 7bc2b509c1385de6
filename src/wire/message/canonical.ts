/**
 * Canonical JSON text: sorted keys, unescaped strings, no white space, unchanged numbers (BRIDGING 3.2). Two documents have the same
 * canonical text if and only if a lossless parser reads the same value from both.
 */
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../json/tokens.ts'
import { elementsAt, membersAt } from './members.ts'
import { stringAt } from './payload.ts'
import { NO_LIMITS, Scanner } from '../json/scan.ts'
import type { Span } from '../json/scan.ts'

/** Values are walked by recursion, and each level is scanned again: deeper values have no canonical text. */
const LIMITS = { ...NO_LIMITS, maxDepth: 512 }

/** The canonical text of the value in `bytes`. Throws `ScanError` for invalid JSON and for more than 512 levels. */
export const canonical = (bytes: Buffer): string => valueText(bytes, new Scanner(bytes, { limits: LIMITS }).skip())

const valueText = (bytes: Buffer, span: Span): string => {
  const first = bytes[span.start]
  if (first === QUOTE) return JSON.stringify(stringAt(bytes, span))
  if (first === OPEN_BRACKET) {
    const elements = elementsAt(bytes, span.start).map((element) => valueText(bytes, element))
    return `[${elements.join(',')}]`
  }
  if (first !== OPEN_BRACE) return bytes.toString('latin1', span.start, span.end)
  // The sort is stable: repeated keys keep their order, which decides which one is used.
  const members = membersAt(bytes, span.start).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return `{${members.map((member) => `${JSON.stringify(member.key)}:${valueText(bytes, member)}`).join(',')}}`
}
