import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogSource } from '../../../src/catalog/catalog.ts'
import type { NamingOptions } from '../../../src/catalog/names/naming.ts'
import { exposedUri, findPrompt, findResource, findTemplateRef, findTool } from '../../../src/catalog/view/routes.ts'
import { exposeListed, exposeUri } from '../../../src/catalog/names/uris.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Selection, View } from '../../../src/catalog/view/view.ts'
import { ALWAYS, NEVER, promptOf, resourceOf, serverOf, sourceOf, templateOf, toolOf, seeing } from './fixtures.ts'

const viewOf = (sources: CatalogSource[], naming: NamingOptions = ALWAYS, selection: Partial<Selection> = {}): View =>
  new Views().of(buildCatalog(sources, naming), { revision: '2026-07-28', ...selection })

const ownerOf = (view: View, uri: string): string | undefined => {
  const route = findResource(view, uri)
  return route && `${route.serverKey} ${route.original}`
}

describe('names', () => {
  const view = viewOf([
    sourceOf('a', { tools: [toolOf('x')], prompts: [promptOf('p')] }),
    sourceOf('b', { tools: [toolOf('x')] }),
  ])

  test('B161 an exposed name leads to its server and original', () => {
    expect(findTool(view, 'b__x')).toMatchObject({ serverKey: 'b', original: 'x' })
    expect(findPrompt(view, 'a__p')).toMatchObject({ serverKey: 'a', original: 'p' })
  })

  test('B102 an unknown, bare or hidden name leads nowhere', () => {
    expect(findTool(view, 'x')).toBeUndefined()
    expect(findTool(view, 'a__y')).toBeUndefined()
    expect(findTool(viewOf([sourceOf('a', { tools: [toolOf('x')] })], ALWAYS, seeing()), 'a__x')).toBeUndefined()
    expect(findTool(view, 'constructor')).toBeUndefined()
  })

  test('one server alone goes by its original names', () => {
    const sources = [
      sourceOf(serverOf('a', { alias: { x: 'y' } }), { tools: [toolOf('x')] }),
      sourceOf('b', { tools: [toolOf('x')] }),
    ]
    const alone = viewOf(sources, ALWAYS, { only: 'b' })
    expect(findTool(alone, 'x')).toMatchObject({ serverKey: 'b', original: 'x' })
    expect(findTool(alone, 'b__x')).toBeUndefined()
    expect(findTool(viewOf(sources, ALWAYS, { only: 'a' }), 'x')).toMatchObject({ serverKey: 'a', original: 'x' })
  })
})

