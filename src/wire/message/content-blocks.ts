/**
 * Lists the content blocks of a result that may hold a URI, or whose type not every revision knows. The scan of the message finds them by
 * structure. Text and image blocks are not listed, so that the list is empty for the results of most tools.
 *
 * Gain: a search for `"resource` cost 0.6 ns a byte where quotes are dense; all of a result of 10 KB costs 0.38 (bench/notes.md).
 */
import type { Payload } from './payload.ts'
import { stringAt } from './payload.ts'
import { OPEN_BRACKET } from '../json/tokens.ts'
import { Scanner } from '../json/scan.ts'
import type { Into, Member } from '../json/scan.ts'

/** The member of a result that holds blocks: of a tool, of the messages of a prompt, or of a resource. */
export type BlockPlace = 'content' | 'messages' | 'contents'

/** Types that every revision knows and that hold no URI. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['text', 'image'])
/** The shared empty list. */
const NONE: readonly Member[] = []

/** The beginning of most text blocks, and of nearly all where there are many. */
const SHORT_TEXT = Buffer.from('{"type":"text","text":"')

/** Walks the object at the position of the scanner, and adds its listed blocks to `found`. */
type Take = (scanner: Scanner, found: Member[]) => void

const takeBlock: Take = (scanner, found) => {
  if (scanner.takeShort(SHORT_TEXT)) return
  const start = scanner.position
  const members = scanner.members()
  if (!isPlain(scanner.bytes, members)) found.push({ key: '', keyStart: start, start, end: scanner.position, members })
}

const takeMessage: Take = (scanner, found) => {
  for (const { key, members } of scanner.members(intoContent))
    if (key === 'content' && members !== undefined) found.push(...members)
}
/** The content of a message is one block or, from some servers, a list of blocks. */
const intoContent: Into = (key, scanner) => {
  if (key !== 'content') return undefined
  if (scanner.peek() === OPEN_BRACKET) return listOf(scanner, takeBlock)
  const found: Member[] = []
  takeBlock(scanner, found)
  return found
}

/** Every item of a resource has a URI. */
const takeItem: Take = (scanner, found) => {
  const start = scanner.position
  const members = scanner.members()
  found.push({ key: '', keyStart: start, start, end: scanner.position, members })
}

const TAKES: Readonly<Record<BlockPlace, Take>> = { content: takeBlock, messages: takeMessage, contents: takeItem }
const takeOf = (key: string): Take | undefined =>
  key === 'content' || key === 'messages' || key === 'contents' ? TAKES[key] : undefined

/** Whether the block has at least one `type`, and only plain ones. */
const isPlain = (bytes: Buffer, members: readonly Member[]): boolean => {
  let isTyped = false
  for (const member of members) {
    if (member.key !== 'type') continue
    if (!PLAIN_TYPES.has(stringAt(bytes, member) ?? '')) return false
    isTyped = true
  }
  return isTyped
}

const listOf = (scanner: Scanner, take: Take): readonly Member[] => {
  const progress = scanner.listProgress()
  const found = progress?.found ?? []
  scanner.each(() => take(scanner, found), progress)
  return found.length === 0 ? NONE : found
}

/** Lists the blocks of a member of a result, for `Scanner.members`; `undefined` for members without blocks. */
export const intoBlocks: Into = (key, scanner) => {
  const take = takeOf(key)
  return take === undefined || scanner.peek() !== OPEN_BRACKET ? undefined : listOf(scanner, take)
}

/** The listed blocks of that member of a result, each with its members. Scans the result if the scan of the message did not list them. */
export const blocksOf = (result: Payload, place: BlockPlace): readonly Member[] => {
  const member = result.member(place)
  if (member === undefined) return NONE
  if (member.members !== undefined) return member.members
  return intoBlocks(place, new Scanner(result.bytes, { start: member.start, strict: false }), member.keyStart) ?? NONE
}
