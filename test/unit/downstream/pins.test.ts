/** Definitions as first seen or as locked, and what waits for approval (T-17). */
import { describe, expect, test } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { lockedOf } from '../../../src/catalog/lock/lock.ts'
import type { OnChange } from '../../../src/catalog/lock/lock.ts'
import { Pins } from '../../../src/downstream/lists/pins.ts'
import type { PinPolicy } from '../../../src/downstream/lists/pins.ts'
import { inventoryOf, promptOf, toolOf } from '../catalog/fixtures.ts'

const offer = (...titles: string[]): Inventory => inventoryOf({ tools: titles.map((title, at) => toolOf(`t${at}`, { title })) })
const [FIRST, SECOND, THIRD] = [offer('a', 'b'), offer('a', 'B'), offer('a', 'BB')]
const firstSeen = (onChange: OnChange): PinPolicy => ({ onChange, locked: undefined })
const titles = ({ lists }: Inventory): unknown[] =>
  lists.tools.map(({ raw }) => (JSON.parse(raw.toString()) as { title: string }).title)

/** Reads these lists one after the other; what was told of changes while doing so. */
const read = (pins: Pins, policy: PinPolicy, ...offered: Inventory[]): { served: Inventory; changed: string[] } => {
  const changed: string[] = []
  let served = offered[0]!
  for (const [at, one] of offered.entries()) served = pins.vet(one, offered[at - 1], policy, ({ name }) => changed.push(name))
  return { served, changed }
}

describe('T-17 a tool that is not as it was first seen', () => {
  test('is held with its old definition and told once, until it is approved', () => {
    const pins = new Pins()
    const policy = firstSeen('hold')
    const { served, changed } = read(pins, policy, FIRST, SECOND, SECOND)
    expect([titles(served), changed]).toEqual([['a', 'b'], ['t1']])
    expect(pins.changes(SECOND, policy).map(({ name, from, to }) => [name, from?.definition !== '', to !== undefined])).toEqual([
      ['t1', true, true],
    ])
    // The held definition stays the same object, so that hosts see no change.
    const again = pins.vet(SECOND, SECOND, policy)
    expect(again.lists.tools[1]).toBe(served.lists.tools[1])
    expect([pins.approve('other', policy), pins.approve('t1', policy), pins.approve(undefined, policy)]).toEqual([[], ['t1'], []])
    expect([titles(pins.vet(SECOND, SECOND, policy)), pins.changes(SECOND, policy)]).toEqual([['a', 'B'], []])
  })

  test('is told again where it changes once more, and no longer waits where it is as before', () => {
    const pins = new Pins()
    const policy = firstSeen('quarantine')
    expect(read(pins, policy, FIRST, SECOND, THIRD, THIRD)).toMatchObject({ changed: ['t1', 't1'] })
    expect(titles(pins.vet(THIRD, THIRD, policy))).toEqual(['a'])
    expect(titles(pins.vet(FIRST, THIRD, policy))).toEqual(['a', 'b'])
    expect([pins.changes(FIRST, policy), pins.approve(undefined, policy)]).toEqual([[], []])
  })

  test('is served where it is only warned of, and the finding stays while the tool is there', () => {
    const pins = new Pins()
    const policy = firstSeen('warn')
    const notes = ({ findings }: Inventory): string[] => findings.map(({ name, note }) => `${name}: ${note}`)
    const { served, changed } = read(pins, policy, FIRST, SECOND, SECOND)
    expect([titles(served), changed]).toEqual([['a', 'B'], ['t1']])
    expect(notes(served)).toEqual(['t1: its definition changed; the new one is served'])
    expect(served.digest).not.toBe(SECOND.digest)
    expect(notes(pins.vet(offer('a'), SECOND, policy))).toEqual([])
    expect(notes(pins.vet(THIRD, SECOND, policy))).toHaveLength(1)
    expect(pins.changes(THIRD, policy).map(({ name }) => name)).toEqual(['t1'])
  })

  test('is pinned anew without a word where every change is allowed', () => {
    const pins = new Pins()
    expect(read(pins, firstSeen('allow'), FIRST, SECOND)).toEqual({ served: SECOND, changed: [] })
    expect(read(pins, firstSeen('hold'), SECOND).changed).toEqual([])
  })

  test('is known after a restart, though without its text it cannot be served', () => {
    const before = new Pins()
    read(before, firstSeen('hold'), FIRST)
    const pins = new Pins(before.all)
    const { served, changed } = read(pins, firstSeen('hold'), SECOND)
    expect([titles(served), changed, served.leftOut.map(({ name }) => name)]).toEqual([['a'], ['t1'], ['t1']])
    expect(pins.all).toEqual(before.all)
    // The lists of the earlier run have the text.
    const others = new Pins(before.all)
    expect(titles(others.vet(SECOND, FIRST, firstSeen('hold')))).toEqual(['a', 'b'])
    const wrong = new Pins(before.all)
    expect(titles(wrong.vet(SECOND, THIRD, firstSeen('hold')))).toEqual(['a'])
  })

  test('is remembered for a while after it has gone, but a server that always offers other names does not fill the memory', () => {
    const pins = new Pins()
    const policy = firstSeen('warn')
    const named = (from: number, title = 'a'): Inventory =>
      inventoryOf({ tools: [toolOf('always'), ...Array.from({ length: 1_000 }, (_, at) => toolOf(`t${from + at}`, { title }))] })
    const offered = Array.from({ length: 8 }, (_, at) => named(1_000 * at))
    expect(read(pins, policy, ...offered).changed).toEqual([])
    expect(Object.keys(pins.all).length).toBeLessThan(6_000)
    expect(pins.all).toHaveProperty('always')
    // Of the reading before.
    expect(read(pins, policy, named(6_000, 'b')).changed).toHaveLength(1_000)
  })

  test('is looked at beforehand without being pinned, and prompts are not pinned', () => {
    const pins = new Pins()
    expect(pins.preview(FIRST, firstSeen('hold')).deviations).toEqual([])
    expect(pins.all).toEqual({})
    read(pins, firstSeen('hold'), inventoryOf({ prompts: [promptOf('p')] }))
    expect(pins.all).toEqual({})
  })
})

