/** Streams that wait for a host which does not read: when each goes on, and that nothing is checked where none waits. */
import { beforeEach, expect, test, vi } from 'vitest'
import { PausedSources } from '../../../src/rpc/paused-sources.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

beforeEach(() => void vi.useFakeTimers())

const sources = () => {
  const resumed: string[] = []
  const stalled = new Set<string>()
  const paused = new PausedSources(new Sweeper())
  const add = (id: number | undefined, name: string): void => {
    stalled.add(name)
    paused.add(id, { resume: () => resumed.push(name), isStalled: () => stalled.has(name) })
  }
  return { paused, add, stalled, resumed }
}

test('F-21 each goes on once its own host reads again', () => {
  const { paused, add, stalled, resumed } = sources()
  add(1, 'one')
  add(undefined, 'shared')
  expect([paused.has(1), paused.has(undefined), paused.has(2)]).toEqual([true, true, false])
  vi.advanceTimersByTime(1_000)
  expect(resumed).toEqual([])
  stalled.delete('shared')
  vi.advanceTimersByTime(100)
  expect([resumed, paused.has(undefined), paused.has(1)]).toEqual([['shared'], false, true])
  stalled.delete('one')
  vi.advanceTimersByTime(200)
  expect(resumed).toEqual(['shared', 'one'])
  // With none left nothing is checked any more, until there is one again.
  expect(vi.getTimerCount()).toBe(0)
  add(3, 'three')
  stalled.delete('three')
  vi.advanceTimersByTime(100)
  expect(resumed).toEqual(['shared', 'one', 'three'])
})

test('F-21 with the end of a connection all are forgotten', () => {
  const { paused, add, stalled, resumed } = sources()
  add(1, 'one')
  stalled.clear()
  paused.clear()
  expect([paused.has(1), vi.getTimerCount()]).toEqual([false, 0])
  vi.advanceTimersByTime(1_000)
  expect(resumed).toEqual([])
})
