/** What is known of servers from one run to the next, and from one replica to another. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import type { Memory } from '../../../src/downstream/environment.ts'
import { inMemory, openMemory } from '../../../src/downstream/lists/store.ts'
import type { SharedLists } from '../../../src/downstream/lists/shared-lists.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import type { Verdict } from '../../../src/era/server/dial.ts'
import { inventoryOf, toolOf } from '../catalog/fixtures.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

let folder: string
const warned: string[] = []
const ignore = () => undefined
const log = { debug: ignore, info: ignore, warn: (_: object, text: string) => void warned.push(text), error: ignore }
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-memory-'))
  warned.length = 0
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const server = (more: object = {}): ServerOptions =>
  // Cast: these are the options that a record depends on.
  ({
    key: 'a',
    launch: undefined,
    url: new URL('https://a.test/'),
    transport: 'http',
    era: 'auto',
    headers: {},
    ...more,
  }) as Partial<ServerOptions> as ServerOptions
const INVENTORY: Inventory = inventoryOf({ tools: [toolOf('t')] })
const OTHER: Inventory = inventoryOf({ tools: [toolOf('u')] })
const open = (): Memory => openMemory(folder, log)
const toolsOf = (inventory: Inventory | undefined) => inventory?.lists.tools.map(({ original }) => original)
const recordOf = () => JSON.parse(readFileSync(join(folder, 'server-a.json'), 'utf8')) as Record<string, unknown>
const write = (record: unknown): void =>
  writeFileSync(join(folder, 'server-a.json'), typeof record === 'string' ? record : JSON.stringify(record))

describe('lists', () => {
  test('are known to the next run, with no lifetime, in a file of its owner alone', () => {
    open().keepInventory(server(), INVENTORY)
    open().keepLegacyInventory(server(), OTHER)
    const [memory, known] = [open(), open().inventory(server())]
    expect([toolsOf(known), toolsOf(memory.inventory(server(), 'legacy'))]).toEqual([['t'], ['u']])
    expect(Object.values(known?.freshness ?? {}).map(({ receivedAtMs, ttlMs }) => [receivedAtMs, ttlMs])).toEqual(
      Array.from({ length: 4 }, () => [0, 0]),
    )
    expect(readdirSync(folder)).toEqual(['server-a.json'])
    expect(statSync(join(folder, 'server-a.json')).mode & 0o777).toBe(0o600)
    memory.keepLegacyInventory(server(), undefined)
    expect([toolsOf(open().inventory(server())), open().inventory(server(), 'legacy')]).toEqual([['t'], undefined])
  })

  test.each([
    ['url', { url: new URL('https://b.test/') }],
    ['launch', { launch: { command: 'b' } }],
    ['era', { era: 'legacy' }],
    ['transport', { transport: 'sse' }],
    ['headers', { headers: { a: 'b' } }],
    ['credential', { credential: { kind: 'user' } }],
    ['key', { key: 'b' }],
  ])('are those of another server where its %s is another', (_, more) => {
    open().keepInventory(server(), INVENTORY)
    expect(open().inventory(server(more))).toBeUndefined()
    // What was configured counts, not what became of it.
    expect(toolsOf(open().inventory(server({ ...more, key: 'a', configured: server() })))).toEqual(['t'])
  })

  test('are those of one credential', () => {
    const [one, other] = [server({ credential: { kind: 'a' } }), server({ credential: { kind: 'b' } })]
    open().keepInventory(one, INVENTORY)
    expect([toolsOf(open().inventory(one)), open().inventory(other)]).toEqual([['t'], undefined])
  })

  test('are not served after a day', () => {
    open().keepInventory(server(), INVENTORY)
    vi.setSystemTime(Date.now() + DAY - 1)
    expect(toolsOf(open().inventory(server()))).toEqual(['t'])
    vi.setSystemTime(Date.now() + 1)
    expect(open().inventory(server())).toBeUndefined()
  })

  test('that have not changed are written once per hour, so that their day begins again', () => {
    const memory = open()
    memory.confirmInventory(server(), INVENTORY)
    const first = Number(recordOf()['savedAt'])
    vi.setSystemTime(first + HOUR - 1)
    memory.confirmInventory(server(), OTHER)
    expect(recordOf()['savedAt']).toBe(first)
    vi.setSystemTime(first + HOUR)
    memory.confirmInventory(server(), OTHER)
    expect([recordOf()['savedAt'], toolsOf(open().inventory(server()))]).toEqual([first + HOUR, ['t']])
  })
})

test.each<[string, (record: Record<string, unknown>) => unknown]>([
  ['is no JSON', () => '{"launch'],
  ['names no launch', (record) => ({ ...record, launch: 7 })],
  ['lacks a list', (record) => ({ ...record, inventory: { ...(record['inventory'] as object), lists: { tools: [] } } })],
  ['lacks a legacy list', (record) => ({ ...record, legacyInventory: { lists: {} } })],
])('a file that %s is set aside, once', (_, broken) => {
  open().keepInventory(server(), INVENTORY)
  write(broken(recordOf()))
  expect(open().inventory(server())).toBeUndefined()
  expect(open().inventory(server())).toBeUndefined()
  expect([readdirSync(folder), warned]).toEqual([['server-a.json.broken'], ['a broken state file is set aside']])
})

describe('where nothing can be written', () => {
  test('lists are kept in memory, which is said once', () => {
    const memory = open()
    rmSync(folder, { recursive: true })
    for (const inventory of [OTHER, INVENTORY]) memory.keepInventory(server(), inventory)
    expect(toolsOf(memory.inventory(server()))).toEqual(['t'])
    expect(warned).toEqual(['the state folder cannot be written; going on in memory'])
  })

  test('as there is a file in place of the folder', () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const memory = openMemory(file, log)
    memory.keepInventory(server(), INVENTORY)
    expect([toolsOf(memory.inventory(server())), warned]).toEqual([
      ['t'],
      ['the state folder cannot be made (state.dir); going on in memory'],
    ])
  })

  test('as there is to be no folder', () => {
    const memory = openMemory(undefined, log)
    memory.keepInventory(server(), INVENTORY)
    expect([toolsOf(memory.inventory(server())), warned, readdirSync(folder)]).toEqual([['t'], [], []])
  })
})

describe('a verdict', () => {
  const MODERN: Verdict = { era: 'modern', transport: 'http' }
  const LEGACY: Verdict = { era: 'legacy', transport: 'http' }

  test.each([
    [MODERN, 365 * DAY, MODERN],
    [LEGACY, DAY, LEGACY],
    [LEGACY, DAY + 1, undefined],
  ])('%j is after %i ms: %j', (verdict, ms, then) => {
    open().keepVerdict(server(), verdict)
    vi.setSystemTime(Date.now() + ms)
    expect(open().verdict(server())).toEqual(then)
  })

  test('is written where it is another one, or has ended', () => {
    const memory = open()
    expect(memory.verdict(server())).toBeUndefined()
    memory.keepVerdict(server(), LEGACY)
    const first = Number(recordOf()['verdictAt'])
    vi.setSystemTime(first + HOUR)
    memory.keepVerdict(server(), { ...LEGACY })
    expect(recordOf()['verdictAt']).toBe(first)
    memory.keepVerdict(server(), { ...LEGACY, takesInitialize: true })
    expect(recordOf()['verdictAt']).toBe(first + HOUR)
    vi.setSystemTime(first + HOUR + DAY + 1)
    memory.keepVerdict(server(), { ...LEGACY, takesInitialize: true })
    expect(recordOf()['verdictAt']).toBe(Date.now())
    memory.keepVerdict(server(), undefined)
    expect([open().verdict(server()), recordOf()['verdict']]).toEqual([undefined, undefined])
  })
})

test('a server has failed until it was read, and not any more after that', () => {
  const memory = open()
  expect(memory.hasFailed(server())).toBe(false)
  memory.keepFailed(server())
  expect([memory.hasFailed(server()), open().hasFailed(server())]).toEqual([true, true])
  const savedAt = recordOf()['savedAt']
  vi.setSystemTime(Date.now() + 1)
  memory.keepFailed(server())
  expect(recordOf()['savedAt']).toBe(savedAt)
  memory.keepInventory(server(), INVENTORY)
  memory.keepFailed(server())
  expect(open().hasFailed(server())).toBe(false)
  const other = openMemory(undefined, log)
  other.keepFailed(server())
  other.confirmInventory(server(), INVENTORY)
  expect(other.hasFailed(server())).toBe(false)
})

test('pins are kept for each kind of hosts, and written where they have changed', () => {
  const memory = open()
  const [pins, apps, legacy] = ['p', 'q', 'r'].map((digest) => ({ t: { digest } }))
  expect(memory.pins(server())).toEqual({})
  memory.keepPins(server(), {})
  expect(readdirSync(folder)).toEqual([])
  memory.keepPins(server(), pins ?? {})
  memory.keepPins(server(), apps ?? {}, 'apps')
  memory.keepPins(server(), legacy ?? {}, 'legacy')
  const next = open()
  expect([next.pins(server()), next.pins(server(), 'apps'), next.pins(server(), 'legacy')]).toEqual([pins, apps, legacy])
  const savedAt = recordOf()['savedAt']
  vi.setSystemTime(Date.now() + 1)
  memory.keepPins(server(), { ...pins })
  expect(recordOf()['savedAt']).toBe(savedAt)
})

describe('with other replicas', () => {
  /** A shared store that has lists of `of` once they were asked for. */
  const sharedWith = (value?: object) => {
    const [asked, kept]: [(readonly string[])[], [object, boolean][]] = [[], []]
    const shared: Pick<SharedLists, 'learn' | 'find' | 'keep'> = {
      learn: (definitions) => (asked.push(definitions), Promise.resolve()),
      find: () => value,
      keep: (_, lists, isSame) => void kept.push([lists, isSame]),
    }
    // Cast: a memory uses no more of them.
    return { asked, kept, memory: openMemory(folder, log, shared as SharedLists) }
  }

  test('lists are shared when they were read, and said to be the same where they are', () => {
    const { kept, memory } = sharedWith()
    memory.keepLegacyInventory(server(), OTHER)
    memory.keepInventory(server(), INVENTORY)
    memory.confirmInventory(server(), INVENTORY)
    memory.keepLegacyInventory(server(), INVENTORY)
    expect(kept.map(([lists, isSame]) => [Object.keys(lists), isSame])).toEqual([
      [['savedAt', 'inventory', 'legacyInventory'], false],
      [['savedAt', 'inventory', 'legacyInventory'], true],
      [['savedAt', 'inventory', 'legacyInventory'], false],
    ])
  })

  test('those that are not known here are asked for', async () => {
    const { asked, memory } = sharedWith()
    memory.keepInventory(server(), INVENTORY)
    await memory.learn([server(), server({ key: 'b' })])
    expect(asked.map((definitions) => definitions.map((text) => (JSON.parse(text) as string[])[0]))).toEqual([['b']])
    vi.setSystemTime(Date.now() + DAY)
    await memory.learn([server()])
    expect(asked[1]).toHaveLength(1)
  })

  test('those of another replica are served for a day, where there are none here', () => {
    const { kept, memory } = sharedWith()
    memory.keepInventory(server(), INVENTORY)
    const [lists] = kept[0] ?? []
    expect(toolsOf(sharedWith(lists).memory.inventory(server({ key: 'b' })))).toEqual(['t'])
    expect(sharedWith({ ...lists, inventory: { lists: {} } }).memory.inventory(server({ key: 'b' }))).toBeUndefined()
    expect(sharedWith({ ...lists, savedAt: undefined }).memory.inventory(server({ key: 'b' }))).toBeUndefined()
    expect(sharedWith({}).memory.inventory(server({ key: 'b' }))).toBeUndefined()
    vi.setSystemTime(Date.now() + DAY)
    expect(sharedWith(lists).memory.inventory(server({ key: 'b' }))).toBeUndefined()
  })
})

test('of the connection of one principal the verdict alone is kept', () => {
  const memory = inMemory(open())
  memory.keepInventory(server(), INVENTORY)
  memory.keepLegacyInventory(server(), INVENTORY)
  memory.confirmInventory(server(), INVENTORY)
  memory.keepFailed(server())
  memory.keepPins(server(), { t: { digest: 'd' } })
  expect(readdirSync(folder)).toEqual([])
  const all = open()
  all.keepFailed(server())
  all.keepInventory(server(), INVENTORY)
  all.keepPins(server(), { t: { digest: 'd' } })
  expect([memory.inventory(server()), memory.hasFailed(server()), memory.pins(server())]).toEqual([undefined, false, {}])
  memory.keepVerdict(server(), { era: 'modern', transport: 'http' })
  expect(memory.verdict(server())).toEqual({ era: 'modern', transport: 'http' })
})
