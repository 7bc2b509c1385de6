import { array, assert, constantFrom, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { diffLines } from '../../../src/host-files/edit/diff.ts'
import { compareLines, foldLines } from '../../../src/values/line-diff.ts'

const lines = array(constantFrom('a', 'b', 'c', '', '- x', '+ y'), { maxLength: 12 })
const without = (mark: string, compared: readonly string[]): string[] =>
  compared.filter((line) => !line.startsWith(mark)).map((line) => line.slice(2))

describe('compared lines', () => {
  test('are both texts, each line marked', () => {
    assert(
      property(lines, lines, (old, now) => {
        const compared = compareLines(old, now)
        expect(without('+ ', compared)).toEqual(old)
        expect(without('- ', compared)).toEqual(now)
      }),
    )
  })
  test.each([
    [
      ['a', 'b', 'c'],
      ['a', 'c'],
      ['  a', '- b', '  c'],
    ],
    [
      ['a', 'b', 'c', 'd'],
      ['b', 'c', 'x', 'd'],
      ['- a', '  b', '  c', '+ x', '  d'],
    ],
    [
      ['a', 'b', 'c'],
      ['x', 'a', 'c'],
      ['+ x', '  a', '- b', '  c'],
    ],
    [
      ['x', 'a', 'c'],
      ['a', 'b', 'c'],
      ['- x', '  a', '+ b', '  c'],
    ],
    [[], ['a'], ['+ a']],
    [['a'], ['a'], ['  a']],
  ])('of %j and %j keep the longest common sequence', (old, now, expected) => {
    expect(compareLines(old, now)).toEqual(expected)
  })
  test('have as many lines in common as there can be', () => {
    /** The length of the longest common subsequence, by its definition. */
    const longest = ([first, ...old]: readonly string[], now: readonly string[]): number => {
      if (first === undefined) return 0
      const at = now.indexOf(first)
      return Math.max(longest(old, now), at === -1 ? 0 : 1 + longest(old, now.slice(at + 1)))
    }
    assert(
      property(lines, lines, (old, now) => {
        expect(compareLines(old, now).filter((line) => line.startsWith('  '))).toHaveLength(longest(old, now))
      }),
    )
  })
  test('show what was removed before what was added', () => {
    expect(compareLines(['a', 'x', 'b'], ['a', 'y', 'b'])).toEqual(['  a', '- x', '+ y', '  b'])
  })
  test.each([
    [2_000, true],
    [2_001, false],
  ])('of %i differing lines keep what they share between them: %j', (count, isKept) => {
    const text = (word: string): string[] => Array.from({ length: count }, (_, at) => (at === 1_000 ? 'same' : `${word}${at}`))
    expect(compareLines(text('a'), text('b').slice(0, 2_000)).includes('  same')).toBe(isKept)
  })
  test('of texts that are too long to compare are all old ones, then all new ones, between what they share', () => {
    const long = (word: string): string[] => ['first', ...Array.from({ length: 2_001 }, (_, at) => `${word}${at}`), 'last']
    const compared = compareLines(long('a'), long('b'))
    expect([compared[0], compared[1], compared[2_001], compared[2_002], compared.at(-1)]).toEqual([
      '  first',
      '- a0',
      '- a2000',
      '+ b0',
      '  last',
    ])
  })
})

test('folded lines keep what is near a change, and one line for each gap', () => {
  const same = Array.from({ length: 4 }, (_, at) => `  ${at}`)
  expect(foldLines([...same, '+ x', ...same, '- y', ...same], 1, '…')).toEqual([
    '…',
    '  3',
    '+ x',
    '  0',
    '…',
    '  3',
    '- y',
    '  0',
    '…',
  ])
})

test.each([
  [['  a', '+ b', '  c'], 0, ['…', '+ b', '…']],
  [['  a', '+ b', '  c'], 1, ['  a', '+ b', '  c']],
  [['  a', '  b', '+ c', '  d', '  e', '- f'], 1, ['…', '  b', '+ c', '  d', '  e', '- f']],
  [['+ a', '  b', '  c', '  d', '- e'], 1, ['+ a', '  b', '…', '  d', '- e']],
  [['  a', '  b'], 1, ['…']],
  [[], 1, []],
])('%j folded with %i lines around', (lines, around, expected) => {
  expect(foldLines(lines, around, '…')).toEqual(expected)
})

describe('the change of a file', () => {
  test('is empty where the texts are equal, whatever ends their lines', () => {
    expect(diffLines('a\r\nb\n', 'a\nb')).toEqual([])
  })
  test('shows three lines around each change, and gaps between changes alone', () => {
    const text = (changed: readonly number[]): string =>
      Array.from({ length: 20 }, (_, at) => `${at}${changed.includes(at) ? '!' : ''}\n`).join('')
    expect(diffLines(text([]), text([5, 14]))).toEqual([
      '  2',
      '  3',
      '  4',
      '- 5',
      '+ 5!',
      '  6',
      '  7',
      '  8',
      '⋮',
      '  11',
      '  12',
      '  13',
      '- 14',
      '+ 14!',
      '  15',
      '  16',
      '  17',
    ])
  })
})
