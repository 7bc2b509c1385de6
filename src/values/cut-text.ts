/** Texts that are cut: to a number of characters, or of bytes of UTF-8 without a part of a character. */

/** At most `most` characters. A copy where it is cut: a part of a string keeps the whole string in memory. */
export const firstCharacters = (text: string, most: number): string =>
  text.length <= most ? text : Buffer.from(text.slice(0, most)).toString()

/**
 * At most `most` characters, without a word that is cut. For texts from which secrets are removed later: the beginning of a secret would not
 * be recognized as one.
 */
export const firstWords = (text: string, most: number): string => {
  if (text.length <= most) return text
  let end = most
  while (end > 0 && IN_WORD.test(text.charAt(end)) && IN_WORD.test(text.charAt(end - 1))) end--
  return firstCharacters(text, end)
}

/** Printable ASCII besides blanks and quotes. */
const IN_WORD = /[!#-&(-~]/

/** The beginning of a text, at most `most` bytes. */
export const firstBytes = (text: string, most: number): string => {
  const bytes = Buffer.from(text)
  let end = Math.min(Math.max(0, most), bytes.length)
  while (end > 0 && isContinuation(bytes[end])) end--
  return bytes.toString('utf8', 0, end)
}

/** The end of a text, at most `most` bytes. */
export const lastBytes = (text: string, most: number): string => {
  const bytes = Buffer.from(text)
  let start = Math.max(0, bytes.length - Math.max(0, most))
  while (isContinuation(bytes[start])) start++
  return bytes.toString('utf8', start)
}

/** Whether a byte of UTF-8 belongs to the character before it. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
