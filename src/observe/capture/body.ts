/**
 * A captured message as it is shown: whole up to a limit, else its beginning and end, and always without secrets. Known secrets are removed
 * by value (`hide`), and unknown ones by the name of their member.
 */

export interface KeptBody {
  /** Size of the message in bytes. */
  readonly bytes: number
  /** The whole message. */
  readonly text?: string
  /** Instead of `text`: beginning, end, and the number of bytes between them. */
  readonly head?: string
  readonly tail?: string
  readonly omitted?: number
  /** The message was streamed: this is the server's form of it. */
  readonly streamed?: true
}

/** Returns a text without known secrets. */
export type Hide = (text: string) => string

/** Names of secrets, also as the last words of longer names (`db_password`), in all spellings of `secretAccessKey`. */
const SECRETS = [
  '(?:access|api|auth|bearer|bot|csrf|id|refresh|security|session|xsrf)?token',
  '(?:admin|app|client|db|new|old|root|user)?(?:password|passwd)',
  '(?:api|app|client|shared|signing|webhook)?secret',
  '(?:access|api|encryption|master|private|secret|secret[_-]?access|signing)[_-]?key',
  'authorization|bearer|cookie|credentials?|passphrase',
]
/** Tokens that are no secrets: places in a list, and those of progress. */
const PLACES = '(?:page|next|next[_-]page|continuation|sync|progress)[_-]token'

/**
 * The beginning of a member whose value is never shown, up to its value. Also in JSON inside of a text, as tools repeat structured content:
 * group 1 has the backslashes in front of its quotes.
 */
const SECRET_MEMBER = new RegExp(
  String.raw`"(?!${PLACES}\b)(?:[\w-]{0,40}[_-])?(?:${SECRETS.join('|')})(\\{0,15})"\s*:\s*(?=\1"|-?\d|[[{])`,
  'gi',
)
const NUMBER = /-?\d[\d.eE+-]*/y

/** Returns a text without known secrets, and without the values of members that are named like secrets. */
export const withoutSecrets = (text: string, hide: Hide): string => {
  const hidden = hide(text)
  let shown = ''
  let at = 0
  for (const { 0: member, 1: escape = '', index } of hidden.matchAll(SECRET_MEMBER)) {
    const start = index + member.length
    // A member in the value of another one is hidden already.
    if (index < at) continue
    shown += `${hidden.slice(at, start)}${escape}"***${escape}"`
    at = endOfValue(hidden, start, escape.length)
  }
  return at === 0 ? hidden : shown + hidden.slice(at)
}

/**
 * Returns the end of a value. `level`: the number of backslashes in front of the quotes of a text. Not by an expression: the value may have
 * many megabytes.
 */
const endOfValue = (text: string, start: number, level: number): number => {
  if ('[{'.includes(text.charAt(start))) return endOfBrackets(text, start, level)
  NUMBER.lastIndex = start
  if (NUMBER.test(text)) return NUMBER.lastIndex
  for (let quote = text.indexOf('"', start + level + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    const backslashes = backslashesBefore(text, quote)
    // Fewer: the text around it ends here. Others belong to a quote or a backslash of the value.
    if (backslashes < level) return quote - backslashes
    if (backslashes % (2 * (level + 1)) === level) return quote + 1
  }
  return text.length
}

const backslashesBefore = (text: string, at: number): number => {
  let count = 0
  while (text.charAt(at - 1 - count) === '\\') count++
  return count
}

const BRACKET_OR_QUOTE = /["[\]{}]/g

/** Returns the end of a list or object, or of what is there of one that was cut. */
const endOfBrackets = (text: string, start: number, level: number): number => {
  let depth = 0
  for (let at = start; ;) {
    BRACKET_OR_QUOTE.lastIndex = at
    const found = BRACKET_OR_QUOTE.exec(text)
    if (found === null) return text.length
    const { 0: sign, index } = found
    at = index + 1
    if (sign === '"') {
      const backslashes = backslashesBefore(text, index)
      if (backslashes < level) return index - backslashes
      at = endOfValue(text, index - level, level)
    } else {
      depth += '[{'.includes(sign) ? 1 : -1
      if (depth === 0) return at
    }
  }
}
