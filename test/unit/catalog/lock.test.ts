/** The lock file as a text: written in one spelling, read back without loss, refused with a place when it was touched. */
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { diffDefinitions } from '../../../src/catalog/lock/lock-diff.ts'
import { LockError, readLock } from '../../../src/catalog/lock/lock-reader.ts'
import { printLock } from '../../../src/catalog/lock/lock-text.ts'
import { compareLocked, lockServer } from '../../../src/catalog/lock/lock.ts'
import { documentFrom, randomFrom } from '../../support/documents.ts'
import { entryOf, inventoryOf, promptOf, resourceOf, templateOf, toolOf } from './fixtures.ts'

const inventory = inventoryOf(
  {
    tools: [toolOf('b', { description: 'first\n  second\n\nlast\\n\n' }), toolOf('a', { title: `A\u{e0041}\u202e` })],
    prompts: [promptOf('p')],
    resources: [resourceOf('x://r')],
    templates: [templateOf('x://{t}')],
  },
  '2026-07-28',
  'Use a.\nThen b.',
)
const text = printLock([lockServer('z', inventoryOf({}), undefined), lockServer('files', inventory, undefined)])

describe('a lock file', () => {
  test('has servers, kinds and names in one order, one member per line, and texts broken where their lines end', () => {
    const lines = text.split('\n')
    const at = (line: string): number => lines.findIndex((one) => one.trim().startsWith(line))
    const order = [
      '"files": {',
      '"instructions"',
      '"tools"',
      '"a": {',
      '"b": {',
      '"prompts"',
      '"resources"',
      '"templates"',
      '"z": {}',
    ]
    expect(order.map(at)).toEqual(order.map(at).toSorted((a, b) => a - b))
    expect(order.map(at)).not.toContain(-1)
    expect(lines.slice(at('"description": "first'))[1]!.trim()).toBe('\\u0020 second\\n\\')
    expect(text).toContain('"title": "A\\udb40\\udc41\\u202e"')
  })

  test('is YAML, and says there what it says to us', () => {
    const read = parse(text) as { servers: Record<string, { tools: Record<string, { definition: unknown }> }> }
    expect(read.servers['files']!.tools['b']!.definition).toEqual(JSON.parse(inventory.lists.tools[0]!.raw.toString()))
    const [files] = readLock(text)
    expect(JSON.parse(files!.entries.find(({ name }) => name === 'b')?.definition ?? '')).toEqual(
      read.servers['files']!.tools['b']!.definition,
    )
  })

  test('is written the same again from what was read of it, whatever definitions hold', () => {
    const random = randomFrom(17)
    for (let round = 0; round < 300; round++) {
      const document = documentFrom(random)
      const more = document === '{}' || /^\{\s*\}$/.test(document) ? '' : `,${document.trim().slice(1, -1)}`
      const tool = entryOf('t', `{"name":"t"${more},"name":"t"}`)
      const written = printLock([lockServer('s', inventoryOf({ tools: [tool] }, '2026-07-28', 'a\r\n b\\'), undefined)])
      const servers = readLock(written)
      expect(servers).toEqual([lockServer('s', inventoryOf({ tools: [tool] }, '2026-07-28', 'a\r\n b\\'), undefined)])
      expect(printLock(servers)).toBe(written)
      expect(readLock(written.replaceAll('\n', '\r\n'))).toEqual(servers)
    }
  })

  test('does not change when a server lists in another order or spells otherwise', () => {
    const spelled = (json: string) =>
      printLock([lockServer('s', inventoryOf({ tools: [toolOf('o'), entryOf('t', json)] }), undefined)])
    const other = printLock([
      lockServer('s', inventoryOf({ tools: [entryOf('t', '{ "b":1.0, "name":"\\u0074" }'), toolOf('o')] }), undefined),
    ])
    expect(spelled('{"name":"t","b":1.0}')).toBe(other)
    expect(spelled('{"name":"t","b":1.00}')).not.toBe(other)
  })

  test('holds of the lists for apps only what is not the same for everybody', () => {
    const apps = inventoryOf({ tools: [...inventory.lists.tools, toolOf('shown to apps')] })
    expect(lockServer('s', inventory, apps).apps.map(({ name }) => name)).toEqual(['shown to apps'])
    const written = printLock([lockServer('s', inventory, apps)])
    expect(printLock(readLock(written))).toBe(written)
  })
})

