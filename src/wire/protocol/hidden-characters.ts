/**
 * Finds characters in texts of servers that a model reads and a person does not see (T-16): tags, invisible and private characters,
 * bidi controls, terminal escapes, data in runs of variation selectors. The surprise: most of them have legitimate uses (flags, emoji
 * families, Arabic, Persian, Hebrew, Indic joiners), so the characters around them decide.
 */

export type HiddenKind = 'tag' | 'invisible' | 'bidi' | 'control' | 'private use' | 'variation' | 'surrogate'

export interface Hidden {
  readonly kind: HiddenKind
  /** The first code point of this kind, as `U+E0041`. */
  readonly first: string
  /** How many characters of this kind. */
  readonly count: number
}

/** Every character that may be hidden. */
const SUSPECT =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ue000-\uf8ff\ud800-\udfff\u{e0000}-\u{e0fff}\u{1d173}-\u{1d17a}\u{f0000}-\u{10ffff}]|[\ufe00-\ufe0f]|\u034f/gu

/** The flags of England, Scotland and Wales, which are written with tags. */
const TAG_FLAG =
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/gu

/** The findings in one text, one entry per kind, in order of appearance; empty for a clean text. Linear in its length. */
export const findHidden = (text: string): readonly Hidden[] => {
  const found = new Map<HiddenKind, { first: string; count: number }>()
  for (const { kind, code } of suspects(text)) {
    const known = found.get(kind)
    if (known === undefined) found.set(kind, { first: nameOf(code), count: 1 })
    else known.count++
  }
  return [...found].map(([kind, { first, count }]) => ({ kind, first, count }))
}

/** JSON text with all characters escaped that may be hidden, legitimate uses included, so that people can compare it. */
export const escapeHidden = (json: string): string =>
  json.replace(SUSPECT, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** The text without the characters that `findHidden` finds. */
export const stripHidden = (text: string): string => replaceHidden(text, () => '')

/** The text with the characters that `findHidden` finds written as their codes: `⟨U+202E⟩`. */
export const markHidden = (text: string): string => replaceHidden(text, (code) => `⟨${nameOf(code)}⟩`)

const replaceHidden = (text: string, replacementOf: (code: number) => string): string => {
  let replaced = ''
  let from = 0
  for (const { at, code } of suspects(text)) {
    replaced += text.slice(from, at) + replacementOf(code)
    from = at + (code > 0xffff ? 2 : 1)
  }
  return from === 0 ? text : replaced + text.slice(from)
}

const nameOf = (code: number): string => `U+${code.toString(16).toUpperCase().padStart(4, '0')}`

interface Suspect {
  readonly kind: HiddenKind
  readonly code: number
  readonly at: number
}

const suspects = function* (text: string): Generator<Suspect> {
  if (text.search(SUSPECT) === -1) return
  const flags = new Set<number>()
  for (const { index, 0: flag } of text.matchAll(TAG_FLAG)) for (let at = 0; at < flag.length; at++) flags.add(index + at)
  const isRightToLeft = RIGHT_TO_LEFT.test(text)
  for (const { index: at, 0: character } of text.matchAll(SUSPECT)) {
    const code = character.codePointAt(0) ?? 0
    if (flags.has(at)) continue
    const kind = kindOf(code, text, at, at + character.length, isRightToLeft)
    if (kind !== undefined) yield { kind, code, at }
  }
}

/** Right-to-left words, in which direction marks are legitimate. */
const RIGHT_TO_LEFT = /(?=\p{L})[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u
const JOINED_SCRIPT =
  /(?=[\p{L}\p{M}])[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Script=Nko}]/u
const WITHOUT_SPACES = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u
const PICTURE = /\p{Extended_Pictographic}|\p{Emoji_Modifier}/u
const IDEOGRAPH = /\p{Script=Han}/u

/** The kind of the character at `at`, or `undefined` for a legitimate use. `end`: offset after it. */
const kindOf = (code: number, text: string, at: number, end: number, isRightToLeft: boolean): HiddenKind | undefined => {
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return 'control'
  if (code >= 0xd800 && code <= 0xdfff) return 'surrogate'
  if (code >= 0xfe00 && code <= 0xfe0f) return isVariation(before(text, at)) ? 'variation' : undefined
  if (code >= 0xe0100 && code <= 0xe01ef) return IDEOGRAPH.test(before(text, at)) ? undefined : 'variation'
  if (code >= 0xe0000 && code <= 0xe0fff) return 'tag'
  if ((code >= 0xe000 && code <= 0xf8ff) || code >= 0xf0000) return 'private use'
  if (code >= 0x202a && code <= 0x202e) return 'bidi'
  if (code >= 0x2066 && code <= 0x2069) return isRightToLeft ? undefined : 'bidi'
  if (code === 0x200e || code === 0x200f || code === 0x061c) return isRightToLeft ? undefined : 'bidi'
  if (code === 0x200d || code === 0x200c) return joins(before(text, at), after(text, end)) ? undefined : 'invisible'
  if (code === 0x200b) return WITHOUT_SPACES.test(before(text, at)) ? undefined : 'invisible'
  if (code === 0x180e) return undefined
  // A single soft hyphen or word joiner between letters is typography; several in a row are hidden data.
  if (code === 0x00ad || code === 0x2060) return /[\p{L}\p{N}\p{Pd}]/u.test(before(text, at)) ? undefined : 'invisible'
  return 'invisible'
}

/** Whether a joiner stands behind a letter of a joining script, or between two pictures of one emoji. */
const joins = (left: string, right: string): boolean =>
  JOINED_SCRIPT.test(left) || ((PICTURE.test(left) || left === '\ufe0f') && PICTURE.test(right))

/** Whether a variation selector has no effect: it follows another selector, or a character without variants. */
const isVariation = (left: string): boolean => !/[\p{L}\p{N}\p{S}#*]|\p{Extended_Pictographic}/u.test(left)

const before = (text: string, at: number): string => {
  const low = text.charCodeAt(at - 1)
  return at >= 2 && low >= 0xdc00 && low <= 0xdfff ? text.slice(at - 2, at) : text.slice(Math.max(0, at - 1), at)
}
const after = (text: string, end: number): string => {
  const code = text.codePointAt(end)
  return code === undefined ? '' : String.fromCodePoint(code)
}
