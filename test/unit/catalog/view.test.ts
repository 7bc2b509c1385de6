import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import type { Catalog, CatalogOptions, CatalogServer } from '../../../src/catalog/catalog.ts'
import type { Entry, ListKind } from '../../../src/catalog/inventory.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { ALWAYS, NEVER, entryOf, resourceOf, serverOf, sourceOf, toolOf, seeing } from './fixtures.ts'

const shown = (
  entry: Entry,
  changes: { server?: Partial<CatalogServer>; kind?: ListKind; revision?: Revision; naming?: CatalogOptions } = {},
): string => {
  const { server, kind = 'tools', revision = '2026-07-28', naming = ALWAYS } = changes
  const catalog = buildCatalog([sourceOf(serverOf('fs', server), { [kind]: [entry] }), sourceOf('other', {})], naming)
  return new Views().of(catalog, { revision }).list(kind).entries[0]!.toString()
}

describe('ready entries', () => {
  test('B018 B019 only the name changes: numbers, order, white space, escapes and odd keys stay', () => {
    const rest = `"x":9007199254740993, "y" : [1.0, -0,1e400],"__proto__":{"a":1,"a":2},"\\u0074":"\\ud800"}`
    expect(shown(entryOf('read', `{ "name": "read",${rest}`))).toBe(`{ "name": "fs__read",${rest}`)
  })

  test('B018 in mode never the bytes are the server’s own', () => {
    const raw = '{"inputSchema":{"type":"object"},"name":"a b"}'
    expect(shown(entryOf('a b', raw), { naming: NEVER })).toBe(raw)
  })

  test('resources and templates carry exposed URIs', () => {
    expect(shown(resourceOf('file:///x'), { kind: 'resources' })).toBe('{"uri":"fs+file:///x","name":"r"}')
    expect(shown(entryOf('ui://{x}', '{"uriTemplate":"ui://{x}"}'), { kind: 'templates' })).toBe('{"uriTemplate":"ui://~fs/{x}"}')
    expect(shown(resourceOf('https://h/'), { kind: 'resources' })).toBe('{"uri":"https://h/","name":"r"}')
  })

  test('B168 B164 both spellings of a tool’s UI resource keep the ui scheme and name their owner', () => {
    const entry = entryOf(
      't',
      '{"name":"t","_meta":{"ui":{"csp":1,"resourceUri":"ui://a/b"},"ui/resourceUri":"ui://a/b","v":"ui://a/b"}}',
    )
    expect(shown(entry)).toBe(
      '{"name":"fs__t","_meta":{"ui":{"csp":1,"resourceUri":"ui://~fs/a/b"},"ui/resourceUri":"ui://~fs/a/b","v":"ui://a/b"}}',
    )
  })

  test('apps that are off, or of an untrusted server beside others, are not shown', () => {
    const entry = entryOf('t', '{"name":"t","_meta":{"ui":{"resourceUri":"ui://a"}, "k":1 ,"ui/resourceUri":"ui://a"}}')
    for (const server of [{ apps: false }, { trusted: false }])
      expect(shown(entry, { server })).toBe('{"name":"fs__t","_meta":{"k":1}}')
  })

  test('a tool for apps alone stays hidden from models where apps are off', () => {
    const entryWith = (ui: string) => entryOf('t', `{"name":"t","_meta":{"ui":${ui},"ui/resourceUri":"ui://a"}}`)
    for (const server of [{ apps: false }, { trusted: false }]) {
      const own = entryWith('{"resourceUri":"ui://a","visibility":["\\u0061pp"], "csp":1}')
      expect(shown(own, { server })).toBe('{"name":"fs__t","_meta":{"ui":{"visibility":["\\u0061pp"]}}}')
      for (const visibility of ['["app","model"]', '["\\u006dodel"]', '"app"', 'null'])
        expect(shown(entryWith(`{"visibility":${visibility}}`), { server })).toBe('{"name":"fs__t","_meta":{}}')
    }
  })

  test('titles are decorated with the display name where asked, without controls', () => {
    const entry = entryOf('t', '{"name":"t","title":"T\\u0041","annotations":{"title":"A"}}')
    const server = { decorateTitles: true, displayName: 'My "F\u202ES\n"' }
    expect(shown(entry, { server })).toBe(
      '{"name":"fs__t","title":"T\\u0041 (My \\"FS\\")","annotations":{"title":"A (My \\"FS\\")"}}',
    )
    expect(shown(entry)).toContain('"title":"T\\u0041","annotations":{"title":"A"}')
  })

  test('execution is for hosts of 2025-11-25 only', () => {
    const entry = entryOf('t', '{"name":"t","execution":{"taskSupport":"optional"}}')
    expect(shown(entry, { revision: '2025-11-25' })).toContain('execution')
    for (const revision of ['2024-11-05', '2025-06-18', '2026-07-28'] as const)
      expect(shown(entry, { revision })).toBe('{"name":"fs__t"}')
  })

  test('execution is not shown where tasks are off, nor of a server that runs none', () => {
    const entry = entryOf('t', '{"name":"t","execution":{"taskSupport":"optional"}}')
    expect(shown(entry, { revision: '2025-11-25', naming: { ...ALWAYS, tasks: false } })).toBe('{"name":"fs__t"}')
    const { server, inventory } = sourceOf('fs', { tools: [entry] })
    const without = { server, inventory: inventory && { ...inventory, capabilities: { tasks: { list: {} } } } }
    const view = new Views().of(buildCatalog([without], ALWAYS), { revision: '2025-11-25' })
    expect(view.list('tools').entries[0]?.toString()).toBe('{"name":"fs__t"}')
  })
})

