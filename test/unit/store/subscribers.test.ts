/** The subscribers of channels: a channel has some from the first to the last. */
import { expect, test } from 'vitest'
import { Subscribers } from '../../../src/store/subscribers.ts'

test('a channel has subscribers until the last of them ends', () => {
  const subscribers = new Subscribers()
  expect(subscribers.has('a')).toBe(false)
  const ends = [1, 2].map(() => subscribers.add('a', () => undefined))
  expect([subscribers.has('a'), subscribers.has('b')]).toEqual([true, false])
  ends[0]?.()
  expect(subscribers.has('a')).toBe(true)
  ends[1]?.()
  expect(subscribers.has('a')).toBe(false)
  subscribers.add('a', () => undefined)
  expect(subscribers.has('a')).toBe(true)
})
