import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { IdTable } from '../../../src/wire/message/id-table.ts'

test('it holds exactly what a Map would hold, whatever is put in and taken out', () => {
  const id = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 2 ** 40 }))
  const step = fc.record({ id, isDeletion: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const table = new IdTable<string>()
      const map = new Map<number, string>()
      for (const [at, { id, isDeletion }] of steps.entries()) {
        if (isDeletion) {
          expect(table.delete(id)).toBe(map.get(id))
          map.delete(id)
        } else {
          table.set(id, `${at}`)
          map.set(id, `${at}`)
        }
        expect(table.size).toBe(map.size)
      }
      for (const { id } of steps) expect(table.get(id)).toBe(map.get(id))
      expect(table.values().toSorted()).toEqual([...map.values()].toSorted())
    }),
  )
})

test('a cleared table is empty and takes new things', () => {
  const table = new IdTable<number>()
  for (let id = 0; id < 100; id++) table.set(id, id)
  table.clear()
  expect([table.size, table.values(), table.get(7)]).toEqual([0, [], undefined])
  table.set(7, 70)
  expect(table.get(7)).toBe(70)
})

test('tables without an entry share nothing that an entry changes', () => {
  const [one, other] = [new IdTable<string>(), new IdTable<string>()]
  one.set(0, 'a')
  expect([other.get(0), other.size, other.delete(0), other.values()]).toEqual([undefined, 0, undefined, []])
  one.clear()
  other.set(0, 'b')
  expect([one.get(0), one.size, one.delete(0), one.values()]).toEqual([undefined, 0, undefined, []])
  one.set(4, 'c')
  expect([one.values(), other.values(), new IdTable().values()]).toEqual([['c'], ['b'], []])
})
