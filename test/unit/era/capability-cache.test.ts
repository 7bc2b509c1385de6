import { expect, test } from 'vitest'
import { CapabilityCache } from '../../../src/era/host/capability-cache.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const meta = (text: string): Payload => Payload.at(Buffer.from(` ${text} `), 1)
/** What is read of a text: an object of its own, with the member `a`. */
const read = (payload: Payload): { readonly a: unknown } => ({ a: payload.value('a') })

test('whoever says the same is given the same object, and whoever says something as long another', () => {
  const known = new CapabilityCache<{ readonly a: unknown }>()
  const one = known.of(meta('{"a":1}'), read)
  expect(known.of(meta('{"a":1}'), read)).toBe(one)
  const two = known.of(meta('{"a":2}'), read)
  expect(two).toEqual({ a: 2 })
  expect(known.of(meta('{"a":1}'), read)).toBe(one)
  expect(known.of(meta('{"a":2}'), read)).toBe(two)
  expect(known.of(meta('{"a":1,"b":3}'), read)).not.toBe(one)
})

test('a text with a progress token is read each time, and nothing is remembered of what could not be read', () => {
  const known = new CapabilityCache<{ readonly a: unknown }>()
  const text = '{"a":1,"progressToken":7}'
  expect(known.of(meta(text), read)).not.toBe(known.of(meta(text), read))
  const fail = (): never => {
    throw new Error('unreadable')
  }
  expect(() => known.of(meta('{"a":5}'), fail)).toThrow('unreadable')
  expect(known.of(meta('{"a":5}'), read)).toEqual({ a: 5 })
})
