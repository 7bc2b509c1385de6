import { describe, expect, test } from 'vitest'
import { correctReadHints, listHints } from '../../../src/catalog/view/cache-hints.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import type { Freshness } from '../../../src/catalog/inventory.ts'

const context = { nowMs: 10_000, capMs: 60_000, isStarting: false, isPersonal: false }
const fresh = (receivedAtMs: number, ttlMs: number, scope: 'public' | 'private' = 'public'): Freshness => ({
  receivedAtMs,
  ttlMs,
  scope,
})

describe('cache hints of lists', () => {
  test('B154 the least remaining lifetime and the most private scope', () => {
    expect(listHints([fresh(0, 30_000), fresh(9_000, 15_000, 'private')], context)).toEqual({
      ttlMs: 14_000,
      cacheScope: 'private',
    })
    expect(listHints([fresh(0, 30_000)], context)).toEqual({ ttlMs: 20_000, cacheScope: 'public' })
  })

  test('B149 never negative, never over the cap, never a fraction', () => {
    expect(listHints([fresh(0, 5_000)], context).ttlMs).toBe(0)
    expect(listHints([fresh(0, -5)], { ...context, nowMs: 0 }).ttlMs).toBe(0)
    expect(listHints([fresh(0, Number.NaN)], context).ttlMs).toBe(0)
    expect(listHints([fresh(9_999.5, 1e12)], context).ttlMs).toBe(60_000)
    expect(listHints([fresh(9_999.5, 100)], context).ttlMs).toBe(99)
    expect(listHints([], context).ttlMs).toBe(60_000)
  })

  test('nothing may be kept while a server is starting', () =>
    expect(listHints([fresh(0, 1e6)], { ...context, isStarting: true }).ttlMs).toBe(0))

  test('B155 a list that depends on who asks is private', () =>
    expect(listHints([fresh(0, 1e6)], { ...context, isPersonal: true }).cacheScope).toBe('private'))
})

describe('cache hints of a read', () => {
  const corrected = (text: string, isPersonal: boolean): string => {
    const result = Payload.at(Buffer.from(text))
    correctReadHints(result, isPersonal)
    return join(result.parts()).toString()
  }
  test.each([
    '{"contents":[],"ttlMs":5000,"cacheScope":"public"}',
    '{ "cacheScope" : "private", "ttlMs" : 5e3, "contents":[] }',
    '{"ttlMs":1.0,"contents":[]}',
    '{"contents":[]}',
  ])('stay as they came for callers without a credential: %s', (text) => {
    expect(corrected(text, false)).toBe(text)
  })
  test('B155 a scope is lowered for one caller alone, and never raised', () => {
    expect(corrected('{"ttlMs":5000, "cacheScope":"public"}', true)).toBe('{"ttlMs":5000, "cacheScope":"private"}')
    expect(corrected('{"cacheScope":"private"}', true)).toBe('{"cacheScope":"private"}')
    expect(corrected('{"ttlMs":1}', true)).toBe('{"ttlMs":1}')
  })
  test.each(['"PUBLIC"', '7', 'null', '{}'])('B155 %s is no scope: private', (scope) => {
    expect(corrected(`{"cacheScope":${scope}}`, false)).toBe('{"cacheScope":"private"}')
  })
  test.each([
    ['-1', '0'],
    ['1.5', '1'],
    ['1e999', '0'],
    ['"60000"', '0'],
    ['null', '0'],
  ])('B149 a lifetime of %s is sent as %s', (given, sent) => {
    expect(corrected(`{"ttlMs":${given}}`, false)).toBe(`{"ttlMs":${sent}}`)
  })
})
