/** The store of another process: each operation has the effect that it has there, and what is published there arrives here. */
import { expect, test, vi } from 'vitest'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { RelayedStore, operateStore } from '../../../src/store/relayed-store.ts'
import { StoreDown } from '../../../src/store/store.ts'

const MINUTE = 60_000

/** A store and its relay in another process; cast: the result is the one of the operation. */
const both = () => {
  const store = new MemoryStore()
  return { store, relayed: new RelayedStore((operation, args) => operateStore(store, operation, args) as Promise<never>) }
}

test('every operation is done at the other process', async () => {
  const { store, relayed } = both()
  await relayed.set('a', '1', MINUTE)
  expect([await store.get('a'), await relayed.get('a'), await relayed.getAll(['a', 'b'])]).toEqual(['1', '1', ['1', undefined]])
  await relayed.delete('a')
  expect(await store.get('a')).toBeUndefined()
  expect(await relayed.claim('c', 'one', MINUTE)).toBe('one')
  expect(await relayed.claim('c', 'two', MINUTE)).toBe('one')
  expect(await relayed.claim('c', 'two', MINUTE, 'one')).toBe('two')
  expect([await relayed.release('c', 'one'), await relayed.release('c', 'two')]).toEqual([false, true])
  await relayed.append('l', ['1', '2', '3'], 2, MINUTE)
  expect(await relayed.range('l')).toEqual(['2', '3'])
  expect([await relayed.add('n', 2, MINUTE), await relayed.add('n', 3, MINUTE)]).toEqual([2, 5])
  const received = vi.fn<(message: string) => void>()
  store.subscribe('x', received)
  await relayed.publish('x', 'hello')
  await Promise.resolve()
  expect(received.mock.calls).toEqual([['hello']])
})

test.each(['subscribe', 'toString', undefined])('%j is no operation', (operation) => {
  expect(() => operateStore(new MemoryStore(), operation, [])).toThrow(
    new StoreDown(`the store has no operation ${String(operation)}`),
  )
})

test('what was published at the other process reaches the subscribers of its channel, until they or the store end', async () => {
  const { relayed } = both()
  const [first, second] = [vi.fn<(message: string) => void>(), vi.fn<(message: string) => void>()]
  const end = relayed.subscribe('a', first)
  relayed.subscribe('a', second)
  relayed.published('a', 'one')
  relayed.published('b', 'elsewhere')
  end()
  relayed.published('a', 'two')
  await relayed[Symbol.asyncDispose]()
  relayed.published('a', 'three')
  expect([first.mock.calls, second.mock.calls]).toEqual([[['one']], [['one'], ['two']]])
})
