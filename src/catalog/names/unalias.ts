/**
 * Restores original URIs in a call's `arguments` (BRIDGING 4.4 rule 7): models pass a server's resource links to tools of that server.
 * Works on the bytes: cuts the prefix out of strings that begin literally with it. All other bytes stay; escaped spellings are not
 * recognised.
 */
import { edited } from '../../wire/message/members.ts'
import type { Edit } from '../../wire/message/members.ts'
import { BACKSLASH, COLON, QUOTE } from '../../wire/json/tokens.ts'

/** Every exposed URI has one of them. */
const PLUS = 0x2b
const TILDE = 0x7e

/** Marks that are inspected one by one, which takes as long as a plain search of some hundred kilobytes. */
const MAX_LOOKS = 4_096

/** The arguments for the server with this prefix; the same buffer if they contain none of its URIs. `args`: valid JSON. */
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
 * Whether `args` contains `text`, which begins with a quote and contains `mark` once. Gain: searches alternately for the mark and for
 * quotes, one of which is usually rare; a plain search stops at every quote. Falls back to the plain search if both are frequent.
 */
const occurs = (args: Buffer, text: Buffer, mark: number): boolean => {
  const markAt = text.indexOf(mark)
  let from = markAt
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const at = args.indexOf(mark, from)
    if (at === -1) return false
    if (args[at - 1] === text[markAt - 1] && startsWith(args, at - markAt, text)) return true
    // `text` begins with a quote and has no other mark before its own, so it cannot begin before the next quote.
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

/** A string followed by a colon is a key, not a value. */
const isKey = (args: Buffer, closing: number): boolean => {
  let at = closing + 1
  while (args[at] === 0x20 || args[at] === 0x0a || args[at] === 0x0d || args[at] === 0x09) at++
  return args[at] === COLON
}

const startsWith = (args: Buffer, start: number, text: Buffer): boolean => args.subarray(start, start + text.length).equals(text)

/** A colon in place of a scheme, and at least one character after it: the exposed form of a relative URI. */
const isRelative = (args: Buffer, start: number): boolean => args[start] === COLON && args[start + 1] !== QUOTE

/** A letter, then letters, digits, `+ - .`, then the colon ([RFC 3986 3.1]). */
const hasScheme = (args: Buffer, start: number): boolean => {
  let at = start
  const isLetter = (byte: number): boolean => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  const isOther = (byte: number): boolean => (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e
  // Cast: beyond the end the byte is undefined, for which every comparison is false.
  while (isLetter(args[at]!) || (at > start && isOther(args[at]!))) at++
  return at > start && args[at] === COLON
}
