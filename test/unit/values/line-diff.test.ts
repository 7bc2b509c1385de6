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
    [[], ['a'], ['+ a']],
    [['a'], ['a'], ['  a']],
  ])('of %j and %j keep the longest common sequence', (old, now, expected) => {
    expect(compareLines(old, now)).toEqual(expected)
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
