/** Figures, texts and lists as a person reads them on the page. */
import { describe, expect, test } from 'vitest'
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatMs,
  formatPercent,
  formatTime,
  plural,
} from '../../../src/dashboard/model/format.ts'
import { namesBetween } from '../../../src/dashboard/model/name-range.ts'
import { blockOf, lineOf } from '../../../src/dashboard/model/text.ts'

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

describe('figures', () => {
  test.each([
    [0.44, '0.4 ms'],
    [10, '10 ms'],
    [999, '999 ms'],
    [1_000, '1.00 s'],
    [4_200, '4.20 s'],
    [MINUTE, '1 m 00 s'],
    [125_000, '2 m 05 s'],
    [HOUR, '1 h 00 m'],
    [25 * HOUR + 7 * MINUTE, '25 h 07 m'],
    [2 * DAY, '2 days'],
    [3.9 * DAY, '3 days'],
  ])('%d milliseconds are %s', (ms, text) => {
    expect(formatMs(ms)).toBe(text)
  })

  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 KiB'],
    [8_090, '7.9 KiB'],
    [10 * 1_024, '10 KiB'],
    [1_000 * 1_024, '1.0 MiB'],
    [100 * 1_024 ** 2, '100 MiB'],
    [5 * 1_024 ** 3, '5.0 GiB'],
    [5_000 * 1_024 ** 3, '5000 GiB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text)
  })

  test.each([
    [999, '999'],
    [1_000, '1.0k'],
    [9_940, '9.9k'],
    [10_000, '10k'],
    [14_400, '14k'],
    [1_000_000, '1.0M'],
  ])('%d is %s', (count, text) => {
    expect(formatCount(count)).toBe(text)
  })

  test.each([
    [0, '0 %'],
    [0.001, '< 1 %'],
    [0.01, '1 %'],
    [0.954, '95 %'],
    [1, '100 %'],
  ])('the share %d is %s', (share, text) => {
    expect(formatPercent(share)).toBe(text)
  })

  test('one is named in the singular', () => {
    expect([0, 1, 2_000].map((count) => plural(count, 'call'))).toEqual(['0 calls', '1 call', '2.0k calls'])
    expect(plural(2, 'entry', 'entries')).toBe('2 entries')
  })
})

describe('times', () => {
  const NOW = Date.parse('2026-11-22T20:15:03.123Z')

  test.each([
    [0, '0 s ago'],
    [59_000, '59 s ago'],
    [MINUTE, '1 min ago'],
    [HOUR - 1_000, '59 min ago'],
    [HOUR, '1 h ago'],
    [2 * DAY - HOUR, '47 h ago'],
    [2 * DAY, '2 days ago'],
    // The clock of the page is behind.
    [-MINUTE, '0 s ago'],
  ])('%d milliseconds before now is %s', (ms, text) => {
    expect(formatAgo(new Date(NOW - ms).toISOString(), NOW)).toBe(text)
  })

  test('a time of day is local', () => {
    expect(formatTime(new Date(2026, 10, 22, 7, 5, 3, 9).toISOString())).toBe('07:05:03.009')
  })

  test('what is no date is a dash', () => {
    expect(formatTime('soon')).toBe('—')
    expect(formatAgo('soon', NOW)).toBe('—')
  })
})

test('a text is cut only where it is longer than allowed, and a block says by how much', () => {
  expect([lineOf('abc', 3), lineOf('abcd', 3)]).toEqual(['abc', 'abc…'])
  expect(blockOf('abc', 3)).toBe('abc')
  expect(blockOf('x'.repeat(12_003), 3)).toBe('xxx\n\n… 12,000 characters more are not shown')
})

test('a range of names goes from either end to the other, both included', () => {
  const names = ['a', 'b', 'c', 'd']
  expect(namesBetween(names, 'b', 'c')).toEqual(['b', 'c'])
  expect(namesBetween(names, 'd', 'b')).toEqual(['b', 'c', 'd'])
  expect(namesBetween(names, 'c', 'c')).toEqual(['c'])
  expect(namesBetween(names, 'gone', 'c')).toEqual(['c'])
  expect(namesBetween(names, 'a', 'gone')).toEqual([])
})
