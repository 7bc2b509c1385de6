/**
 * The protocol's own words, found by their bytes. Most keys and many short values of a message are among them: looking one up
 * takes a tenth of the time of making a string, and strings that are the same object compare at once.
 */
import { META } from './meta.ts'
import { METHODS } from './methods.ts'

interface Word {
  readonly text: string
  readonly bytes: Buffer
}

const WORDS: readonly string[] = `
  jsonrpc 2.0 id method params result error code message data
  _meta progressToken progress total name arguments uri ref cursor level logger
  requestState inputResponses inputRequests task resultType complete ttlMs cacheScope
  content isError structuredContent contents messages type text resource resource_link`
  .trim()
  .split(/\s+/)
  .concat(Object.values(META), Object.keys(METHODS))

const byLength = (): readonly (readonly Word[])[] => {
  const lists: Word[][] = []
  for (const text of new Set(WORDS)) (lists[text.length] ??= []).push({ text, bytes: Buffer.from(text, 'latin1') })
  return Array.from(lists, (list) => list ?? [])
}
const BY_LENGTH = byLength()

/** The word that stands from `start` to `end`, if it is one. */
export const wordAt = (bytes: Buffer, start: number, end: number): string | undefined => {
  const words = BY_LENGTH[end - start]
  if (words === undefined) return undefined
  for (const word of words) if (isAt(word.bytes, bytes, start)) return word.text
  return undefined
}

/** From behind: words of one length differ late more often than early. */
const isAt = (word: Buffer, bytes: Buffer, start: number): boolean => {
  for (let at = word.length - 1; at >= 0; at--) if (word[at] !== bytes[start + at]) return false
  return true
}
