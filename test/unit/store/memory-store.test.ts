/** The store of one process: what ends, what goes first where there is too much, and what stays of neither. */
import { expect, test, vi } from 'vitest'
import { MemoryStore } from '../../../src/store/memory-store.ts'

const MINUTE = 60_000

/** A store with a clock that stands still. */
const timed = (more: ConstructorParameters<typeof MemoryStore>[0] = {}) => {
  const clock = { ms: 1_000 }
  return { clock, store: new MemoryStore({ now: () => clock.ms, ...more }) }
}

test('a value ends at its time, not before', async () => {
  const { clock, store } = timed()
  await store.set('a', '1', 100)
  clock.ms += 99
  expect(await store.get('a')).toBe('1')
  clock.ms += 1
  expect(await store.get('a')).toBeUndefined()
})

test('a value that is set again has its new end', async () => {
  const { clock, store } = timed()
  await store.set('a', '1', 100)
  clock.ms += 50
  await store.set('a', '2', 100)
  clock.ms += 99
  expect(await store.get('a')).toBe('2')
})

test('a list ends, and one that is added to has its new end', async () => {
  const { clock, store } = timed()
  await store.append('a', ['1'], 9, 100)
  clock.ms += 99
  await store.append('a', ['2'], 9, 100)
  clock.ms += 99
  expect(await store.range('a')).toEqual(['1', '2'])
  clock.ms += 1
  expect(await store.range('a')).toEqual([])
  await store.append('a', ['3'], 9, 100)
  expect(await store.range('a')).toEqual(['3'])
})

test('what a reader gets of a list is its own', async () => {
  const { store } = timed()
  await store.append('a', ['1'], 9, MINUTE)
  ;((await store.range('a')) as string[]).push('x')
  expect(await store.range('a')).toEqual(['1'])
})

test('a key is a value or a list: the latest of both', async () => {
  const { store } = timed()
  await store.append('a', ['1'], 9, MINUTE)
  expect(await store.get('a')).toBeUndefined()
  await store.set('a', 'x', MINUTE)
  expect([await store.get('a'), await store.range('a')]).toEqual(['x', []])
  await store.append('a', ['2'], 9, MINUTE)
  expect([await store.get('a'), await store.range('a')]).toEqual([undefined, ['2']])
  await store.delete('a')
  expect([await store.get('a'), await store.range('a')]).toEqual([undefined, []])
})

test('a value that ends does not bring back the list that it replaced', async () => {
  const { clock, store } = timed()
  await store.append('a', ['1'], 9, MINUTE)
  await store.set('a', 'x', 100)
  clock.ms += 100
  expect([await store.get('a'), await store.range('a')]).toEqual([undefined, []])
})

test('a list that was found to have ended leaves its room to others', async () => {
  const { clock, store } = timed({ maxListBytes: 8 })
  await store.append('kept', ['1'], 9, MINUTE)
  await store.append('ended', ['1234'], 9, 100)
  clock.ms += 100
  expect(await store.range('ended')).toEqual([])
  await store.append('new', ['1234567'], 9, MINUTE)
  expect(await store.range('kept')).toEqual(['1'])
})

test('a number is the sum of all that was added to it', async () => {
  const { store } = timed()
  for (const amount of [2, 3, -1]) await store.add('sum', amount, MINUTE)
  expect([await store.add('sum', 4, MINUTE), await store.get('sum')]).toEqual([8, '8'])
})

test('a number keeps the end that it began with, and begins again after it', async () => {
  const { clock, store } = timed()
  expect(await store.add('sum', 2, 100)).toBe(2)
  clock.ms += 60
  expect(await store.add('sum', 3, 100)).toBe(5)
  clock.ms += 40
  expect(await store.add('sum', 4, 100)).toBe(4)
})

test('a claim ends, and is released by its holder alone', async () => {
  const { clock, store } = timed()
  expect(await store.claim('a', 'one', 100)).toBe('one')
  expect(await store.claim('a', 'two', 100)).toBe('one')
  expect([await store.release('a', 'two'), await store.get('a')]).toEqual([false, 'one'])
  clock.ms += 100
  expect(await store.claim('a', 'two', 100)).toBe('two')
  expect([await store.release('a', 'two'), await store.get('a')]).toEqual([true, undefined])
  expect(await store.release('a', 'two')).toBe(false)
})

