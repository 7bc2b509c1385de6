/** The rule for server keys and prefixes (BRIDGING 1.1): no `_`, so that an exposed name is split at its first `__`. */

export const SERVER_KEY = /^[a-z][a-z0-9-]{0,19}$/

/** Used by the gateway's own names and paths (BRIDGING 4.2). */
export const RESERVED_KEYS: readonly string[] = ['gateway', 'mcp', 'ui']

const MAX_LENGTH = 20
/** Words that do not identify a server; dropped where other words remain. */
const GENERIC_WORDS = new Set(['mcp', 'server', 'servers'])

/**
 * A key that follows the rule, from any text; one that is `taken` or reserved gets `-2`, `-3` … Of a long name the last specific words
 * are kept: `@modelcontextprotocol/server-sequential-thinking` becomes `sequential-thinking`.
 */
export const normaliseKey = (text: string, taken: (key: string) => boolean = () => false): string => {
  const plain = text
    // Removes accents.
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replace(/^[^a-z]+/, '')
  const base =
    shorten(plain)
      .slice(0, MAX_LENGTH)
      .replace(/(?<!-)-+$/, '') || 'server'
  for (let number = 1; ; number++) {
    const tail = number === 1 ? '' : `-${number}`
    const key = base.slice(0, MAX_LENGTH - tail.length).replace(/(?<!-)-+$/, '') + tail
    if (!taken(key) && !RESERVED_KEYS.includes(key)) return key
  }
}

const shorten = (plain: string): string => {
  if (plain.length <= MAX_LENGTH) return plain
  const words = plain.split('-').filter(Boolean)
  const specific = words.filter((word) => !GENERIC_WORDS.has(word))
  const kept: string[] = []
  for (const word of (specific.length === 0 ? words : specific).toReversed()) {
    if (kept.length > 0 && [word, ...kept].join('-').length > MAX_LENGTH) break
    kept.unshift(word)
  }
  // A key begins with a letter.
  return kept.join('-').replace(/^[^a-z]+/, '')
}
