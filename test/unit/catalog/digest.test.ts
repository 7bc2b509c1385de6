import { describe, expect, test } from 'vitest'
import { digestBytes, digestEntry, digestInventory } from '../../../src/catalog/digest.ts'
import { inventoryOf, toolOf } from './fixtures.ts'

const digest = (json: string): string => digestEntry(Buffer.from(json))

describe('digests', () => {
  test('spelling does not count', () => expect(digest('{"a":1,"b":["\\u0041"]}')).toBe(digest(' { "b" : ["A"],\n"a":1 } ')))

  test.each([
    ['{"a":1}', '{"a":1.0}'],
    ['{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
  ])('B019 %s and %s differ', (one, two) => expect(digest(one)).not.toBe(digest(two)))

  test('the order of a list counts for modern servers only', () => {
    const [x, y] = [toolOf('x'), toolOf('y')]
    const of = (revision: '2025-11-25' | '2026-07-28', tools: (typeof x)[]): string =>
      digestInventory(inventoryOf({ tools }, revision))
    expect(of('2025-11-25', [x, y])).toBe(of('2025-11-25', [y, x]))
    expect(of('2026-07-28', [x, y])).not.toBe(of('2026-07-28', [y, x]))
    expect(of('2025-11-25', [x])).not.toBe(of('2025-11-25', [x, y]))
  })

  test('other instructions change the inventory', () => {
    const of = (instructions?: string): string => digestInventory(inventoryOf({}, '2026-07-28', instructions))
    expect(new Set([of(), of('a'), of('b'), of('a')]).size).toBe(3)
  })

  test('of buffers, their order and where each ends count', () => {
    const of = (...texts: string[]): string => digestBytes(texts.map((text) => Buffer.from(text)))
    expect(of('a', 'b')).toBe(of('a', 'b'))
    expect(new Set([of(), of(''), of('ab'), of('a', 'b'), of('b', 'a'), of('ab', '')]).size).toBe(6)
  })

  test('an entry that moves to another list changes the inventory', () => {
    expect(digestInventory(inventoryOf({ tools: [toolOf('x')] }))).not.toBe(
      digestInventory(inventoryOf({ prompts: [toolOf('x')] })),
    )
  })
})
