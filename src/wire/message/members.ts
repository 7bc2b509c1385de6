/**
 * Members and elements of any value inside a payload. Every occurrence of a repeated key is listed, so that an edit reaches the one that
 * a parser uses.
 */
import { OPEN_BRACKET } from '../json/tokens.ts'
import { Scanner } from '../json/scan.ts'
import type { Member, Span } from '../json/scan.ts'

/** A replacement of a span. An empty span inserts, an empty text removes. */
export interface Edit extends Span {
  readonly text: string
}

/** The members of the object at `start`, in order; empty for any other value. Throws `ScanError` for invalid JSON. */
export const membersAt = (bytes: Buffer, start: number): Member[] => new Scanner(bytes, { start, strict: false }).object() ?? []

/** The elements of the array at `start`; empty for any other value. Throws `ScanError` for invalid JSON. */
export const elementsAt = (bytes: Buffer, start: number): Span[] => {
  const scanner = new Scanner(bytes, { start, strict: false })
  return scanner.peek() === OPEN_BRACKET ? scanner.elements() : []
}

/** The member that a JSON parser uses for `key`: of a repeated key the last one. */
export const lastMember = (members: readonly Member[], key: string): Member | undefined =>
  members.findLast((member) => member.key === key)

/** Returns the edits that remove some members of one object, with their commas. `members`: all members of the object. */
export const cutMembers = (members: readonly Member[], isCut: (member: Member) => boolean): Edit[] => {
  const edits: Edit[] = []
  // Cast: `from` and `to` are indexes of members.
  for (let from = 0; from < members.length; from++) {
    const first = members[from]!
    if (!isCut(first)) continue
    let to = from
    let behind = members[to + 1]
    while (behind !== undefined && isCut(behind)) behind = members[++to + 1]
    const before = members[from - 1]
    if (behind !== undefined) edits.push({ start: first.keyStart, end: behind.keyStart, text: '' })
    else edits.push({ start: before === undefined ? first.keyStart : before.end, end: members[to]!.end, text: '' })
    from = to
  }
  return edits
}

/** Returns the bytes with all edits applied; the same buffer if there are none. Edits must not overlap. */
export const edited = (bytes: Buffer, edits: readonly Edit[]): Buffer => {
  if (edits.length === 0) return bytes
  const parts: Uint8Array[] = []
  let at = 0
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(at, edit.start), Buffer.from(edit.text))
    at = edit.end
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}
