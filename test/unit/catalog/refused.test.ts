/** URIs that hosts may not read though they can build them (T-17). */
import { expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { LeftOut } from '../../../src/catalog/inventory.ts'
import { isRefusedUri } from '../../../src/catalog/refused.ts'
import { ALWAYS, sourceOf, templateOf } from './fixtures.ts'

const refused = (kind: LeftOut['kind'], name: string, isRefused = true): LeftOut => ({ kind, name, reason: 'x', isRefused })

test('T-17 a URI is refused where it is left out by a policy, or matches a template that is and none that is listed', () => {
  const a = sourceOf('a', { templates: [templateOf('db://public/{table}')] })
  const b = sourceOf('b', { templates: [templateOf('db://{+all}')] })
  const leftOut = [
    refused('resources', 'file:///secret'),
    refused('resources', 'file:///large', false),
    refused('tools', 'file:///tool'),
    refused('templates', 'db://{+path}'),
    refused('templates', '{+anything}'),
  ]
  const catalog = buildCatalog([{ ...a, inventory: { ...a.inventory!, leftOut } }, b], ALWAYS)
  const URIS = [
    'file:///secret',
    'file:///large',
    'file:///tool',
    'file:///other',
    'db://private/x',
    'db://public/x',
    'db://{+path}',
    '{+anything}',
  ]
  expect(URIS.filter((uri) => isRefusedUri(catalog, 'a', uri))).toEqual([
    'file:///secret',
    'db://private/x',
    'db://{+path}',
    '{+anything}',
  ])
  expect(URIS.filter((uri) => isRefusedUri(catalog, 'b', uri))).toEqual([])
})

test('T-17 a refused URI is refused under every spelling that a lenient server reads alike', () => {
  const a = sourceOf('a', { templates: [templateOf('db://public/{table}')] })
  const leftOut = [refused('resources', 'file:///a b/secret'), refused('templates', 'db://{+path}')]
  const catalog = buildCatalog([{ ...a, inventory: { ...a.inventory!, leftOut } }], ALWAYS)
  const isRefused = (uri: string): boolean => isRefusedUri(catalog, 'a', uri)
  const URIS = [
    'file:///a%20b/secret',
    'file:///a b/./secret',
    'file:///a b//secre%2574',
    'file:///a b\\secret',
    'file:///x/../a b/secret',
    'db:%2f%2fprivate/x',
  ]
  expect(URIS.filter((uri) => !isRefused(uri))).toEqual([])
  expect(['file:///a%20c', 'db://public/%61', 'file:///a b/secret2'].filter(isRefused)).toEqual([])
})
