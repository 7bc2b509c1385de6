/**
 * A text without the escapes of JSON, URLs and forms, whichever library wrote them and also in each other: backslashes are left out, and
 * characters that are written as numbers are decoded. `+` and a blank are the same, since forms write one as the other.
 */

export interface Unescaped {
  readonly text: string
  /** By character of `text`: the end of its spelling in the original. */
  readonly ends: Int32Array
}

/** Backslashes with the number behind them; one or several bytes of a character in a URL; `%` may be escaped again. */
const ESCAPE = /(?:\\|%(?:25)*5c)+(?:u([\da-f]{4}))?|%(?:25)*[c-f][\da-f](?:%(?:25)*[89ab][\da-f])+|%(?:25)*[0-7][\da-f]|\+/gi

export const unescape = (text: string): Unescaped => {
  const ends = new Int32Array(text.length)
  let shown = ''
  let at = 0
  const copy = (end: number): void => {
    for (let length = shown.length; at < end;) ends[length++] = ++at
  }
  for (const { 0: escape, 1: unit, index } of text.matchAll(ESCAPE)) {
    const from = at
    copy(index)
    shown += text.slice(from, index)
    at = index + escape.length
    const character = characterOf(escape, unit)
    ends.fill(at, shown.length, shown.length + character.length)
    shown += character
  }
  const rest = text.slice(at)
  copy(text.length)
  return { text: shown + rest, ends }
}

const characterOf = (escape: string, unit: string | undefined): string => {
  if (unit === undefined && escape.startsWith('\\')) return ''
  const character = unit === undefined ? fromUrl(escape) : String.fromCharCode(Number.parseInt(unit, 16))
  return character === '+' ? ' ' : character.replaceAll('\\', '')
}

/** Decodes the bytes of one character; `+` stays. */
const fromUrl = (escape: string): string =>
  escape === '+' ? escape : Buffer.from(escape.replaceAll(/%(?:25)*(?=[\da-f]{2})/gi, ''), 'hex').toString()
