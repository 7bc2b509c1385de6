/** `lock` and `strict` as configurations say them, and the lock file as a part of the configuration. */
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { printLock } from '../../../src/catalog/lock/lock-text.ts'
import { lockServer } from '../../../src/catalog/lock/lock.ts'
import { inventoryOf, toolOf } from '../catalog/fixtures.ts'
import { workspace, yaml } from './workspace.ts'

const SERVERS = 'servers:\n  a: { command: a }\n  b: { command: b }\n'
const LOCK = printLock([lockServer('a', inventoryOf({ tools: [toolOf('x')] }), undefined)])

describe('lock', () => {
  test('reaches every server, also those that the file does not name, and is watched', async () => {
    await using files = await workspace({
      'trunkline.yaml': `lock: { file: sub/a.lock, covers: [tools] }\n${SERVERS}`,
      'sub/a.lock': LOCK,
    })
    const { servers, files: watched, lock } = await files.load()
    expect(
      servers.map(({ key, locked }) => [key, locked?.file, locked?.covers, locked?.entries.map(({ name }) => name)]),
    ).toEqual([
      ['a', 'sub/a.lock', ['tools'], ['x']],
      ['b', 'sub/a.lock', ['tools'], []],
    ])
    expect(watched).toContain(files.path('sub/a.lock'))
    expect(lock?.file).toBe(files.path('sub/a.lock'))
  })
  test('may begin with a byte order mark, as some editors write it; other encodings are refused', async () => {
    await using files = await workspace({
      'trunkline.yaml': `lock: { file: a.lock }\n${SERVERS}`,
      'a.lock': `\uFEFF${LOCK.replaceAll('\n', '\r\n')}`,
    })
    expect((await files.load()).servers[0]!.locked?.entries.map(({ name }) => name)).toEqual(['x'])
    await writeFile(files.path('a.lock'), Buffer.from(`\uFEFF${LOCK}`, 'utf16le'))
    expect(await files.errors()).toEqual([expect.stringMatching(/^a\.lock:1:1: is not UTF-8; restore it/)])
  })
  test('counts from the folder of the file that says it', async () => {
    await using files = await workspace({
      'trunkline.yaml': 'include: [more/lock.yaml]\nservers:\n  a: { command: a }\n',
      'more/lock.yaml': 'lock: { file: a.lock }\n',
      'more/a.lock': LOCK,
    })
    expect((await files.load()).servers[0]!.locked?.entries).toHaveLength(1)
  })
  test('that is not there yet locks nothing, which is told', async () => {
    await using files = await yaml(`lock: { file: a.lock }\n${SERVERS}`)
    const { servers, warnings } = await files.load()
    expect(servers[0]!.locked).toBeUndefined()
    expect(warnings).toContain('a.lock does not exist yet, so nothing is locked; write it: trunkline lock')
  })
  test('on_change: the server wins over defaults, and these over what is said at the top', async () => {
    await using files = await yaml(
      'lock: { on_change: hold }\nservers:\n  a: { command: a }\n  b: { command: b, lock: { on_change: quarantine } }\n',
    )
    expect((await files.load()).servers.map(({ onChange }) => onChange)).toEqual(['hold', 'quarantine'])
    await using both = await yaml(`lock: { on_change: hold }\ndefaults: { lock: { on_change: allow } }\n${SERVERS}`)
    expect((await both.load()).servers.map(({ onChange }) => onChange)).toEqual(['allow', 'allow'])
  })
})

describe('strict', () => {
  test('blocks what is only told of by default', async () => {
    await using files = await yaml(`strict: true\n${SERVERS}`)
    const { servers, gateway } = await files.load()
    expect(servers.map(({ hidden, onChange }) => [hidden, onChange])).toEqual([
      ['drop', 'quarantine'],
      ['drop', 'quarantine'],
    ])
    expect(gateway.collision).toBe('error')
    await using lax = await yaml(SERVERS)
    const loose = await lax.load()
    expect([loose.servers[0]!.hidden, loose.servers[0]!.onChange, loose.gateway.collision]).toEqual(['warn', 'warn', 'warn'])
  })
  test('lets another way of blocking stand', async () => {
    await using files = await yaml(`strict: true\ndefaults: { hidden_characters: strip, lock: { on_change: hold } }\n${SERVERS}`)
    expect((await files.load()).servers[0]).toMatchObject({ hidden: 'strip', onChange: 'hold' })
  })
  test('refuses every word that contradicts it, with its place', async () => {
    await using files = await yaml(`strict: true
lock: { on_change: allow }
naming: { collision: warn }
defaults: { hidden_characters: warn }
servers:
  a: { command: a, lock: { on_change: warn } }
  b: { command: b, enabled: false, lock: { on_change: warn } }
`)
    expect(await files.errors()).toEqual([
      'trunkline.yaml:2:9 lock.on_change: "allow" contradicts strict: true; write hold or quarantine, or remove it',
      'trunkline.yaml:3:11 naming.collision: "warn" contradicts strict: true; write error, or remove it',
      'trunkline.yaml:4:13 defaults.hidden_characters: "warn" contradicts strict: true; write strip or drop, or remove it',
      'trunkline.yaml:6:28 servers.a.lock.on_change: "warn" contradicts strict: true; write hold or quarantine, or remove it',
    ])
  })
})