describe('T-17 a lock file', () => {
  const locked = {
    file: 'a.lock',
    covers: ['tools'] as const,
    entries: lockedOf(FIRST),
    apps: lockedOf(offer('a', 'b', 'for apps')),
  }
  const policy: PinPolicy = { onChange: 'quarantine', locked }

  test('decides alone: nothing is pinned or approved, and what is lacking is a change', () => {
    const pins = new Pins()
    const { served, changed } = read(pins, policy, SECOND, SECOND)
    expect([titles(served), changed]).toEqual([['a'], ['t1']])
    expect([pins.approve(undefined, policy), pins.all]).toEqual([[], {}])
    expect(pins.changes(offer('a'), policy).map(({ name, to }) => [name, to])).toEqual([['t1', undefined]])
    const withPrompt = inventoryOf({ tools: [...FIRST.lists.tools], prompts: [promptOf('p')] })
    expect(pins.changes(withPrompt, policy)).toEqual([])
  })

  test('has definitions of its own for apps, and counts as it is now', () => {
    const forApps = offer('a', 'b', 'for apps')
    expect(titles(new Pins({}, 'apps').vet(forApps, undefined, policy))).toEqual(['a', 'b', 'for apps'])
    const pins = new Pins()
    expect(titles(pins.vet(forApps, undefined, policy))).toEqual(['a', 'b'])
    const later: PinPolicy = { onChange: 'quarantine', locked: { ...locked, entries: lockedOf(forApps) } }
    expect(titles(pins.vet(forApps, undefined, later))).toEqual(['a', 'b', 'for apps'])
  })
})
