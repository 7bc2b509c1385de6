import { describe, expect, test } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { metaTools } from '../../../src/catalog/view/meta-tools.ts'
import { pageOf } from '../../../src/catalog/view/pages.ts'
import { estimateTokens } from '../../../src/catalog/tokens.ts'
import { Toolset } from '../../../src/catalog/view/toolset.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { ALWAYS, serverOf, sourceOf, toolOf } from './fixtures.ts'

const NAMES = ['gateway__search_tools', 'gateway__describe_tool', 'gateway__call_tool']

const viewOf = (tools: readonly string[], name = 'wide', revision: Revision = '2026-07-28'): View => {
  const toolset = new Toolset([toolsetOf({}, { name, discovery: 'search', always: ['a__first', 'a__last'] })])
  const sources = [sourceOf('a', { tools: tools.map((tool) => toolOf(tool)) }), sourceOf('b', {})]
  return new Views().of(buildCatalog(sources, ALWAYS), { revision, toolset })
}

describe('the three tools of ours', () => {
  test('are names and schemas that every host reads, and small', () => {
    const rows = metaTools([serverOf('a')])
    expect(rows.map(({ exposed }) => exposed)).toEqual(NAMES)
    for (const { entry, exposed } of rows) {
      expect(exposed).toMatch(/^[a-zA-Z0-9_-]{1,48}$/)
      expect(JSON.parse(entry.raw.toString())).toMatchObject({
        name: exposed,
        inputSchema: { type: 'object', required: [expect.any(String)] },
      })
    }
    expect(estimateTokens(Buffer.concat(rows.map(({ entry }) => entry.raw)))).toBeLessThan(700)
  })

  test('name the servers, some of very many, and none that rewrites the line', () => {
    const said = (count: number, displayName?: string): string => {
      const servers = Array.from({ length: count }, (_, at) =>
        serverOf(`s${at}`, displayName === undefined ? {} : { displayName }),
      )
      return (JSON.parse(metaTools(servers)[0]!.entry.raw.toString()) as { description: string }).description
    }
    expect(said(2, 'x')).toMatch(/Servers: x, x\.$/)
    expect(said(100)).toMatch(/s39 and more\.$/)
    expect(said(1, 'A\u202e\nB')).toMatch(/Servers: AB\.$/)
  })
})

describe('a view that is searched', () => {
  test('lists the three first, then what is always listed, and holds the rest for the search', () => {
    const view = viewOf(['first', 'middle', 'last'])
    expect(view.listed('tools').rows.map(({ exposed }) => exposed)).toEqual([...NAMES, 'a__first', 'a__last'])
    expect(view.list('tools').rows).toHaveLength(3)
    expect(view.listed('prompts')).toBe(view.list('prompts'))
  })

  test.each<Revision>(['2024-11-05', '2025-06-18', '2025-11-25', '2026-07-28'])(
    'says the same of them to hosts of %s, whatever servers offer',
    (revision) => {
      const digest = viewOf(['first']).listed('tools').digest
      expect(viewOf(['first'], 'wide', revision).listed('tools').digest).toBe(digest)
      expect(viewOf(['first', 'new', 'newer']).listed('tools').digest).toBe(digest)
    },
  )

  test('is paged like any other list', () => {
    const view = viewOf(['first', 'last'])
    const seal = new Seal({ keys: [Buffer.alloc(32)] })
    const names: string[] = []
    for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
      const { entries, nextCursor } = pageOf(view, {
        kind: 'tools',
        cursor,
        limits: { maxItems: 2, maxBytes: 1_000_000 },
        seal,
        principal: 'p',
      })
      names.push(...(JSON.parse(Buffer.concat(entries).toString()) as { name: string }[]).map(({ name }) => name))
      cursor = nextCursor
    }
    expect(names).toEqual([...NAMES, 'a__first', 'a__last'])
  })
})
