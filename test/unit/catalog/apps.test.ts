import { describe, expect, test } from 'vitest'
import { findAppTemplate, findAppTool } from '../../../src/catalog/view/apps.ts'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { CatalogSource } from '../../../src/catalog/catalog.ts'
import { findResource } from '../../../src/catalog/view/routes.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Selection } from '../../../src/catalog/view/view.ts'
import { curated } from '../../support/curation.ts'
import { ALWAYS, entryOf, resourceOf, serverOf, sourceOf, templateOf, toolOf, seeing } from './fixtures.ts'

const viewOf = (sources: CatalogSource[], selection: Partial<Selection> = {}) =>
  new Views().of(buildCatalog(sources, ALWAYS), { revision: '2026-07-28', ...selection })
const ui = (resourceUri?: string, visibility?: string[]): object => ({ _meta: { ui: { resourceUri, visibility } } })
const ownerOf = (name: string, sources: CatalogSource[], selection: Partial<Selection> = {}): string | undefined => {
  const view = viewOf(sources, selection)
  const route = (name.startsWith('ui:') ? findAppTemplate : findAppTool)(view, view.apps, name)
  return route && `${route.serverKey} ${route.original}`
}

const PANEL = toolOf('open', ui('ui://panel'))
const crm = sourceOf('crm', {
  tools: [PANEL, toolOf('refresh', ui(undefined, ['app'])), toolOf('secret', ui(undefined, ['model']))],
})
const plain = sourceOf('plain', { tools: [toolOf('refresh'), toolOf('other')] })

describe('B171 the bare name that an app calls', () => {
  test.each([
    ['of a tool with a template', 'open', [crm, plain], 'crm open'],
    [
      'of a tool that shares its server with a template; servers without any do not count',
      'refresh',
      [crm, plain],
      'crm refresh',
    ],
    ['of a tool that is for the model alone', 'secret', [crm, plain], undefined],
    ['of a tool whose server has no template', 'other', [crm, plain], undefined],
    ['that two servers with apps have', 'open', [crm, sourceOf('b', { tools: [PANEL] })], undefined],
    [
      'of a server whose apps are off',
      'open',
      [sourceOf(serverOf('crm', { apps: false }), { tools: [PANEL] }), plain],
      undefined,
    ],
    ['of an untrusted one', 'open', [sourceOf(serverOf('crm', { trusted: false }), { tools: [PANEL] }), plain], undefined],
    ['that nobody has', 'nothing', [crm, plain], undefined],
    [
      'as old servers name templates',
      'old',
      [sourceOf('a', { tools: [toolOf('old', { _meta: { 'ui/resourceUri': 'ui://o' } })] })],
      'a old',
    ],
  ] as const)('%s', (_, name, sources, owner) => expect(ownerOf(name, [...sources])).toBe(owner))
})

test('B170 a bare template that no list holds leads to the one server whose tools name it', () => {
  expect(ownerOf('ui://panel', [crm, plain])).toBe('crm ui://panel')
  expect(ownerOf('ui://panel', [crm, sourceOf('b', { tools: [PANEL] })])).toBeUndefined()
  expect(ownerOf('ui://other', [crm, plain])).toBeUndefined()
})

test('B170 a bare template that the configuration hides leads nowhere', async () => {
  const { curation } = await curated({ resources: { deny: ['ui://panel'] } })
  const source = sourceOf(serverOf('crm', { curation }), { tools: [PANEL, toolOf('more', ui('ui://more'))] })
  expect(ownerOf('ui://panel', [source])).toBeUndefined()
  expect(ownerOf('ui://more', [source])).toBe('crm ui://more')
})

test('B269 the template of a tool is found under any spelling of keys and texts', () => {
  const escaped = String.raw`{"name":"open","_meta":{"\u0075i":{"resource\u0055ri":"\u0075i://panel"}}}`
  const sources = [sourceOf('crm', { tools: [entryOf('open', escaped)] }), plain]
  expect([ownerOf('open', sources), ownerOf('ui://panel', sources)]).toEqual(['crm open', 'crm ui://panel'])
})

describe('B265 within a view', () => {
  const files = sourceOf('files', { resources: [resourceOf('m:1')], templates: [templateOf('t://{x}')] })
  const twin = sourceOf('twin', {
    // An entry of its own, as every server has.
    tools: [toolOf('open', ui('ui://panel'))],
    resources: [resourceOf('m:1')],
    templates: [templateOf('t://{x}')],
  })

  test.each(['open', 'ui://panel'])('%s leads to no server outside it', (name) => {
    expect(ownerOf(name, [crm, plain], seeing('crm'))).toBe(`crm ${name}`)
    expect(ownerOf(name, [crm, plain], seeing('plain'))).toBeUndefined()
    expect(ownerOf(name, [crm, plain], { only: 'plain' })).toBeUndefined()
  })
  test('B170 B171 a bare name is counted over every server, so that nobody takes over the name of one that is not seen', () => {
    for (const name of ['open', 'ui://panel']) expect(ownerOf(name, [crm, twin], seeing('twin'))).toBeUndefined()
  })
  test.each(['m:1', 't://1'])('the bare URI %s leads to no server outside it', (uri) => {
    const route = (...keys: string[]) => findResource(viewOf([files, plain, twin], seeing(...keys)), uri)?.serverKey
    expect(route('files', 'plain')).toBe('files')
    expect(route('twin')).toBe('twin')
    expect(route('plain')).toBeUndefined()
    expect(route('files', 'twin')).toBeUndefined()
  })
})
