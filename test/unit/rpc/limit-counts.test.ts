/** How often limits were reached, and when that is logged. */
import { beforeEach, expect, test, vi } from 'vitest'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'

beforeEach(() => void vi.useFakeTimers())

const counted = () => {
  const lines: (readonly [object, string])[] = []
  return { lines, counts: new LimitCounts({ warn: (facts, message) => void lines.push([facts, message]) }) }
}

test('each limit of each server is counted, whether it is logged or not', () => {
  const { counts } = counted()
  expect(counts.all).toEqual([])
  counts.hit('limits.queue', 'a')
  counts.hit('limits.queue', 'b')
  counts.passed('limits.queue', 'a')
  counts.passed('limits.message', 'a')
  counts.hit('listen.limits.sessions')
  expect(counts.all).toEqual([
    { option: 'limits.queue', server: 'a', count: 2 },
    { option: 'limits.message', server: 'a', count: 1 },
    { option: 'limits.queue', server: 'b', count: 1 },
    { option: 'listen.limits.sessions', server: undefined, count: 1 },
  ])
})

test('a limit of a server is logged at most once a minute, with its count', () => {
  const { counts, lines } = counted()
  counts.passed('limits.queue', 'a')
  expect(lines).toEqual([])
  for (let at = 0; at < 3; at++) counts.hit('limits.queue', 'a')
  counts.hit('limits.queue', 'b')
  counts.hit('limits.queue')
  expect(lines).toEqual([
    [{ server: 'a', count: 2 }, 'limits.queue reached'],
    [{ server: 'b', count: 1 }, 'limits.queue reached'],
    [{ count: 1 }, 'limits.queue reached'],
  ])
  vi.advanceTimersByTime(59_999)
  counts.hit('limits.queue', 'a')
  expect(lines).toHaveLength(3)
  vi.advanceTimersByTime(1)
  counts.hit('limits.queue', 'a')
  expect(lines.slice(3)).toEqual([[{ server: 'a', count: 6 }, 'limits.queue reached']])
})
