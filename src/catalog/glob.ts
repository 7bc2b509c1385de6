/**
 * Globs over names and URIs: `*` matches any characters, `?` one; in a URI `*` stops at `/` and `**` does not. Not a regular
 * expression, so that the work is at most pattern × text for any input.
 */

/** Whether the whole text matches. `separator`: a character that `*` and `?` do not match. */
export const matchesGlob = (pattern: string, text: string, separator?: string): boolean => {
  const characters = Array.from(text)
  let reached = new Uint8Array(characters.length + 1)
  reached[0] = 1
  for (const step of pattern.match(/\*+|[^*]/gu) ?? []) {
    const isAny = step.startsWith('*')
    reached = isAny
      ? overAny(characters, reached, step === '*' ? separator : undefined)
      : overOne(characters, reached, step, separator)
  }
  return reached[characters.length] === 1
}

type Positions = Uint8Array<ArrayBuffer>

const overAny = (characters: readonly string[], reached: Positions, separator: string | undefined): Positions => {
  const next = Uint8Array.from(reached)
  for (let at = 0; at < characters.length; at++) if (next[at] === 1 && characters[at] !== separator) next[at + 1] = 1
  return next
}

const overOne = (characters: readonly string[], reached: Positions, step: string, separator: string | undefined): Positions => {
  const next = new Uint8Array(reached.length)
  for (let at = 0; at < characters.length; at++) {
    const isMatch = step === '?' ? characters[at] !== separator : characters[at] === step
    if (reached[at] === 1 && isMatch) next[at + 1] = 1
  }
  return next
}
