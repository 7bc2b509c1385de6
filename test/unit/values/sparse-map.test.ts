import { expect, test } from 'vitest'
import { SparseMap } from '../../../src/values/sparse-map.ts'

test('a sparse map answers as a Map does, before, with and after entries', () => {
  const sparse = new SparseMap<string, number>()
  const map = new Map<string, number>()
  const compare = (): void => {
    expect([...sparse]).toEqual([...map])
    expect([...sparse.keys()]).toEqual([...map.keys()])
    expect(sparse.size).toBe(map.size)
    for (const key of ['a', 'b']) expect([sparse.has(key), sparse.get(key)]).toEqual([map.has(key), map.get(key)])
  }
  compare()
  for (const [key, value] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
  ] as const) {
    sparse.set(key, value)
    map.set(key, value)
    compare()
  }
  for (const key of ['a', 'x', 'a', 'b', 'b']) {
    expect(sparse.delete(key)).toBe(map.delete(key))
    compare()
  }
  sparse.set('b', 4)
  sparse.clear()
  map.clear()
  compare()
})

test('entries may be removed and added while a sparse map is iterated', () => {
  const sparse = new SparseMap<string, number>()
  for (const key of ['a', 'b', 'c']) sparse.set(key, 1)
  const seen: string[] = []
  for (const [key] of sparse) {
    seen.push(key)
    sparse.delete(key)
  }
  expect(seen).toEqual(['a', 'b', 'c'])
  expect(sparse.size).toBe(0)
  sparse.set('d', 1)
  expect([...sparse.keys()]).toEqual(['d'])
})
