/**
 * Members and elements inside a payload, with escaped and repeated keys. Nothing is refused. Every occurrence of a key is listed, so
 * that an edit reaches the one that a parser uses.
 */
import { stringAt } from './payload.ts'
import { Scanner } from '../json/scan.ts'
import type { Member, Span } from '../json/scan.ts'

/** A replacement of a span; an empty span inserts, an empty text cuts. */
export interface Edit extends Span {
  readonly text: string
}

/** The members of the object at `start`, in order; none if no object stands there. Throws `ScanError` if it is no JSON. */
export const membersAt = (bytes: Buffer, start: number): Member[] => {
  const scanner = new Scanner(bytes, { start, strict: false })
  const found: Member[] = []
  if (scanner.peek() !== 0x7b) return found
  scanner.position++
  while (scanner.peek() !== 0x7d) {
    if (found.length > 0) scanner.position++
    scanner.peek()
    const key = scanner.skip()
    scanner.peek()
    scanner.position++
    const value = scanner.skip()
    found.push({ key: stringAt(bytes, key) ?? '', keyStart: key.start, start: value.start, end: value.end, members: undefined })
  }
  return found
}

/** The elements of the array at `start`; none if no array stands there. */
export const elementsAt = (bytes: Buffer, start: number): Span[] => {
  const scanner = new Scanner(bytes, { start, strict: false })
  return scanner.peek() === 0x5b ? scanner.elements() : []
}

/** The member that a JSON parser uses for `key`: the last one of a repeated key. */
export const lastMember = (members: readonly Member[], key: string): Member | undefined =>
  members.findLast((member) => member.key === key)

/** The edits that leave out some members of one object, with the commas that belonged to them. */
export const cutMembers = (members: readonly Member[], isCut: (member: Member) => boolean): Edit[] => {
  const edits: Edit[] = []
  // Cast: `from` and `to` are of members.
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

/** The bytes with all edits made; the same buffer if there are none. Edits must not overlap. */
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
