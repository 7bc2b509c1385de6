import { expect, test } from 'vitest'
import { WriteBatch } from '../../../src/transport/http1/write-batch.ts'

test('what is added in one turn of the loop is written in order, before the loop waits', async () => {
  const batch = new WriteBatch()
  const written: string[] = []
  batch.add(() => written.push('a'))
  await Promise.resolve()
  batch.add(() => written.push('b'))
  expect(written).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['a', 'b'])
})

test('a flush writes at once and only once, and what a write adds comes in the next batch', async () => {
  const batch = new WriteBatch()
  const written: string[] = []
  batch.add(() => {
    written.push('a')
    batch.add(() => written.push('b'))
  })
  batch.flush()
  expect(written).toEqual(['a'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['a', 'b'])
})
