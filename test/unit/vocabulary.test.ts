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