describe('URIs', () => {
  const view = viewOf([
    sourceOf('fs', {
      resources: [resourceOf('file:///both'), resourceOf('file:///fs'), resourceOf('https://h/a')],
      templates: [templateOf('file:///{path}')],
    }),
    sourceOf('db', {
      resources: [resourceOf('file:///both'), resourceOf('https://h/a'), resourceOf('ui://x/y')],
      templates: [templateOf('db://{table}/{id}'), templateOf('{+any}'), templateOf('https://h/{x}')],
    }),
  ])

  test.each([
    ['fs+file:///srv/a.txt', 'fs file:///srv/a.txt'],
    ['fs+never:listed', 'fs never:listed'],
    ['ui://~db/x/y', 'db ui://x/y'],
    ['ui://~db/never/listed', 'db ui://never/listed'],
    ['file:///fs', 'fs file:///fs'],
    ['ui://x/y', 'db ui://x/y'],
    ['db://t/1', 'db db://t/1'],
    ['https://h/a', 'fs https://h/a'],
    ['db+https://h/a', 'db https://h/a'],
    ['https://h/b', 'db https://h/b'],
    ['file:///templated', 'fs file:///templated'],
  ])('B166 %s leads to %s', (uri, owner) => expect(ownerOf(view, uri)).toBe(owner))

  test.each(['nobody:x', 'ui://~nobody/x', 'https://other/', 'fs+', 'fs+relative', 'relative', ''])(
    'B166 %j has no owner that is certain',
    (uri) => expect(ownerOf(view, uri)).toBeUndefined(),
  )

  test('B166 a bare URI that two servers list, or two templates match, leads nowhere', () => {
    const twice = viewOf([
      sourceOf('a', { resources: [resourceOf('m:1')], templates: [templateOf('m:x{a}')] }),
      sourceOf('b', { resources: [resourceOf('m:1')], templates: [templateOf('m:x{+b}')] }),
    ])
    expect(ownerOf(twice, 'm:1')).toBeUndefined()
    expect(ownerOf(twice, 'm:x2')).toBeUndefined()
  })

  test('B166 a template that hosts see unchanged comes before one that they see with a prefix', () => {
    const templates = [templateOf('db://{table}')]
    const sources = [sourceOf('a', { templates }), sourceOf(serverOf('own', { uris: 'identity' }), { templates })]
    expect(ownerOf(viewOf(sources), 'db://x')).toBe('own db://x')
  })

  test('B166 an exposed form of a server outside the view leads nowhere, not to a template of another', () => {
    const sources = [sourceOf('git', { resources: [] }), sourceOf('b', { templates: [templateOf('git+ssh://{host}')] })]
    expect(ownerOf(viewOf(sources, ALWAYS, seeing('b')), 'git+ssh://h')).toBeUndefined()
    expect(ownerOf(viewOf(sources), 'git+ssh://h')).toBe('git ssh://h')
  })

  test.each(['./x', '/terraform/style-guide', 'a b', ':x', 'docs/{page}'])(
    'B161 the relative URI %j leads back to its server',
    (uri) => {
      const lists = { resources: [resourceOf(uri)], templates: [templateOf(uri)] }
      const aggregate = viewOf([sourceOf('tf', lists), sourceOf('b', lists)])
      for (const [at, owner] of ['tf', 'b'].entries())
        for (const kind of ['resources', 'templates'] as const) {
          const exposed = aggregate.catalog.lists[kind][at]!.exposed
          expect(new URL(exposed).protocol).toBe(`${owner}+:`)
          expect(ownerOf(aggregate, exposed)).toBe(`${owner} ${uri}`)
        }
    },
  )

  test('B109 B161 what a server names leads back to it, whichever others list the same', () => {
    const [fs, db] = view.catalog.sources.map(({ server }) => server)
    for (const uri of ['https://h/a', 'https://h/b', 'https://other/', 'file:///x', 'ui://x', './relative'])
      for (const server of [fs, db]) {
        const exposed = exposedUri(view, server!, uri)
        const owner = ownerOf(view, exposed)
        if (owner === undefined) expect([uri, exposed]).toEqual([expect.stringMatching(/^https:\/\/other|^\.\//), uri])
        else expect(owner).toBe(`${server!.key} ${uri}`)
      }
    expect(exposedUri(view, fs!, 'https://h/a')).toBe('https://h/a')
    expect(exposedUri(view, db!, 'https://h/a')).toBe('db+https://h/a')
    expect(exposedUri(view, fs!, 'https://h/b')).toBe('fs+https://h/b')
    const documented = viewOf([sourceOf('fs', { templates: [templateOf('https://docs/{page}')] }), sourceOf('db', {})])
    const [own, other] = documented.catalog.sources.map(({ server }) => server)
    expect(exposedUri(documented, own!, 'https://docs/1'), 'B164').toBe('https://docs/1')
    expect(exposedUri(documented, other!, 'https://docs/1')).toBe('db+https://docs/1')
    const never = viewOf([sourceOf('a', { resources: [resourceOf('m:1')] }), sourceOf('b', {})], NEVER)
    expect(exposedUri(never, never.catalog.sources[1]!.server, 'm:1')).toBe('b+m:1')
    expect(exposedUri(never, never.catalog.sources[0]!.server, 'm:1')).toBe('m:1')
  })

  test('the only server with identity URIs gets every URI as it is', () => {
    const sole = viewOf([sourceOf('fs', {})], NEVER)
    expect(ownerOf(sole, 'fs+file:///x')).toBe('fs fs+file:///x')
    expect(ownerOf(viewOf([sourceOf('a', {}), sourceOf('fs', {})], ALWAYS, { only: 'fs' }), 'test://any')).toBe('fs test://any')
  })

  test('B163 with original names everywhere the server configured first owns a duplicate, the other takes its prefix', () => {
    const never = viewOf(
      [sourceOf('a', { resources: [resourceOf('m:1')] }), sourceOf('b', { resources: [resourceOf('m:1'), resourceOf('a+m:1')] })],
      NEVER,
    )
    expect(ownerOf(never, 'm:1')).toBe('a m:1')
    expect(ownerOf(never, 'b+m:1')).toBe('b m:1')
    expect(ownerOf(never, 'a+m:1')).toBe('a m:1')
    expect(ownerOf(never, 'b+a+m:1')).toBe('b a+m:1')
  })

  test('B168 a completion ref may be the exposed template, an exposed URI, or the bare original', () => {
    for (const ref of ['fs+file:///{path}', 'file:///{path}'])
      expect(findTemplateRef(view, ref)).toMatchObject({ serverKey: 'fs', original: 'file:///{path}' })
    expect(findTemplateRef(view, 'fs+file:///x')).toMatchObject({ serverKey: 'fs', original: 'file:///x' })
    expect(findTemplateRef(view, 'db://t/1')).toMatchObject({ serverKey: 'db', original: 'db://t/1' })
    expect(findTemplateRef(view, 'nobody:{x}')).toBeUndefined()
  })
})

describe('completeness (BRIDGING 4.5)', () => {
  const word = fc.constantFrom('a', 'b', 'a+', 'b+', '~a/', '~b/', '__', '/', '{x}', '%', 'é', ' ', '__proto__', 'constructor')
  const tail = fc.array(word, { maxLength: 4 }).map((words) => words.join(''))
  const uri = fc
    .tuple(fc.constantFrom('file:///', 'ui://', 'ui:', 'https://', 'a+m:', 'b+ui://~a/', 'UI://', 'a:', 'ui://~b/'), tail)
    .map((pair) => pair.join(''))
  const name = fc.oneof(tail, fc.string({ unit: 'binary' }))
  const lists = fc.record({
    tools: fc.uniqueArray(name).map((all) => all.map((one) => toolOf(one))),
    prompts: fc.uniqueArray(name).map((all) => all.map(promptOf)),
    resources: fc.uniqueArray(uri).map((all) => all.map(resourceOf)),
    templates: fc.uniqueArray(uri).map((all) => all.map(templateOf)),
  })
  const mode = fc.constantFrom('namespaced' as const, 'identity' as const)
  const revision = fc.constantFrom('2025-06-18' as const, '2026-07-28' as const)

  test('B161 T-18 every exposed name and URI of two servers leads back to its own entry, and no two are the same', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(lists, mode, revision), { minLength: 2, maxLength: 3 }),
        fc.constantFrom(ALWAYS, NEVER),
        (all, naming) => {
          const catalog = buildCatalog(
            all.map(([offer, uris, spoken], at) => sourceOf(serverOf('abc'[at]!, { uris }), offer, spoken)),
            naming,
          )
          const view = new Views().of(catalog, { revision: '2026-07-28' })
          const finders = { tools: findTool, prompts: findPrompt, resources: findResource, templates: findTemplateRef }
          for (const [kind, find] of Object.entries(finders)) {
            const rows = catalog.lists[kind as keyof typeof finders]
            expect(new Set(rows.map((row) => row.exposed)).size).toBe(rows.length)
            for (const { server, entry, exposed } of rows)
              expect(find(view, exposed)).toEqual({ serverKey: server.key, original: entry.original, entry })
            const offered = all.reduce((sum, [offer]) => sum + offer[kind as keyof typeof finders].length, 0)
            const left = catalog.leftOut.filter((one) => one.kind === kind).length
            expect(rows.length + left).toBe(offered)
            if (naming === ALWAYS) expect(left).toBe(0)
          }
        },
      ),
      { numRuns: 400 },
    )
  })

  test('B165 exposing and expanding a template commute', () => {
    const piece = fc.oneof(
      tail.map((text) => text.replaceAll(/[{}]/g, '')),
      fc.constantFrom('{x}', '{+x}', '{y}'),
    )
    const template = fc
      .tuple(fc.constantFrom('file:///', 'ui://', 'https://', 'm:'), fc.array(piece))
      .map(([scheme, pieces]) => scheme + pieces.join(''))
    const expand = (text: string, values: Record<string, string>): string =>
      text.replaceAll(/\{(\+?)([xy])\}/g, (_, raw: string, key: string) =>
        raw ? values[key]! : encodeURIComponent(values[key]!),
      )
    fc.assert(
      fc.property(template, fc.record({ x: fc.string(), y: fc.string() }), (text, values) => {
        expect(expand(exposeListed('fs', text), values)).toBe(exposeUri('fs', expand(text, values)))
      }),
    )
  })
})
