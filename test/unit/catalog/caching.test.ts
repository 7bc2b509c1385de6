import { describe, expect, test } from 'vitest'
import { listHints, readHints } from '../../../src/catalog/caching.ts'
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

test('B155 a read keeps the server’s hints, its scope only ever lowered', () => {
  expect(readHints(5_000, 'public', false)).toEqual({ ttlMs: 5_000, cacheScope: 'public' })
  expect(readHints(5_000, 'public', true)).toEqual({ ttlMs: 5_000, cacheScope: 'private' })
  expect(readHints(undefined, undefined, false)).toEqual({ ttlMs: 0, cacheScope: 'private' })
  expect(readHints(-1, 'PUBLIC', false)).toEqual({ ttlMs: 0, cacheScope: 'private' })
})
