import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { compareNames } from '../../../src/catalog/merge.ts'
import { ALWAYS, NEVER, entryOf, inventoryOf, promptOf, resourceOf, serverOf, sourceOf, templateOf, toolOf } from './fixtures.ts'

const toolsOf = (catalog: Catalog): string[] => catalog.lists.tools.map((row) => `${row.server.key}:${row.exposed}`)

describe('order', () => {
  test('B114 B292 servers in configuration order, and each list as its server gives it', () => {
    const names = ['b', 'a', '\u{1f600}', '\uffee']
    const lists = { prompts: names.map(promptOf) }
    const catalog = buildCatalog([sourceOf('z', lists, '2025-11-25'), sourceOf('m', lists, '2026-07-28')], NEVER)
    expect(catalog.lists.prompts.map((row) => row.entry.original)).toEqual(names)
    const modern = buildCatalog([sourceOf('m', lists, '2026-07-28')], NEVER)
    expect(modern.lists.prompts.map((row) => row.entry.original)).toEqual(names)
  })

  test('B114 code-point order is the order of the UTF-8 bytes', () => {
    const text = fc.string({ unit: 'binary' })
    const order = (a: string, b: string): number => Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    fc.assert(fc.property(text, text, (a, b) => Math.sign(compareNames(a, b)) === order(a, b)))
    expect(compareNames('\uffee', '\u{1f600}')).toBeLessThan(0)
  })

  test('a server of which nothing is known contributes nothing', () => {
    const catalog = buildCatalog(
      [{ server: serverOf('a'), inventory: undefined }, sourceOf('b', { tools: [toolOf('x')] })],
      ALWAYS,
    )
    expect(toolsOf(catalog)).toEqual(['b:b__x'])
  })
})

describe('beside the catalog before', () => {
  const names = fc.uniqueArray(fc.constantFrom('x', 'X', 'y', 'a__x', 'z'), { maxLength: 4 })
  const uris = fc.uniqueArray(fc.constantFrom('https://one.test/', 'file:///two', 'a+file:///two', './three'), { maxLength: 3 })
  const lists = fc.record({
    tools: names.map((all) => all.map((name) => toolOf(name))),
    resources: uris.map((all) => all.map(resourceOf)),
  })
  const revisions = fc.constantFrom('2025-11-25' as const, '2026-07-28' as const)
  const servers = [serverOf('a'), serverOf('b', { alias: { z: 'a__x' } }), serverOf('c', { uris: 'identity' })]
  const known = fc.tuple(
    ...servers.map((server) => fc.tuple(lists, revisions).map(([own, revision]) => sourceOf(server, own, revision))),
  )

  test('a catalog is the same whatever the one before it was', () => {
    const changed = fc.tuple(known, known, fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }), fc.constantFrom(ALWAYS, NEVER))
    fc.assert(
      fc.property(changed, ([first, other, isChanged, naming]) => {
        const second = first.map((source, at) => (isChanged[at] ? other[at]! : source))
        const { parts: _, ...built } = buildCatalog(second, naming, buildCatalog(first, naming))
        const { parts: _own, ...alone } = buildCatalog(second, naming)
        expect(built).toEqual(alone)
      }),
    )
  })

  test('what did not change is taken over: its rows are the very same ones', () => {
    const sources = [sourceOf('a', { tools: [toolOf('x')] }), sourceOf('b', { tools: [toolOf('y')] })]
    const before = buildCatalog(sources, ALWAYS)
    const after = buildCatalog(
      [sources[0]!, { ...sources[1]!, inventory: inventoryOf({ tools: [toolOf('z')] }) }],
      ALWAYS,
      before,
    )
    expect(after.parts.tools[0]).toBe(before.parts.tools[0])
    expect(toolsOf(after)).toEqual(['a:a__x', 'b:b__z'])
  })

  test('B163 a name that a server configured before it takes is lost, also where nothing else of the loser changed', () => {
    const sources = [sourceOf('a', { tools: [toolOf('y')] }), sourceOf('b', { tools: [toolOf('x')] })]
    const before = buildCatalog(sources, NEVER)
    const taken = [{ ...sources[0]!, inventory: inventoryOf({ tools: [toolOf('x')] }) }, sources[1]!]
    const after = buildCatalog(taken, NEVER, before)
    expect(toolsOf(after)).toEqual(['a:x'])
    expect(toolsOf(buildCatalog(sources, NEVER, after))).toEqual(['a:y', 'b:x'])
  })
})

describe('collisions', () => {
  test('B163 with original names the server configured first owns a duplicate; the loser is told', () => {
    const catalog = buildCatalog(
      [sourceOf('a', { tools: [toolOf('x')] }), sourceOf('b', { tools: [toolOf('x'), toolOf('y')] })],
      NEVER,
    )
    expect(toolsOf(catalog)).toEqual(['a:x', 'b:y'])
    expect(catalog.problems).toEqual([
      { kind: 'duplicate', message: 'tools: "x" belongs to a, which is configured first; "x" of b is left out' },
    ])
    expect(catalog.leftOut).toEqual([{ kind: 'tools', name: 'x', server: 'b', reason: '"x" belongs to a' }])
  })

  test('an alias wins over the name a sibling would have', () => {
    const server = serverOf('a', { alias: { z: 'a__x' } })
    const catalog = buildCatalog([sourceOf(server, { tools: [toolOf('x'), toolOf('z')] })], ALWAYS)
    expect(catalog.lists.tools.map((row) => [row.entry.original, row.exposed])).toEqual([['z', 'a__x']])
    expect(catalog.problems).toMatchObject([{ message: 'tools: "a__x" is configured for "z" of a; "x" of a is left out' }])
  })

  test('names that differ only by case are both served and reported', () => {
    const catalog = buildCatalog([sourceOf('a', { tools: [toolOf('Read'), toolOf('read')] })], ALWAYS)
    expect(toolsOf(catalog)).toHaveLength(2)
    expect(catalog.problems).toMatchObject([{ kind: 'case', message: expect.stringContaining('"a__read" of a ') }])
  })

  test('T-18 two servers with the same http(s) URI or template: the first owns it, the other takes its prefix', () => {
    const lists = { resources: [resourceOf('https://h/a')], templates: [templateOf('https://h/{x}')] }
    const catalog = buildCatalog([sourceOf('a', lists), sourceOf('b', lists)], ALWAYS)
    expect(catalog.lists.resources.map((row) => row.exposed)).toEqual(['https://h/a', 'b+https://h/a'])
    expect(catalog.lists.templates.map((row) => row.exposed)).toEqual(['https://h/{x}', 'b+https://h/{x}'])
    expect(catalog.problems.map(({ message }) => message.split(':', 1)[0])).toEqual(['resources', 'templates'])
  })

  test('an entry listed twice counts once', () => {
    const catalog = buildCatalog([sourceOf('a', { tools: [toolOf('x'), toolOf('x')] })], ALWAYS)
    expect(catalog.leftOut.map(({ kind, reason }) => [kind, reason])).toEqual([['tools', 'the server lists it twice']])
  })
})

test('B022 names from the prototype of objects are names like others', () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
  const catalog = buildCatalog([sourceOf('a', { tools: names.map((name) => entryOf(name, JSON.stringify({ name }))) })], NEVER)
  expect([...catalog.index.tools.keys()].toSorted()).toEqual(names.toSorted())
  expect(catalog.problems).toEqual([])
})