const line = (part: string): number => text.split('\n').findIndex((one) => one.includes(part)) + 1

describe('a lock file that was touched is refused with its place', () => {
  test.each<[string, (lock: string) => string, Partial<LockError>]>([
    [
      'a definition edited by hand',
      (lock) => lock.replace('first\\n', 'harmless\\n'),
      { path: 'servers.files.tools.b', line: line('"b": {') + 1 },
    ],
    ['a digest edited by hand', (lock) => lock.replace(/sha256:[0-9a-f]/, 'sha256:g'), { path: 'servers.files.instructions' }],
    ['an entry under another name', (lock) => lock.replace('"p": {', '"q": {'), { path: 'servers.files.prompts.q' }],
    ['an unknown kind', (lock) => lock.replace('"prompts"', '"prompt"'), { path: 'servers.files', line: line('"prompts"') }],
    ['an unknown member', (lock) => lock.replace('"digest"', '"note": 1,\n"digest"'), { path: 'servers.files.instructions' }],
    ['an entry without a digest', (lock) => lock.replace(/"digest": "[^"]*",/, ''), { path: 'servers.files.instructions' }],
    ['a server said twice', (lock) => lock.replace('"z": {}', '"files": {}'), { path: 'servers', line: line('"z": {}') }],
    ['marks of a merge', (lock) => lock.replace('"z": {}', '<<<<<<< HEAD\n"z": {}'), { path: '', line: line('"z": {}') }],
    ['half a file', (lock) => lock.slice(0, lock.indexOf('"prompts"')), { path: '', line: line('"prompts"') }],
    ['something behind its end', (lock) => `${lock}{}`, { path: '', line: text.split('\n').length }],
    [
      'a later version',
      (lock) => lock.replace('"version": 1', '"version": 2'),
      { message: 'expected a lock file of version 1, found 2' },
    ],
    [
      'the lock file of another program',
      () => '{"lockfileVersion":3,"packages":{}}',
      { message: 'expected a lock file of version 1, found none' },
    ],
    ['a list', () => '[]', { message: 'expected a mapping' }],
    ['nothing', () => '', { line: 1 }],
  ])('%s', (_what, touch, expected) => {
    const touched = touch(text)
    expect(touched).not.toBe(text)
    const error = ((): unknown => {
      try {
        return readLock(touched)
      } catch (thrown) {
        return thrown
      }
    })()
    expect(error).toBeInstanceOf(LockError)
    expect(error).toMatchObject(expected)
  })
})

describe('differences', () => {
  const locked = (...tools: ReturnType<typeof toolOf>[]) => lockServer('s', inventoryOf({ tools }), undefined).entries
  test('are told by kind and name: new, changed, gone', () => {
    const changes = compareLocked(
      locked(toolOf('a'), toolOf('b'), toolOf('c')),
      locked(toolOf('d'), toolOf('b', { title: 'B' }), toolOf('c')),
    )
    expect(changes.map(({ name, from, to }) => [name, from !== undefined, to !== undefined])).toEqual([
      ['a', true, false],
      ['b', true, true],
      ['d', false, true],
    ])
  })
  test('of one definition are lines, with those beside them', () => {
    const [from] = locked(toolOf('a', { description: 'one\ntwo\nthree' }))
    const [to] = locked(toolOf('a', { description: 'one\n2\nthree' }))
    expect(diffDefinitions(from!, to!)).toEqual([
      '  {',
      '    "description": "one\\n\\',
      '-     two\\n\\',
      '+     2\\n\\',
      '      three",',
      '    "inputSchema": {',
      '  …',
    ])
  })
})
