/**
 * What a definition hides, and what is done about it (T-16). A definition is looked at as a model will read it: its escapes
 * undone. Under `strip` its texts lose what they hide, and every other byte stays.
 */
import { findHidden, stripHidden } from '../wire/hidden.ts'
import type { Hidden } from '../wire/hidden.ts'
import { membersAt } from '../wire/members.ts'

/** `warn`: served as it is, and told. `strip`: served without. `drop`: left out. */
export type HiddenPolicy = 'warn' | 'strip' | 'drop'

/** What the definition hides, member by member, as words for an operator; `undefined` if nothing. `raw`: one JSON object. */
export const describeHidden = (raw: Buffer): string | undefined => {
  const isPlain = raw.every(isPlainByte)
  if (isPlain) return undefined
  const parts = membersAt(raw, 0).flatMap(({ key, start, end }) =>
    [...findHidden(unescaped(raw.toString('utf8', start, end))), ...findHidden(key)].map((hidden) => wordHidden(key, hidden)),
  )
  return parts.length === 0 ? undefined : parts.join('; ')
}

/** `description hides 12 tag characters (U+E0049 …)`; `where` is cleaned by whoever prints it. */
export const wordHidden = (where: string, { kind, first, count }: Hidden): string =>
  `${where} hides ${count} ${kind} ${count === 1 ? `character (${first})` : `characters (${first} …)`}`

/** The definition with every text stripped of what it hides. */
export const stripEntry = (raw: Buffer): Buffer =>
  Buffer.from(
    raw.toString('utf8').replace(STRING, (token) => {
      const text = JSON.parse(token) as string
      const clean = stripHidden(text)
      return clean === text ? token : JSON.stringify(clean)
    }),
  )

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/gs

/** ASCII without controls and without an escape: nothing can be hidden in it. White space between tokens is plain. */
const isPlainByte = (byte: number): boolean =>
  (byte >= 0x20 && byte < 0x7f && byte !== 0x5c) || byte === 0x0a || byte === 0x0d || byte === 0x09

const SHORT_ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** JSON text with its escapes undone, strings and all; what stands between them is left alone. */
const unescaped = (json: string): string =>
  json.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, letter: string) =>
    code === undefined ? (SHORT_ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  )