describe('B108 output schemas', () => {
  const wrapped = (schema: string, revision: Revision = '2025-06-18'): string =>
    shown(entryOf('t', `{"name":"t","outputSchema":${schema}}`), { revision }).slice('{"name":"fs__t","outputSchema":'.length, -1)

  test('B282 null is no schema', () => {
    for (const revision of ['2024-11-05', '2025-06-18', '2025-11-25', '2026-07-28'] as const)
      expect(shown(entryOf('t', '{"name":"t","inputSchema":{"type":"object"},"outputSchema":null}'), { revision })).toBe(
        '{"name":"fs__t","inputSchema":{"type":"object"}}',
      )
  })

  test('B283 a schema of a legacy server stays, whatever its root', () => {
    for (const schema of [
      '{}',
      '{"$ref":"#/$defs/a"}',
      '{"anyOf":[{"type":"object"}]}',
      '{"type":["object"]}',
      '{"type":"array"}',
    ])
      for (const revision of ['2025-06-18', '2025-11-25'] as const) {
        const entry = entryOf('t', `{"name":"t","outputSchema":${schema}}`)
        const view = new Views().of(buildCatalog([sourceOf('fs', { tools: [entry] }, '2025-06-18')], ALWAYS), { revision })
        expect(view.list('tools').entries[0]?.toString()).toBe(`{"name":"fs__t","outputSchema":${schema}}`)
      }
  })

  test('an object root stays', () => expect(wrapped('{"type":"object","x":1.0}')).toBe('{"type":"object","x":1.0}'))

  test.each(['2024-11-05', '2025-03-26', '2026-07-28'] as const)('any root stays for a host of %s', (revision) =>
    expect(wrapped('{"type":"array"}', revision)).toBe('{"type":"array"}'),
  )

  test('B019 another root is wrapped for 2025 hosts, its own text kept, local references re-based', () => {
    const schema =
      '{"$schema":"s","type":"array","items":{"$ref":"#/$defs/a"},"maxItems":9007199254740993,"$defs":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"other#/x"},{"$dynamicRef":"#a"}]},"$ref":{"const":{"$ref":"#/no"}}, "b":{"$id":"u","$ref":"#/x"}}}'
    const moved = schema
      .replace('"#/$defs/a"', '"#/properties/result/$defs/a"')
      .replace('"$ref":"#"', '"$ref":"#/properties/result"')
    for (const revision of ['2025-06-18', '2025-11-25'] as const)
      expect(wrapped(schema, revision)).toBe(
        `{"$schema":"s","type":"object","properties":{"result":${moved}},"required":["result"]}`,
      )
  })
})

