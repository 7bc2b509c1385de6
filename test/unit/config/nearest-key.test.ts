/** Which known word a mistyped one stands for. */
import { expect, test } from 'vitest'
import { nearestKey, suggest } from '../../../src/config/syntax/nearest-key.ts'

test.each<[word: string, known: readonly string[], found: string | undefined]>([
  ['nam', ['name'], 'name'],
  ['namee', ['name'], 'name'],
  ['nane', ['name'], 'name'],
  ['nmae', ['name'], 'name'],
  ['anme', ['name'], 'name'],
  ['naem', ['name'], 'name'],
  ['name', ['name'], 'name'],
  // Four characters may differ by one edit, five by two.
  ['abxy', ['abcd'], undefined],
  ['abxc', ['abcd'], undefined],
  ['xbdc', ['abcd'], undefined],
  ['abxye', ['abcde'], 'abcde'],
  ['badce', ['abcde'], 'abcde'],
  ['badcx', ['abcde'], undefined],
  ['abc', ['abcde'], undefined],
  ['bcdef', ['abcde'], 'abcde'],
  ['xyzde', ['abcde'], undefined],
  ['Time-Out_ ', ['timeout'], 'timeout'],
  ['tools2', ['toolset', 'tools'], 'tools'],
  ['', ['name'], undefined],
  ['', ['a'], 'a'],
  ['x'.repeat(64), ['x'.repeat(63)], 'x'.repeat(63)],
  ['x'.repeat(65), ['x'.repeat(64)], undefined],
  // Words of other programs.
  ['cmd', ['command'], 'command'],
  ['serverUrl', ['url', 'servers'], 'url'],
  ['cmd', ['url'], undefined],
  ['toString', ['url'], undefined],
])('%j among %j is %j', (word, known, found) => {
  expect(nearestKey(word, known)).toBe(found)
})

test('the remedy for an unknown word is the known one that it resembles, else all of them', () => {
  expect(suggest('nmae', ['url', 'name'])).toBe('did you mean "name"?')
  expect(suggest('zzz', ['url', 'name'])).toBe('known: url, name')
  expect(suggest('zzz', ['url', 'name'], 'servers')).toBe('servers: url, name')
})
