/** Calls at once at one server, and those that wait (RELIABILITY 7). */
import { expect, test } from 'vitest'
import { Slots } from '../../../src/downstream/pacing/slots.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'

const { signal } = new Cancellation()

test('F-25 a reload that allows more lets those in that wait, in their order and no more than fit', async () => {
  const slots = new Slots(1, 10)
  expect(slots.take(signal)).toBeUndefined()
  const entered: number[] = []
  const waiting = [1, 2, 3].map(async (at) => {
    await slots.take(signal)
    entered.push(at)
  })
  slots.resize(3, 10)
  await Promise.all(waiting.slice(0, 2))
  expect([entered, slots.inUse]).toEqual([[1, 2], 3])
  slots.release()
  await waiting[2]
  expect(entered).toEqual([1, 2, 3])
})

test('F-25 a reload that allows fewer ends nothing: no call enters until as many have left', async () => {
  const slots = new Slots(2, 10)
  for (let at = 0; at < 2; at++) expect(slots.take(signal)).toBeUndefined()
  slots.resize(1, 10)
  expect(slots.inUse).toBe(2)
  slots.release()
  expect(slots.take(signal)).toBeInstanceOf(Promise)
  slots.release()
  expect(slots.inUse).toBe(1)
})
