import { describe, expect, test } from 'vitest'
import { matchesGlob } from '../../../src/catalog/glob.ts'

describe('patterns of names', () => {
  test.each([
    ['*', '', true],
    ['*', 'a/b.c', true],
    ['delete_*', 'delete_repo', true],
    ['delete_*', 'undelete_repo', false],
    ['*_repo', 'delete_repo', true],
    ['g?t', 'get', true],
    ['g?t', 'g😀t', true],
    ['g?t', 'gt', false],
    ['a.c', 'abc', false],
    ['[a]', 'a', false],
    ['get', 'GET', false],
    ['', '', true],
    ['', 'a', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
  ])('%j against %j is %j', (pattern, text, isMatch) => {
    expect(matchesGlob(pattern, text)).toBe(isMatch)
  })
})

describe('patterns of URIs', () => {
  test.each([
    ['repo://acme/*', 'repo://acme/x', true],
    ['repo://acme/*', 'repo://acme/x/y', false],
    ['repo://acme/**', 'repo://acme/x/y', true],
    ['repo://acme/**', 'repo://other/x', false],
    ['**/x', 'repo://acme/x', true],
    ['repo://?/x', 'repo:////x', false],
    ['**', 'anything://at/all', true],
  ])('%j against %j is %j', (pattern, text, isMatch) => {
    expect(matchesGlob(pattern, text, '/')).toBe(isMatch)
  })
})

test('T-27 a pattern made to be slow costs no more than its length times that of the text', () => {
  expect(matchesGlob(`${'*a'.repeat(200)}b`, 'a'.repeat(4_000))).toBe(false)
})
