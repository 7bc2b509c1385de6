/** The lock file as a text: written in one spelling, read back without loss, refused with a place when it was touched. */
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { changedMembers, diffDefinitions } from '../../../src/catalog/lock/lock-diff.ts'
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

  test('keeps lines of texts that look like comments or like marks of a merge, and the escapes of their ends', () => {
    const offered = inventoryOf({}, '2026-07-28', 'a\n# b\n<<<<<<< c\n\\\nd')
    const written = printLock([lockServer('s', offered, undefined)])
    expect(readLock(written)).toEqual([lockServer('s', offered, undefined)])
    expect(readLock(written.replace('{', '{\n  # A comment'))).toEqual([lockServer('s', offered, undefined)])
  })

  test('without servers is one that locks nothing', () => {
    expect(readLock('{"version":1}')).toEqual([])
    expect(readLock(printLock([]))).toEqual([])
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
  test.each<[string, (lock: string) => string, message: string, path: string, line: number, column: number]>([
    [
      'a definition edited by hand',
      (lock) => lock.replace('first\\n', 'harmless\\n'),
      'its definition does not have its digest: one of them was edited',
      'servers.files.tools.b',
      line('"b": {') + 1,
      21,
    ],
    [
      'a digest edited by hand',
      (lock) => lock.replace(/sha256:[0-9a-f]/, 'sha256:g'),
      'its digest is not "sha256:" and 64 digits',
      'servers.files.instructions',
      line('"instructions"') + 1,
      19,
    ],
    [
      'an entry under another name',
      (lock) => lock.replace('"p": {', '"q": {'),
      'its definition has another name',
      'servers.files.prompts.q',
      line('"p": {') + 2,
      25,
    ],
    [
      'a prompt among the resources',
      (lock) => lock.replace('"prompts"', '"resources"').replace('"resources": {\n        "x', '"prompts": {\n        "x'),
      'its definition has another name',
      'servers.files.resources.p',
      line('"p": {') + 2,
      25,
    ],
    [
      'an unknown kind',
      (lock) => lock.replace('"prompts"', '"prompt"'),
      'unknown key "prompt"',
      'servers.files',
      line('"prompts"'),
      7,
    ],
    [
      'an unknown member',
      (lock) => lock.replace('"digest"', '"note": 1,\n"digest"'),
      'unknown key "note"',
      'servers.files.instructions',
      line('"instructions"') + 1,
      9,
    ],
    [
      'an unknown member of all',
      (lock) => lock.replace('"version": 1', '"version": 1, "more": 1'),
      'unknown key "more"',
      '',
      4,
      17,
    ],
    [
      'apps within apps',
      (lock) => lock.replace('"z": {}', '"z": { "apps": { "apps": {} } }'),
      'unknown key "apps"',
      'servers.z.apps',
      line('"z": {}'),
      22,
    ],
    [
      'an entry without a digest',
      (lock) => lock.replace(/"digest": "[^"]*",/, ''),
      'has no digest',
      'servers.files.instructions',
      line('"instructions"'),
      23,
    ],
    [
      'a server said twice',
      (lock) => lock.replace('"z": {}', '"files": {}'),
      '"files" stands here twice',
      'servers',
      line('"z": {}'),
      5,
    ],
    [
      'a server that is a list',
      (lock) => lock.replace('"z": {}', '"z": []'),
      'expected a mapping',
      'servers.z',
      line('"z": {}'),
      10,
    ],
    [
      'the first mark of a merge',
      (lock) => lock.replace('    "z": {}', '<<<<<<< HEAD\n"z": {}'),
      'holds marks of a merge that is not resolved',
      '',
      line('"z": {}'),
      1,
    ],
    [
      'a mark that was left of a merge',
      (lock) => lock.replace('    "z": {}', '    "z": {}\n======='),
      'holds marks of a merge that is not resolved',
      '',
      line('"z": {}') + 1,
      1,
    ],
    [
      'half a file',
      (lock) => lock.slice(0, lock.indexOf('"prompts"')),
      expect.stringMatching(/^is no lock file: expected a key at byte \d+$/),
      '',
      line('"prompts"'),
      7,
    ],
    [
      'something behind its end',
      (lock) => `${lock}{}`,
      'is no lock file: something stands behind its end',
      '',
      text.split('\n').length,
      1,
    ],
    [
      'a later version',
      (lock) => lock.replace('"version": 1', '"version": 2'),
      'expected a lock file of version 1, found 2',
      '',
      4,
      14,
    ],
    [
      'the lock file of another program',
      () => '{"lockfileVersion":3,"packages":{}}',
      'expected a lock file of version 1, found none',
      '',
      1,
      1,
    ],
    ['a list', () => '[]', 'expected a mapping', '', 1, 1],
    ['nothing', () => '', 'is no lock file: unexpected end at byte 0', '', 1, 1],
  ])('%s', (_what, touch, message, path, atLine, column) => {
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
    expect(error).toMatchObject({ name: 'LockError', message, path, line: atLine, column })
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
  test('of one definition are named by its members, those of instructions by `text`', () => {
    const changed = (from: object | string, to: object | string): readonly string[] =>
      changedMembers({ definition: JSON.stringify(from) }, { definition: JSON.stringify(to) })
    expect(changed({ name: 'a', title: 'A', old: 1 }, { name: 'a', title: 'B', more: [1] })).toEqual(['title', 'old', 'more'])
    expect(changed('Use a.', 'Use b.')).toEqual(['text'])
  })
  test('of a server for apps are those that only these see, in the order of a lock file', () => {
    const offered = inventoryOf({ tools: [toolOf('x')], prompts: [promptOf('x')] }, '2026-07-28', 'Text.')
    const forApps = inventoryOf(
      { tools: [toolOf('z'), toolOf('x'), toolOf('y')], prompts: [promptOf('x')] },
      '2026-07-28',
      'Other.',
    )
    const { entries, apps } = lockServer('s', offered, forApps)
    const told = (list: typeof apps): string[] => list.map(({ kind, name }) => `${kind} ${name}`)
    expect([told(entries), told(apps)]).toEqual([
      ['instructions ', 'tools x', 'prompts x'],
      ['instructions ', 'tools y', 'tools z'],
    ])
  })
})
