import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { Toolset } from '../../../src/catalog/view/toolset.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import { Searches } from '../../../src/gateway/lists/searches.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { ALWAYS, sourceOf, toolOf } from '../catalog/fixtures.ts'

const viewOf = (tools: readonly string[], name: string): View => {
  const sources = [sourceOf('a', { tools: tools.map((tool) => toolOf(tool)) }), sourceOf('b', {})]
  return new Views().of(buildCatalog(sources, ALWAYS), {
    revision: '2026-07-28',
    toolset: new Toolset([toolsetOf({}, { name })]),
  })
}

test('indexes of views that nobody searches any more are let go', async () => {
  const searches = new Searches()
  const views = Array.from({ length: 40 }, (_, at) => viewOf([`tool_${at}`], `set-${at}`))
  for (const view of views) expect(await searches.find(view, 'tool', 5)).toHaveLength(1)
  expect(searches.size).toBe(32)
  expect(await searches.find(views[0]!, 'tool', 5)).toHaveLength(1)
  expect(searches.size).toBe(32)
})

test('others are served while a large view is indexed', async () => {
  const large = viewOf(
    Array.from({ length: 500 }, (_, at) => `tool_${at}`),
    'large',
  )
  let served = 0
  const over = new AbortController()
  const found = new Searches().find(large, 'tool', 5).finally(() => over.abort())
  for (; !over.signal.aborted; served++) await setImmediate()
  expect(await found).toHaveLength(5)
  expect(served).toBeGreaterThan(10)
})

test('searches of two catalogs of one view at the same time each find their own', async () => {
  const searches = new Searches()
  const older = viewOf(
    Array.from({ length: 100 }, (_, at) => `old_${at}`),
    'same',
  )
  const newer = viewOf(
    Array.from({ length: 100 }, (_, at) => `new_${at}`),
    'same',
  )
  const asked = [older, newer, older].map((view) => searches.find(view, 'old', 200))
  expect((await Promise.all(asked)).map(({ length }) => length)).toEqual([100, 0, 100])
})
