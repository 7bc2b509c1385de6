/** The one rule for server keys and prefixes (BRIDGING 1.1): no `_`, so the first `__` of an exposed name splits without doubt. */

export const SERVER_KEY = /^[a-z][a-z0-9-]{0,19}$/

/** Taken by the gateway's own names and paths (BRIDGING 4.2). */
export const RESERVED_KEYS: readonly string[] = ['gateway', 'mcp', 'ui']

/** A key that follows the rule, from any text; `taken` ones, and reserved ones, get `-2`, `-3` … */
export const normaliseKey = (text: string, taken: (key: string) => boolean = () => false): string => {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replace(/^[^a-z]+/, '')
  const base = plain.slice(0, 20).replace(/(?<!-)-+$/, '') || 'server'
  for (let number = 1; ; number++) {
    const tail = number === 1 ? '' : `-${number}`
    const key = base.slice(0, 20 - tail.length) + tail
    if (!taken(key) && !RESERVED_KEYS.includes(key)) return key
  }
}
