import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogSource } from '../../../src/catalog/catalog.ts'
import { pageOf } from '../../../src/catalog/view/pages.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import { SHARED_PRINCIPAL } from '../../../src/rpc/call.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { join } from '../../../src/wire/message/payload.ts'
import { ALWAYS, seeing, sourceOf, toolOf } from './fixtures.ts'

const seal = new Seal({ keys: [randomBytes(32)] })
const viewOf = (sources: CatalogSource[], revision: Revision = '2026-07-28', server?: string): View =>
  new Views().of(buildCatalog(sources, ALWAYS), server === undefined ? { revision } : { revision, ...seeing(server) })

const server = (key: string, names: string, revision: Revision = '2026-07-28'): CatalogSource =>
  sourceOf(key, { tools: Array.from(names, (name) => toolOf(name)) }, revision)

const namesOn = (
  view: View,
  cursor: string | undefined,
  maxItems: number,
  maxBytes = 1e6,
): { names: string[]; next: string | undefined } => {
  const page = pageOf(view, { kind: 'tools', cursor, limits: { maxItems, maxBytes }, seal, principal: 'p' })
  return { names: JSON.parse(join(page.entries).toString()).map((tool: { name: string }) => tool.name), next: page.nextCursor }
}

describe('pages', () => {
  test('one page by default, without a cursor; an empty list is an empty page', () => {
    expect(namesOn(viewOf([server('a', 'xy')]), undefined, 5000)).toEqual({ names: ['a__x', 'a__y'], next: undefined })
    expect(namesOn(viewOf([]), undefined, 5000)).toEqual({ names: [], next: undefined })
  })

  test('T-29 pages of any size hold every entry once, in order, and at least one each', () => {
    const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')).map((letters) => letters.join(''))
    fc.assert(
      fc.property(names, names, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 200 }), (a, b, maxItems, maxBytes) => {
        const view = viewOf([server('a', a, '2025-06-18'), server('b', b)])
        const all: string[] = []
        let cursor: string | undefined
        do {
          const page = namesOn(view, cursor, maxItems, maxBytes)
          if (page.next !== undefined) expect(page.names.length).toBeGreaterThan(0)
          all.push(...page.names)
          cursor = page.next
        } while (cursor !== undefined)
        expect(all).toEqual(view.list('tools').rows.map((row) => row.exposed))
      }),
    )
  })

  test.each([
    ['what two entries and their separators take: two', 0, 2],
    ['one byte less: one', -1, 1],
    ['one byte more: two', 1, 2],
    ['less than one entry: one all the same', -Infinity, 1],
  ])('a page of at most %s', (_name, more, expected) => {
    const view = viewOf([server('a', 'wxyz')])
    const [first, second] = view.list('tools').entries
    const { names } = namesOn(view, undefined, 9, Math.max(1, first!.length + second!.length + 2 + more))
    expect(names).toHaveLength(expected)
  })

  test('entries may come and go between two pages', () => {
    const first = namesOn(viewOf([server('a', 'bd', '2025-06-18'), server('b', 'x')]), undefined, 1)
    expect(first.names).toEqual(['a__b'])
    expect(namesOn(viewOf([server('a', 'bcd', '2025-06-18'), server('b', 'x')]), first.next, 9).names).toEqual([
      'a__c',
      'a__d',
      'b__x',
    ])
    expect(namesOn(viewOf([server('a', 'ac', '2025-06-18'), server('b', 'x')]), first.next, 9).names).toEqual(['a__c', 'b__x'])
    expect(namesOn(viewOf([server('a', 'a', '2025-06-18'), server('b', 'x')]), first.next, 9).names).toEqual(['b__x'])
    expect(namesOn(viewOf([server('b', 'x')]), first.next, 9).names).toEqual(['b__x'])
    expect(namesOn(viewOf([server('0', 'z'), server('a', '')]), first.next, 9).names).toEqual([])
  })

  test('where the last entry given is gone, as many of its server are skipped as were given', () => {
    for (const revision of ['2025-06-18', '2026-07-28'] as const) {
      const first = namesOn(viewOf([server('a', 'zbya', revision)]), undefined, 2)
      expect(first.names).toEqual(['a__z', 'a__b'])
      expect(namesOn(viewOf([server('a', 'zxya', revision)]), first.next, 9).names).toEqual(['a__y', 'a__a'])
    }
  })

  test('a cursor of the one caller without a credential opens under any key, in one spelling, and in its own list only', () => {
    const view = viewOf([server('a', 'xyz')])
    const limits = { maxItems: 1, maxBytes: 1e6 }
    const other = new Seal({ keys: [randomBytes(32)] })
    const { nextCursor = '' } = pageOf(view, { kind: 'tools', limits, seal, principal: SHARED_PRINCIPAL })
    expect(
      join(
        pageOf(view, { kind: 'tools', cursor: nextCursor, limits, seal: other, principal: SHARED_PRINCIPAL }).entries,
      ).toString(),
    ).toContain('a__y')
    const given = JSON.parse(Buffer.from(nextCursor, 'base64url').toString()) as object
    const invented = (more: object): string => Buffer.from(JSON.stringify({ ...given, ...more })).toString('base64url')
    const tries = [
      () => pageOf(view, { kind: 'prompts', cursor: nextCursor, limits, seal, principal: SHARED_PRINCIPAL }),
      () =>
        pageOf(viewOf([server('a', 'xyz')], '2025-11-25'), {
          kind: 'tools',
          cursor: nextCursor,
          limits,
          seal,
          principal: SHARED_PRINCIPAL,
        }),
      () => pageOf(view, { kind: 'tools', cursor: nextCursor, limits, seal, principal: 'p' }),
      ...[`${nextCursor}x`, ` ${nextCursor}`, `${nextCursor}=`, 'bnVsbA', 'e30', ''].map(
        (wrong) => () => pageOf(view, { kind: 'tools', cursor: wrong, limits, seal, principal: SHARED_PRINCIPAL }),
      ),
      ...[{ given: -1 }, { position: 'x' }, { original: 7 }, { principal: 'p' }, { server: null }].map(
        (wrong) => () => pageOf(view, { kind: 'tools', cursor: invented(wrong), limits, seal, principal: SHARED_PRINCIPAL }),
      ),
    ]
    for (const attempt of tries) expect(attempt).toThrow(expect.objectContaining({ kind: 'state' }))
  })

  test('B117 a cursor of another list, view or principal, or one that is not ours, is refused', () => {
    const view = viewOf([server('a', 'xy')])
    const { nextCursor } = pageOf(view, { kind: 'tools', limits: { maxItems: 1, maxBytes: 1e6 }, seal, principal: 'p' })
    const limits = { maxItems: 1, maxBytes: 1e6 }
    const tries = [
      () => pageOf(view, { kind: 'prompts', cursor: nextCursor, limits, seal, principal: 'p' }),
      () => pageOf(view, { kind: 'tools', cursor: nextCursor, limits, seal, principal: 'q' }),
      () =>
        pageOf(viewOf([server('a', 'xy')], '2025-11-25'), { kind: 'tools', cursor: nextCursor, limits, seal, principal: 'p' }),
      () =>
        pageOf(viewOf([server('a', 'xy')], '2026-07-28', 'a'), {
          kind: 'tools',
          cursor: nextCursor,
          limits,
          seal,
          principal: 'p',
        }),
      () => pageOf(view, { kind: 'tools', cursor: '', limits, seal, principal: 'p' }),
      () => pageOf(view, { kind: 'tools', cursor: 'page2', limits, seal, principal: 'p' }),
      () => pageOf(view, { kind: 'tools', cursor: seal.seal('requestState', { kind: 'tools' }), limits, seal, principal: 'p' }),
    ]
    for (const attempt of tries) expect(attempt).toThrow(expect.objectContaining({ kind: 'state' }))
  })
})
