import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogServer, CatalogSource } from '../../../src/catalog/catalog.ts'
import { joinInstructions } from '../../../src/catalog/view/instructions.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Selection } from '../../../src/catalog/view/view.ts'
import { ALWAYS, inventoryOf, serverOf, seeing } from './fixtures.ts'

const says = (key: string, text: string | undefined, changes: Partial<CatalogServer> = {}): CatalogSource => ({
  server: serverOf(key, changes),
  inventory: inventoryOf({}, '2026-07-28', text),
})
const joined = (sources: CatalogSource[], limits = {}, selection: Partial<Selection> = {}): string | undefined =>
  joinInstructions(new Views().of(buildCatalog(sources, ALWAYS), { revision: '2026-07-28', ...selection }), {
    instructionsMaxBytes: 2000,
    instructionsTotalBytes: 8000,
    ...limits,
  })

describe('B045 instructions', () => {
  test('a section per server that has any, in configuration order, with the names its tools begin with', () => {
    expect(
      joined([says('b', 'Use x.'), says('a', undefined), says('c', ' Use y. \n', { displayName: 'Sea', prefix: 'sea' })]),
    ).toBe(
      "## b\nNames of this server's tools and prompts start with `b__`.\nUse x.\n\n## Sea\nNames of this server's tools and prompts start with `sea__`.\nUse y.",
    )
  })

  test('none at all, or switched off: undefined', () => {
    expect(joined([says('a', undefined), says('b', ' ')])).toBeUndefined()
    expect(joined([says('a', 'Use x.', { instructions: false })])).toBeUndefined()
  })

  test('one server alone speaks for itself', () => {
    expect(joined([says('a', 'Use x.'), says('b', 'Use y.')], {}, { only: 'b' })).toBe('Use y.')
    expect(joined([says('a', 'Use x.'), says('b', 'Use y.')], {}, seeing('b'))).toMatch(/^## b\n.*\nUse y\.$/)
  })

  test('each text and all together are capped, never inside a character', () => {
    const text = joined([says('a', 'é'.repeat(50))], { instructionsMaxBytes: 11 }) ?? ''
    expect(text.split('\n').at(-1)).toBe('ééééé […]')
    const all =
      joined([says('a', 'x'.repeat(500)), says('b', 'y'.repeat(500)), says('c', 'z'.repeat(500))], {
        instructionsTotalBytes: 800,
      }) ?? ''
    expect(Buffer.byteLength(all)).toBeLessThanOrEqual(800)
    expect(all).toContain('y […]')
    expect(all).not.toContain('zz')
  })

  test('B261 a heading holds no control or bidi character', () => {
    expect(joined([says('a', 'x', { displayName: 'A\u202E\n## B\u0007\u2066' })])).toMatch(/^## A## B\n/)
  })
})
