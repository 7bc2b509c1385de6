/** Small functions on values: what each takes for an object, an error, a constant. */
import { expect, test, vi } from 'vitest'
import { asError } from '../../../src/values/as-error.ts'
import { setBounded } from '../../../src/values/bounded-map.ts'
import { isInteger, isJsonObject, isList, jsonObject, memberOf, parseJsonObject } from '../../../src/values/json-object.ts'
import { lazily } from '../../../src/values/lazily.ts'
import { entriesOf, keysOf } from '../../../src/values/typed-keys.ts'

test.each([
  [{ a: 1 }, true],
  [{}, true],
  [null, false],
  [[1], false],
  ['{}', false],
  [undefined, false],
  [() => undefined, false],
])('%j is a JSON object: %j', (value, isObject) => {
  expect(isJsonObject(value)).toBe(isObject)
  expect(jsonObject(value)).toBe(isObject ? value : undefined)
})

test('a member is one of an object alone', () => {
  expect([{ a: 1 }, ['a'], 'a', null, undefined].map((value) => memberOf(value, 'a'))).toEqual([1, ...Array<undefined>(4)])
  expect(memberOf(['x'], '0')).toBeUndefined()
})

test('a text is read where it is an object', () => {
  expect(['{"a":1}', '[1]', 'null', '{', ''].map(parseJsonObject)).toEqual([{ a: 1 }, ...Array<undefined>(4)])
})

test('lists and whole numbers', () => {
  expect([[1], {}, 'a'].map(isList)).toEqual([true, false, false])
  expect([1, 1.5, '1', NaN].map(isInteger)).toEqual([true, false, false, false])
})

test('a constant is made once, when it is asked for, also where it is nothing', () => {
  for (const value of ['x', undefined, 0]) {
    const make = vi.fn(() => value)
    const get = lazily(make)
    expect(make).not.toHaveBeenCalled()
    expect([get(), get()]).toEqual([value, value])
    expect(make).toHaveBeenCalledOnce()
  }
})

test('whatever is thrown is an error; an error stays what it is', () => {
  const error = new TypeError('a')
  expect(asError(error)).toBe(error)
  expect([asError('text'), asError(undefined), asError({ a: 1 })].map(({ message }) => message)).toEqual([
    'text',
    'undefined',
    '[object Object]',
  ])
})

test('keys and entries of a table', () => {
  expect(keysOf({ a: 1, b: 2 })).toEqual(['a', 'b'])
  expect(entriesOf({ a: 1, b: 2 })).toEqual([
    ['a', 1],
    ['b', 2],
  ])
})

test('a bounded map gives up what was set the longest time ago', () => {
  const map = new Map<string, number>()
  for (const [at, key] of ['a', 'b', 'a', 'c', 'd'].entries()) setBounded(map, key, at, 3)
  expect([...map]).toEqual([
    ['a', 2],
    ['c', 3],
    ['d', 4],
  ])
})
