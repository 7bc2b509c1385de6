/**
 * Lists the content blocks of a result that may hold a URI, or whose type not every revision knows. The one scan of the message finds them by
 * structure, so `"resource` inside a text costs nothing. A search for that text cost 0.6 ns a byte where quotes are dense, and had false
 * matches. Text and image blocks are not listed: for the results of most tools the list is empty.
 *
 * Gain: a search for `"resource` cost 0.6 ns a byte where quotes are dense, all of a result of 10 KB costs 0.38 (bench/notes.md).
 */
import type { Payload } from './payload.ts'
import { stringAt } from './payload.ts'
import { Scanner } from '../json/scan.ts'
import type { Into, Member } from '../json/scan.ts'

/** Where the result of a method holds blocks: those of a tool, of a prompt's messages, or what was read. */
export type BlockPlace = 'content' | 'messages' | 'contents'

/** Every revision knows them, and they hold no URI. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['text', 'image'])
const OPEN_BRACKET = 0x5b
/** Shared by all that hold none. */
const NONE: readonly Member[] = []

/** So most blocks of texts begin, and nearly all of which there are many. */
const SHORT_TEXT = Buffer.from('{"type":"text","text":"')

/** Takes the object at which the scanner stands, and adds what it holds. */
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
/** A message's content is one block, or (some servers) a list of them. */
const intoContent: Into = (key, scanner) => {
  if (key !== 'content') return undefined
  if (scanner.peek() === OPEN_BRACKET) return listOf(scanner, takeBlock)
  const found: Member[] = []
  takeBlock(scanner, found)
  return found
}

/** What is read has a URI, whatever it is. */
const takeItem: Take = (scanner, found) => {
  const start = scanner.position
  const members = scanner.members()
  found.push({ key: '', keyStart: start, start, end: scanner.position, members })
}

const TAKES: Readonly<Record<BlockPlace, Take>> = { content: takeBlock, messages: takeMessage, contents: takeItem }
const takeOf = (key: string): Take | undefined =>
  key === 'content' || key === 'messages' || key === 'contents' ? TAKES[key] : undefined

/** Every `type` it has says so, and it has one. */
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

/** Lists the blocks of a result's member, for `Scanner.members`; `undefined` for members that hold none. */
export const intoBlocks: Into = (key, scanner) => {
  const take = takeOf(key)
  return take === undefined || scanner.peek() !== OPEN_BRACKET ? undefined : listOf(scanner, take)
}

/** The blocks in that member of a result, each with its members: as the scan of the message found them, else found now. */
export const blocksOf = (result: Payload, place: BlockPlace): readonly Member[] => {
  const member = result.member(place)
  if (member === undefined) return NONE
  if (member.members !== undefined) return member.members
  return intoBlocks(place, new Scanner(result.bytes, { start: member.start, strict: false }), member.keyStart) ?? NONE
}
