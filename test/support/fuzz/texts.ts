/** Parsers of files and of words for people: configurations with variables, characters that hide. */
import { readChallenge } from '../../../src/auth/outbound/challenge.ts'
import { describeHidden, stripEntry } from '../../../src/catalog/curate/vetting.ts'
import { parseText } from '../../../src/config/syntax/document.ts'
import { plain, scalars } from '../../../src/config/syntax/tree.ts'
import { parseDuration, parseSize } from '../../../src/config/schema/units.ts'
import { printable } from '../../../src/log.ts'
import { findHidden, stripHidden } from '../../../src/wire/protocol/hidden-characters.ts'
import { must, outcome, same } from './target.ts'
import type { Target } from './target.ts'

const SCALARS = new Set(['string', 'number', 'boolean'])

const config: Target = {
  name: 'configuration reader',
  words: [
    'servers:',
    '\n',
    '  ',
    'a:',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ': ',
    ', ',
    '"',
    "'",
    '&a ',
    '*a',
    '<<: ',
    '!!binary ',
    '!!js/function ',
    '? ',
    '| ',
    '---\n',
    '#',
    '//',
    '/*',
    'command: x',
    '__proto__: ',
    '${A}',
    '$${',
    '${',
    '${file:/etc/passwd}',
    '\t',
    '\0',
    '\ufeff',
    '30s',
    '4MiB',
    '1e999',
    '0x1f',
    '%YAML 1.2\n',
    '"a":1',
  ],
  check: (input) => {
    const text = input.toString()
    for (const name of input.length % 2 === 0 ? ['x.yaml'] : ['x.json', 'x']) {
      const { tree, problems } = parseText(text, name)
      for (const { place } of problems) must(/^x[.a-z]*:\d+:\d+$/.test(place), 'says where')
      for (const { value } of scalars(tree)) must(value === null || SCALARS.has(typeof value), 'reads plain values')
      const theirs = outcome(() => JSON.parse(text) as unknown)
      if (name === 'x.json' && 'value' in theirs && problems.length === 0 && isSimple(text, theirs.value))
        same(plain(tree), theirs.value)
      must(!('polluted' in {}), 'leaves every object as it was')
    }
    for (const parse of [parseDuration, parseSize]) {
      const amount = outcome(() => parse(text))
      if ('value' in amount && typeof amount.value === 'number') must(amount.value >= 0, 'reads no negative amount')
    }
  },
}
/** An object whose numbers and keys both readers must take alike. */
const isSimple = (text: string, value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !/[\\\d]|__proto__|[^\x20-\x7e\n]/.test(text) &&
  new Set(text.match(/"[^"]*"(?=\s*:)/g)).size === (text.match(/"[^"]*"(?=\s*:)/g)?.length ?? 0)

/** What may be suspected at all, said another way: a table of ranges. */
const SUSPECT: readonly (readonly [from: number, to: number])[] = [
  [0, 8],
  [0xb, 0xc],
  [0xe, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180e, 0x180e],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xf8ff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
  [0xf0000, 0x10ffff],
]
/** Always wrong, wherever it stands. */
const ALWAYS: readonly (readonly [from: number, to: number])[] = [
  [0, 8],
  [0xb, 0xc],
  [0xe, 0x1f],
  [0x7f, 0x9f],
  [0x2028, 0x202e],
  [0xe000, 0xf8ff],
  [0xfeff, 0xfeff],
  [0xf0000, 0x10ffff],
]
const holds = (text: string, ranges: typeof SUSPECT): boolean =>
  Array.from(text).some((character) =>
    ranges.some(([from, to]) => (character.codePointAt(0) ?? 0) >= from && (character.codePointAt(0) ?? 0) <= to),
  )

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u{e0000}-\u{e0fff}]/u

const hidden: Target = {
  name: 'hidden characters',
  words: [
    'a',
    ' ',
    '\u{e0041}',
    '\u{1f3f4}',
    '\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}',
    '\u200d',
    '\u200c',
    '\u200b',
    '\ufe0f',
    '\u{e0101}',
    '👩',
    '🏽',
    '❤',
    'ا',
    'ן',
    'क्',
    '葛',
    '\u202e',
    '\u2067',
    '\u200f',
    '\x1b[0m',
    '\u009b',
    '\ud83d',
    '\udc41',
    '\ue000',
    '\ufeff',
    '\u00ad',
    '\\u200b',
    '"',
  ],
  check: (input) => {
    // Lone surrogates are in no UTF-8, but in JSON escapes.
    const text = input.length % 2 === 0 ? input.toString() : input.subarray(1).toString('utf16le')
    const found = findHidden(text)
    if (found.length > 0) must(holds(text, SUSPECT), 'accuses no honest character')
    if (holds(text, ALWAYS)) must(found.length > 0, 'finds what is never honest')
    must(
      found.every(({ count }) => count > 0),
      'counts',
    )
    let clean = stripHidden(text)
    for (let rounds = 0; findHidden(clean).length > 0; rounds++) {
      must(rounds < text.length, 'comes to an end')
      clean = stripHidden(clean)
    }
    must(!UNSAFE.test(printable(text)), 'prints nothing that drives a terminal')
    const raw = Buffer.from(JSON.stringify({ name: 'x', description: text }))
    same(describeHidden(raw) === undefined, found.length === 0)
    same(JSON.parse(stripEntry(raw).toString()), { name: 'x', description: stripHidden(text) })
  },
}

const ESCAPED_ROOM = 1_000
const quoted = (value: string): string => `"${value.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`

const challenge: Target = {
  name: 'WWW-Authenticate',
  words: [
    'Bearer ',
    'bearer',
    'Basic realm="x", ',
    'resource_metadata=',
    'scope=',
    'error=',
    '"https://example.org/.well-known/oauth-protected-resource"',
    '"a b"',
    '"',
    '\\',
    '\\"',
    'insufficient_scope',
    ',',
    ' ',
    '=',
    '\n',
  ],
  check: (input) => {
    const text = input.toString('latin1')
    const read = readChallenge(text)
    const values = Object.values(read).filter((value) => value !== undefined)
    if (!/\bbearer\b/i.test(text)) same(values, [])
    for (const value of values) must(value.length <= 2_048, 'no value is longer than its bound')
    if (values.some((value) => value.length > ESCAPED_ROOM)) return
    const { resourceMetadata, scope } = read
    const members = Object.entries({ resource_metadata: resourceMetadata, scope }).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${quoted(value)}`],
    )
    same(readChallenge(`Bearer ${members.join(', ')}`), read)
  },
}

export const textTargets: readonly Target[] = [config, hidden, challenge]
