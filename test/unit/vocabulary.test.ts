/**
 * The words of the project: plain technical English (CONTRIBUTING.md). Reads identifiers, comments and texts of `src` and `docs`,
 * and names the place of each forbidden word.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** Persons for hosts, servers and callers; archaic words; phrases that say a fact as a riddle. */
const FORBIDDEN = [
  'whoever',
  'nobody',
  'somebody',
  'anew',
  'heard',
  'heed',
  'oddity',
  'oddities',
  'that is none',
  'that are none',
  'has gone',
  'have gone',
  'came last',
]

/** Metaphors for modules, listeners and the gateway. */
const METAPHORS = ['room', 'rooms', 'house', 'houses', 'door', 'doors']

/** Archaic, inverted or personifying constructions. The pages for readers do without them. */
const CONSTRUCTIONS = [
  'all else',
  'are told',
  'as ever',
  'as it came',
  'as they came',
  'as whom',
  'but for',
  'go on with',
  'goes on with',
  'hears nothing',
  'in its words',
  'in vain',
  'is away',
  'is told',
  'it is told',
  'let go of',
  'lets go',
  'mend',
  'mended',
  'of its own accord',
  'of those it',
  'of what it',
  'on its way',
  "one's own",
  'so many as',
  'stranger',
  'strangers',
  'told of',
  'unasked',
  'under way',
  'unwell',
  'what became of',
  'what came',
  'what comes',
  'what holds',
  'what is not there',
  'what is told',
  'what was said',
  'while it comes',
  'who comes',
]

/** Pages with texts that are written elsewhere: descriptions of options and commands, names of tests. */
const GENERATED = new Set(['docs/reliability.md'])

/** Pages for readers outside of `docs`. */
const OTHER_PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'llms.txt',
  'bench/notes.md',
  'scripts/commands-intro.md',
  'scripts/configuration-intro.md',
  'scripts/reliability-intro.md',
  'test/peers/README.md',
  'test/support/README.md',
]

/** Matches any of the phrases, also across the lines of a comment, a list or a quotation. */
const anyOf = (phrases: readonly string[]): RegExp =>
  new RegExp(`\\b(?:${phrases.map((phrase) => phrase.replaceAll(' ', '\\s+(?:(?:\\*|//|>)\\s+)?')).join('|')})\\b`, 'g')

/** `file:line: word` of each match; words of identifiers are told apart (`heedError`, `MAX_ANEW`). */
const placesOf = (file: string, text: string, pattern: RegExp): string[] => {
  const words = text
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .replaceAll('_', ' ')
    .toLowerCase()
  return Array.from(words.matchAll(pattern), ({ 0: found, index }) => {
    const line = words.slice(0, index).split('\n').length
    return `${file}:${line}: ${found.replaceAll(/\s+(?:(?:\*|\/\/|>)\s+)?/g, ' ')}`
  })
}

const placesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(join(ROOT, folder), { recursive: true })
  const files = names.filter((name) => /\.(ts|md|yaml)$/.test(name)).map((name) => `${folder}/${name}`)
  const places = await Promise.all(
    files.map(async (file) => placesOf(file, await readFile(join(ROOT, file), 'utf8'), anyOf(FORBIDDEN))),
  )
  return places.flat()
}

test.each(['src', 'docs'])('%s uses no forbidden word', async (folder) => {
  expect(await placesIn(folder)).toEqual([])
})

test('the pages for readers use no archaic construction', async () => {
  const below = async (folder: string): Promise<string[]> =>
    (await readdir(join(ROOT, folder), { recursive: true }))
      .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
      .map((name) => `${folder}/${name}`)
  const pages = [...OTHER_PAGES, ...(await below('docs')), ...(await below('examples'))].filter((file) => !GENERATED.has(file))
  expect(pages.length).toBeGreaterThan(150)
  const places = await Promise.all(
    pages.map(async (file) => placesOf(file, await readFile(join(ROOT, file), 'utf8'), anyOf(CONSTRUCTIONS))),
  )
  expect(places.flat()).toEqual([])
})

test('the architecture page calls a module a module and a listener a listener', async () => {
  const file = 'docs/architecture.md'
  const text = await readFile(join(ROOT, file), 'utf8')
  expect(placesOf(file, text, anyOf(METAPHORS))).toEqual([])
})

test.each([
  ['const heedError = 1', ['f:1: heed']],
  ['a\n/** Goes to whoever\n * came\n * last. */', ['f:2: whoever', 'f:3: came last']],
  ['// a trailer that\n// is none', ['f:1: that is none']],
  ['an overheard renewal', []],
])('a forbidden word is found in %j', (text, expected) => {
  expect(placesOf('f', text, anyOf(FORBIDDEN))).toEqual(expected)
})

test.each([
  ['The host is told in vain.', ['f:1: is told', 'f:1: in vain']],
  ['> Everything leaves as it\n> came.', ['f:1: as it came']],
  ["Another one's ownership is recommended.", []],
])('an archaic construction is found in %j', (text, expected) => {
  expect(placesOf('f', text, anyOf(CONSTRUCTIONS))).toEqual(expected)
})