test('a claim is renewed by its holder, and made instead of another one or of none', async () => {
  const { clock, store } = timed()
  expect(await store.claim('a', 'one', 100, 'another')).toBe('one')
  clock.ms += 60
  expect(await store.claim('a', 'one', 100)).toBe('one')
  clock.ms += 60
  expect(await store.claim('a', 'two', 100)).toBe('one')
  expect([await store.claim('a', 'two', 100, 'one'), await store.get('a')]).toEqual(['two', 'two'])
})

test('lists have so many bytes together: the one that was not added to for the longest time goes first', async () => {
  const { store } = timed({ maxListBytes: 10 })
  await store.append('a', ['1234'], 9, MINUTE)
  await store.append('b', ['1234'], 9, MINUTE)
  await store.append('a', ['12'], 9, MINUTE)
  expect(await store.range('b')).toEqual(['1234'])
  await store.append('c', ['1'], 9, MINUTE)
  expect(await Promise.all(['a', 'b', 'c'].map((key) => store.range(key)))).toEqual([['1234', '12'], [], ['1']])
  // What is cut off a list, removed, or replaced by a value counts no more.
  await store.append('a', ['12'], 1, MINUTE)
  await store.append('d', ['1234567'], 9, MINUTE)
  expect(await Promise.all(['a', 'c', 'd'].map((key) => store.range(key)))).toEqual([['12'], ['1'], ['1234567']])
  await store.delete('d')
  await store.set('c', 'value', MINUTE)
  await store.append('e', ['12345678'], 9, MINUTE)
  expect(await Promise.all(['a', 'e'].map((key) => store.range(key)))).toEqual([['12'], ['12345678']])
  // As a reload changes it.
  store.maxListBytes = 20
  await store.append('f', ['12345678'], 9, MINUTE)
  expect(await Promise.all(['a', 'e', 'f'].map((key) => store.range(key)))).toEqual([['12'], ['12345678'], ['12345678']])
})

test('a thousand writes remove what ended meanwhile, and nothing else', async () => {
  const { clock, store } = timed({ maxListBytes: 8 })
  await store.append('kept', ['1'], 9, MINUTE)
  await store.append('ended', ['1234'], 9, 100)
  await store.set('value', 'x', MINUTE)
  clock.ms += 100
  for (let count = 3; count < 1_000; count++) await store.set('other', 'y', MINUTE)
  // There is room again: what ended is no list any more.
  await store.append('new', ['1234567'], 9, MINUTE)
  expect([await store.range('kept'), await store.get('value'), await store.range('new')]).toEqual([['1'], 'x', ['1234567']])
})

test('what is published reaches the subscribers of its channel, and whoever is told of all, until they end', async () => {
  const published = vi.fn<(channel: string, message: string) => void>()
  const { store } = timed({ published })
  const [first, second] = [vi.fn<(message: string) => void>(), vi.fn<(message: string) => void>()]
  const end = store.subscribe('a', first)
  store.subscribe('a', second)
  await store.publish('a', 'one')
  await store.publish('b', 'elsewhere')
  end()
  await store.publish('a', 'two')
  await Promise.resolve()
  expect([first.mock.calls, second.mock.calls]).toEqual([[['one']], [['one'], ['two']]])
  expect(published.mock.calls).toEqual([
    ['a', 'one'],
    ['b', 'elsewhere'],
    ['a', 'two'],
  ])
})

test('has nothing after its end', async () => {
  const { store } = timed()
  await store.set('a', '1', MINUTE)
  await store.append('b', ['1'], 9, MINUTE)
  await store[Symbol.asyncDispose]()
  expect([await store.get('a'), await store.range('b')]).toEqual([undefined, []])
})

test('counts time by itself where no clock is given', async () => {
  const store = new MemoryStore()
  await store.set('a', '1', MINUTE)
  await store.set('b', '1', 0)
  expect(await store.getAll(['a', 'b'])).toEqual(['1', undefined])
})