describe('views', () => {
  const sources = [sourceOf('a', { tools: [toolOf('x'), toolOf('y')] }), sourceOf('b', { tools: [toolOf('x')] })]
  const catalog = buildCatalog(sources, ALWAYS)

  test('B115 the same input gives the same bytes, in a new process too', () => {
    const one = new Views().of(catalog, { revision: '2026-07-28' }).list('tools')
    const two = new Views().of(buildCatalog(structuredCloneOf(sources), ALWAYS), { revision: '2026-07-28' }).list('tools')
    expect(one.whole.equals(two.whole)).toBe(true)
    expect(one.digest).toBe(two.digest)
    expect(JSON.parse(one.whole.toString()).map((tool: { name: string }) => tool.name)).toEqual(['a__x', 'a__y', 'b__x'])
  })

  test('a view of some servers holds theirs only, and has its own identity whatever the catalog', () => {
    const views = new Views()
    const some = views.of(catalog, { ...seeing('b'), revision: '2026-07-28' })
    expect(some.list('tools').rows.map((row) => row.exposed)).toEqual(['b__x'])
    const all = views.of(catalog, { revision: '2026-07-28' })
    expect(some.id).not.toBe(all.id)
    expect(views.of(buildCatalog([], ALWAYS), { revision: '2024-11-05' }).id).toBe(all.id)
  })

  test('one server alone shows its own bytes, also what another owns in mode never', () => {
    const never = buildCatalog(sources, NEVER)
    const list = new Views().of(never, { only: 'b', revision: '2026-07-28' }).list('tools')
    expect(list.whole.toString()).toBe(`[${toolOf('x').raw.toString()}]`)
    expect(new Views().of(never, { only: 'nobody', revision: '2026-07-28' }).list('tools').whole.toString()).toBe('[]')
  })

  test('entries that did not change keep their bytes when another server changes; an equal view is the same view', () => {
    const views = new Views()
    const before = views.of(catalog, { revision: '2026-07-28' })
    const after = views.of(buildCatalog([sources[0]!, sourceOf('b', { tools: [toolOf('z')] })], ALWAYS), {
      revision: '2026-07-28',
    })
    expect(after.list('tools').entries[0]).toBe(before.list('tools').entries[0])
    expect(after.list('tools').digest).not.toBe(before.list('tools').digest)
    expect(after.list('prompts').digest).toBe(before.list('prompts').digest)
    expect(views.of(catalog, { revision: '2025-03-26' })).toBe(before)
  })

  test('rows taken over from the catalog before are worded for each revision, and for servers with and without tasks', () => {
    const views = new Views()
    const tool = toolOf('x', { execution: { taskSupport: 'optional' } })
    const changing = (name: string) => [sourceOf('a', { tools: [tool] }), sourceOf('b', { tools: [toolOf(name)] })]
    const [a] = changing('y')
    const first = buildCatalog([a!, changing('y')[1]!], ALWAYS)
    const second = buildCatalog([a!, changing('z')[1]!], ALWAYS, first)
    const without = { ...a!, inventory: { ...a!.inventory!, capabilities: {} } }
    const third = buildCatalog([without, changing('z')[1]!], ALWAYS, second)
    const firstOf = (catalog: Catalog, revision: Revision) => views.of(catalog, { revision }).list('tools').entries[0]!.toString()
    const form = (catalog: Catalog, revision: Revision) => firstOf(catalog, revision).includes('execution')
    expect([first, second].map((catalog) => form(catalog, '2025-11-25'))).toEqual([true, true])
    expect([first, second].map((catalog) => form(catalog, '2026-07-28'))).toEqual([false, false])
    expect(third.parts.tools[0]).toBe(first.parts.tools[0])
    expect(form(third, '2025-11-25')).toBe(firstOf(buildCatalog([without], ALWAYS), '2025-11-25').includes('execution'))
    expect(form(third, '2025-11-25')).toBe(false)
  })

  test('B115 B022 any definition: exposing changes the name and nothing else', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string({ minLength: 1 }), (members, name) => {
        const { name: _, title: __, _meta, execution: ___, ...rest } = members
        const text = JSON.stringify(rest).slice(1)
        const raw = `{"name":${JSON.stringify(name)}${text === '}' ? '' : ','}${text}`
        const exposed = shown(entryOf(name, raw))
        expect(exposed.replace(/^\{"name":"[A-Za-z0-9_-]+"/, '')).toBe(raw.slice(`{"name":${JSON.stringify(name)}`.length))
      }),
    )
  })
})

const structuredCloneOf = (
  sources: readonly { server: CatalogServer; inventory: ReturnType<typeof sourceOf>['inventory'] }[],
): ReturnType<typeof sourceOf>[] =>
  sources.map(({ server, inventory }) =>
    sourceOf({ ...server }, { tools: inventory?.lists.tools.map((entry) => ({ ...entry, raw: Buffer.from(entry.raw) })) ?? [] }),
  )
