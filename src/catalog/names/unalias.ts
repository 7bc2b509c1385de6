/**
 * Turns exposed URIs in a call's `arguments` back into what the called server knows them as (BRIDGING 4.4 rule 7): models feed a
 * server's resource link into that server's tools. Done on the bytes: of a string that begins literally with the prefix, the
 * prefix is cut out; not one other byte changes, and escaped spellings pass.
 */
import { edited } from '../../wire/message/members.ts'
import type { Edit } from '../../wire/message/members.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
/** Every exposed URI has one of them. */
const PLUS = 0x2b
const TILDE = 0x7e

/** Marks that are looked at one by one: as long as a search of some hundred kilobytes takes. */
const MAX_LOOKS = 4_096

/** The arguments for the server with this prefix; the same buffer if none of its URIs is in them. `args` is checked JSON. */
export const unaliasArguments = (args: Buffer, prefix: string): Buffer => {
  const plain = Buffer.from(`"${prefix}+`)
  const ui = Buffer.from(`"ui://~${prefix}/`)
  if (!occurs(args, plain, PLUS) && !occurs(args, ui, TILDE)) return args
  const edits: Edit[] = []
  for (let start = args.indexOf(QUOTE); start !== -1;) {
    const end = closingQuote(args, start)
    if (!isKey(args, end)) {
      const uri = start + plain.length
      if (startsWith(args, start, plain) && (hasScheme(args, uri) || isRelative(args, uri)))
        edits.push({ start: start + 1, end: args[uri] === COLON ? uri + 1 : uri, text: '' })
      else if (startsWith(args, start, ui)) edits.push({ start: start + '"ui://'.length, end: start + ui.length, text: '' })
    }
    start = args.indexOf(QUOTE, end + 1)
  }
  return edited(args, edits)
}

/**
 * Whether `text`, which begins with a quote and in which `mark` stands once, is in `args`. It is found by its mark and by quotes in turns, as one of
 * them is mostly rare and a search for all of it looks at every quote; where both are many, by that search after all.
 */
const occurs = (args: Buffer, text: Buffer, mark: number): boolean => {
  const markAt = text.indexOf(mark)
  let from = markAt
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const at = args.indexOf(mark, from)
    if (at === -1) return false
    if (args[at - 1] === text[markAt - 1] && startsWith(args, at - markAt, text)) return true
    // It begins with a quote, and no mark stands between that and its own: no sooner than at the next one.
    const quote = args.indexOf(QUOTE, at)
    if (quote === -1) return false
    from = quote + markAt
  }
  return args.indexOf(text, from - markAt) !== -1
}

const closingQuote = (args: Buffer, start: number): number => {
  let at = start + 1
  while (args[at] !== QUOTE && at < args.length) at += args[at] === BACKSLASH ? 2 : 1
  return at
}

/** A string with a colon behind it is a key, not a value. */
const isKey = (args: Buffer, closing: number): boolean => {
  let at = closing + 1
  while (args[at] === 0x20 || args[at] === 0x0a || args[at] === 0x0d || args[at] === 0x09) at++
  return args[at] === COLON
}

const startsWith = (args: Buffer, start: number, text: Buffer): boolean => args.subarray(start, start + text.length).equals(text)

/** A colon in place of a scheme, and something behind it: the exposed form of a relative URI. */
const isRelative = (args: Buffer, start: number): boolean => args[start] === COLON && args[start + 1] !== QUOTE

/** A letter, then letters, digits, `+ - .`, then the colon ([RFC 3986 3.1]). */
const hasScheme = (args: Buffer, start: number): boolean => {
  let at = start
  const isLetter = (byte: number): boolean => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  const isOther = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e
  // Cast: what stands behind the end is no number, and no comparison with it holds.
  while (isLetter(args[at]!) || (at > start && isOther(args[at]!))) at++
  return at > start && args[at] === COLON
}
