/** What a toolset holds, row by row and URI by URI, and what it costs. */
import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogSource } from '../../../src/catalog/catalog.ts'
import type { ListKind } from '../../../src/catalog/inventory.ts'
import { findResource, findTool } from '../../../src/catalog/view/routes.ts'
import { Toolset } from '../../../src/catalog/view/toolset.ts'
import type { Choice, ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import { Toolsets } from '../../../src/catalog/view/toolsets.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Selection, View } from '../../../src/catalog/view/view.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { ALWAYS, NEVER, promptOf, resourceOf, serverOf, sourceOf, templateOf, toolOf } from './fixtures.ts'

const A = sourceOf(serverOf('a', { tags: ['code'], trusted: true, alias: { odd: 'plain' } }), {
  tools: [
    toolOf('read', { annotations: { readOnlyHint: true } }),
    toolOf('wipe', { annotations: { destructiveHint: true } }),
    toolOf('note', { annotations: { destructiveHint: false, idempotentHint: true } }),
    toolOf('odd'),
  ],
  prompts: [promptOf('ask')],
  resources: [resourceOf('file:///x/1'), resourceOf('https://h/1')],
  templates: [templateOf('db://{table}/{id}')],
})
const B = sourceOf(serverOf('b-1'), { tools: [toolOf('read', { annotations: { readOnlyHint: true } }), toolOf('find')] })
const LISTS: readonly ListKind[] = ['tools', 'prompts', 'resources', 'templates']

const viewOf = (choice: Partial<Choice>, more: Partial<ToolsetOptions> = {}, selection: Partial<Selection> = {}): View =>
  new Views().of(buildCatalog([A, B], ALWAYS), {
    revision: '2026-07-28',
    toolset: new Toolset([toolsetOf(choice, more)]),
    ...selection,
  })
const shown = (view: View, kinds = LISTS): string =>
  kinds.flatMap((kind) => view.list(kind).rows.map(({ exposed }) => exposed)).join(' ')

describe('rows', () => {
  const REST = 'a__ask a+file:///x/1 https://h/1 a+db://{table}/{id}'
  test.each<[Partial<Choice>, string]>([
    [{}, `a__read a__wipe a__note plain b-1__read b-1__find ${REST}`],
    [{ servers: ['a'] }, `a__read a__wipe a__note plain ${REST}`],
    [{ servers: ['code'] }, `a__read a__wipe a__note plain ${REST}`],
    [{ servers: ['b-*'] }, 'b-1__read b-1__find'],
    [{ servers: [] }, ''],
    // As soon as something is named, nothing is in it but what is named.
    [{ tools: ['*__read'] }, 'a__read b-1__read'],
    [{ tools: ['*__read'], servers: ['b-1'] }, 'b-1__read'],
    [{ prompts: ['*'] }, 'a__ask'],
    [{ tools: ['plain'], resources: ['**'] }, 'plain a+file:///x/1 https://h/1 a+db://{table}/{id}'],
    [{ resources: ['a+file:///*'] }, ''],
    [{ resources: ['a+file:///**'] }, 'a+file:///x/1'],
    [{ tools: [] }, ''],
    // Annotations, of a trusted server and as they are assumed.
    [{ tools: ['*'], where: { readOnlyHint: true } }, 'a__read'],
    [{ tools: ['*'], where: { destructiveHint: false } }, 'a__read a__note'],
    [{ tools: ['*'], where: { idempotentHint: true } }, 'a__read a__note'],
    [{ tools: ['*'], where: { readOnlyHint: false, destructiveHint: false } }, 'a__note'],
    [{ where: { readOnlyHint: true }, servers: ['a'] }, `a__read ${REST}`],
  ])('%j shows %j', (choice, expected) => expect(shown(viewOf(choice))).toBe(expected))

  test('what the operator says of a tool is believed of any server', () => {
    const override = { 'b-1__find': { annotations: { readOnlyHint: true } }, a__read: { annotations: { readOnlyHint: false } } }
    expect(shown(viewOf({ tools: ['*'], where: { readOnlyHint: true } }, { override }))).toBe('b-1__find')
  })

  test('several choices show what any of them does', () => {
    const choices = [toolsetOf({ tools: ['a__wipe'] }), toolsetOf({ servers: ['b-1'] })].flatMap((one) => one.choices)
    expect(shown(viewOf({}, { choices }))).toBe('a__wipe b-1__read b-1__find')
  })

  test('a server seen alone keeps its own names under the same predicate', () => {
    expect(shown(viewOf({ tools: ['a__w*'], resources: ['a+db:**'] }, {}, { only: 'a' }))).toBe('wipe db://{table}/{id}')
  })
})

describe('URIs that no list names', () => {
  const owner = (choice: Partial<Choice>, uri: string): string | undefined => findResource(viewOf(choice), uri)?.original
  test('are shown with a server that is shown whole, or by a pattern, under every spelling of them', () => {
    expect(owner({ servers: ['a'] }, 'a+any://thing')).toBe('any://thing')
    expect(owner({ servers: ['b-1'] }, 'a+any://thing')).toBeUndefined()
    expect(owner({ resources: ['a+any://x/**'] }, 'a+any://x/y')).toBe('any://x/y')
    for (const uri of [
      'a+any://y',
      'a+any://x/../y',
      'a+any://x/%2e%2e/y',
      'a+any://x/..%2fy',
      'a+any://x/..\\y',
      'a+any://x/%252e%252e/y',
      'a+any://x/..',
    ])
      expect(owner({ resources: ['a+any://x/**'] }, uri)).toBeUndefined()
  })

  test('are shown where a template that is shown expands to them, exposed and bare', () => {
    const choice = { resources: ['a+db://{table}/{id}'] }
    expect([owner(choice, 'a+db://t/1'), owner(choice, 'db://t/1')]).toEqual(['db://t/1', 'db://t/1'])
    expect([owner({ tools: ['*'] }, 'a+db://t/1'), owner({ tools: ['*'] }, 'db://t/1')]).toEqual([undefined, undefined])
  })

  test('a resource that is listed and hidden stays hidden, whatever template would expand to it', () => {
    const source = sourceOf('c', { resources: [resourceOf('db://t/1')], templates: [templateOf('db://t/{id}')] })
    const toolset = new Toolset([toolsetOf({ resources: ['c+db://t/{id}'] })])
    const view = new Views().of(buildCatalog([source, B], ALWAYS), { revision: '2026-07-28', toolset })
    const find = (uri: string) => findResource(view, uri)?.original
    expect([find('c+db://t/2'), find('c+db://t/1'), find('db://t/1')]).toEqual(['db://t/2', undefined, undefined])
    // Under no other spelling, either.
    for (const uri of ['db://t/%31', 'db://t/%2531', 'db://t\\1', 'db://t/1%00', 'db://t/1%2500x'])
      expect([find(`c+${uri}`), find(uri)]).toEqual([undefined, undefined])
    expect(find('c+db://t/%32')).toBe('db://t/%32')
  })

  test('of a server seen alone only what it shows is routed, though any URI is its', () => {
    const view = viewOf({ resources: ['a+file:///x/**'] }, {}, { only: 'a' })
    expect(findResource(view, 'file:///x/9')?.original).toBe('file:///x/9')
    expect(findResource(view, 'file:///y')).toBeUndefined()
  })
})

describe('servers', () => {
  const unknown: CatalogSource = { server: serverOf('late'), inventory: undefined }
  const sees = (choice: Partial<Choice>): string => {
    const toolset = new Toolset([toolsetOf(choice)])
    const view = new Views().of(buildCatalog([A, B, unknown], ALWAYS), { revision: '2026-07-28', toolset })
    return view.sources.map(({ server }) => server.key).join(' ')
  }
  test.each<[Partial<Choice>, string]>([
    [{}, 'a b-1 late'],
    [{ tools: ['a__read'] }, 'a'],
    [{ tools: ['a__nothing'] }, ''],
    [{ tools: ['*__read'] }, 'a b-1 late'],
    [{ tools: ['late__x'] }, 'late'],
    [{ tools: ['l?te__*'] }, 'late'],
    [{ tools: ['plain'] }, 'a'],
    [{ resources: ['late+**'] }, 'late'],
    [{ resources: ['https://**'] }, 'a b-1 late'],
    [{ prompts: ['a__*'], servers: ['b-1'] }, ''],
  ])('%j leaves %j: those with something in it, or that may have', (choice, expected) => expect(sees(choice)).toBe(expected))
})

describe('words and cost', () => {
  test('override wins over the server, leaves all other bytes, and works on a server seen alone', () => {
    const override = { a__read: { title: 'Read "it"', description: 'Reads.', annotations: { idempotentHint: true } } }
    const wanted = {
      title: 'Read "it"',
      description: 'Reads.',
      annotations: { idempotentHint: true, readOnlyHint: true },
      inputSchema: { type: 'object' },
    }
    const [exposed] = viewOf({ tools: ['a__read'] }, { override }).list('tools').entries
    expect(JSON.parse(exposed!.toString())).toEqual({ name: 'a__read', ...wanted })
    const [own] = viewOf({ tools: ['a__read'] }, { override }, { only: 'a' }).list('tools').entries
    expect(JSON.parse(own!.toString())).toEqual({ name: 'read', ...wanted })
    expect(
      viewOf({ tools: ['a__read'] })
        .list('tools')
        .entries[0]!.toString(),
    ).not.toContain('Reads.')
  })

  test('a budget is over when tools or tokens are more; auto then searches, full never, search always', () => {
    const view = (more: Partial<ToolsetOptions>): View => viewOf({ tools: ['*'] }, more)
    const each = view({})
      .list('tools')
      .entries.map(({ length }) => Math.ceil(length / 4))
    expect(view({}).cost).toEqual({ tools: 6, tokens: each.reduce((sum, tokens) => sum + tokens, 0) })
    const { tokens } = view({}).cost
    for (const [budget, isOver] of [
      [{ tools: 6, tokens }, false],
      [{ tools: 5, tokens }, true],
      [{ tools: 6, tokens: tokens - 1 }, true],
      [{ tools: Infinity, tokens: Infinity }, false],
    ] as const) {
      expect([view({ budget }).isOverBudget, view({ budget, discovery: 'auto' }).isSearched]).toEqual([isOver, isOver])
      expect(view({ budget, discovery: 'full' }).isSearched).toBe(false)
      expect(view({ budget, discovery: 'search' }).isSearched).toBe(true)
    }
  })

  test('always and confirm name tools by exposed names, also of a server seen alone', () => {
    const more = { always: ['a__r*'], confirm: ['*__wipe'] }
    for (const [view, names] of [
      [viewOf({}, more), ['a__read', 'a__wipe']],
      [viewOf({}, more, { only: 'a' }), ['read', 'wipe']],
    ] as const) {
      const { rows } = view.list('tools')
      expect(rows.filter((row) => view.isAlways(row)).map(({ exposed }) => exposed)).toEqual([names[0]])
      expect(rows.filter(({ entry }) => view.confirms(entry)).map(({ exposed }) => exposed)).toEqual([names[1]])
      expect(findTool(view, names[1])?.entry).toBe(rows.find(({ exposed }) => exposed === names[1])?.entry)
    }
  })
})

describe('which toolset a scope means', () => {
  const [one, two] = [toolsetOf({ tools: ['a__*'] }, { name: 'one' }), toolsetOf({ tools: ['b__*'] }, { name: 'two' })]
  const named = (all: readonly ToolsetOptions[], server: string | undefined, toolset?: string): string | undefined =>
    new Toolsets(all).of({ server, ...(toolset !== undefined && { toolset }) })?.name

  test('none of its own: default, else everything; of a server alone all that could be chosen', () => {
    const fallback = { ...one, name: 'default' }
    expect(named([one, two], undefined)).toBeUndefined()
    expect(named([one, two], 'a')).toBeUndefined()
    expect(named([fallback, two], undefined)).toBe('default')
    expect(named([fallback, two], 'a')).toBe('default two')
  })

  test('one of its own, or several of a server alone; what is gone shows nothing', () => {
    expect(named([one, two], undefined, 'two')).toBe('two')
    expect(named([one, two], 'a', 'two one')).toBe('two one')
    expect(named([one], 'a', 'two one')).toBe('one')
    for (const gone of ['three', '', 'default']) expect(named([one, two], undefined, gone)).toBe('')
    expect(shown(viewOf({}, {}, { toolset: new Toolset([]) }))).toBe('')
  })
})

test('without prefixes names are original ones, and any may be meant', () => {
  const toolset = new Toolset([toolsetOf({ tools: ['find'] })])
  const view = new Views().of(buildCatalog([A, B], NEVER), { revision: '2026-07-28', toolset })
  expect(shown(view, ['tools'])).toBe('find')
})
