/**
 * Canonical JSON text: keys sorted, strings unescaped, no white space, number text unchanged (BRIDGING 3.2). Two documents have the
 * same canonical text if and only if a lossless parser reads the same value from both.
 */
import { elementsAt, membersAt } from './members.ts'
import { stringAt } from './payload.ts'
import { NO_LIMITS, Scanner } from '../json/scan.ts'
import type { Span } from '../json/scan.ts'

/** Written by recursion, and each level is scanned again: deeper values have no canonical text. */
const LIMITS = { ...NO_LIMITS, maxDepth: 512 }

/** The canonical text of the one value in `bytes`. Throws `ScanError` if there is none, or one of more than 512 levels. */
export const canonical = (bytes: Buffer): string => valueText(bytes, new Scanner(bytes, { limits: LIMITS }).skip())

const valueText = (bytes: Buffer, span: Span): string => {
  const first = bytes[span.start]
  if (first === 0x22) return JSON.stringify(stringAt(bytes, span))
  if (first === 0x5b) {
    const elements = elementsAt(bytes, span.start).map((element) => valueText(bytes, element))
    return `[${elements.join(',')}]`
  }
  if (first !== 0x7b) return bytes.toString('latin1', span.start, span.end)
  // The sort is stable: repeated keys keep their order, because that decides which one counts.
  const members = membersAt(bytes, span.start).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return `{${members.map((member) => `${JSON.stringify(member.key)}:${valueText(bytes, member)}`).join(',')}}`
}
