/** Changed calls as readers get them: in which order, how often, and only while somebody reads. */
import { beforeEach, expect, test, vi } from 'vitest'
import { CallFeed } from '../../../src/observe/call-feed.ts'
import type { Recording } from '../../../src/observe/capture/recording.ts'

beforeEach(() => void vi.useFakeTimers())

/** Cast: what is looked at. */
const callOf = (id: number): Recording => ({ id }) as Recording

const subscribed = (feed: CallFeed) => {
  const got: number[][] = []
  return { got, end: feed.subscribe((calls) => void got.push(calls.map(({ id }) => id))) }
}

test('a call is sent once in a tenth of a second, however often it changed, in the order of their beginnings', () => {
  using feed = new CallFeed()
  const [first, second] = [subscribed(feed), subscribed(feed)]
  const [one, two, three] = [callOf(1), callOf(2), callOf(3)]
  for (const call of [three, one, three, two]) feed.changed(call)
  vi.advanceTimersByTime(99)
  expect(first.got).toEqual([])
  vi.advanceTimersByTime(1)
  feed.changed(one)
  vi.advanceTimersByTime(100)
  expect([first.got, second.got]).toEqual([
    [[1, 2, 3], [1]],
    [[1, 2, 3], [1]],
  ])
  vi.advanceTimersByTime(1_000)
  expect([first.got.length, vi.getTimerCount()]).toEqual([2, 0])
})

test('what changed while nobody read is sent to nobody', () => {
  using feed = new CallFeed()
  feed.changed(callOf(1))
  expect([feed.readers, vi.getTimerCount()]).toEqual([0, 0])
  const [first, second] = [subscribed(feed), subscribed(feed)]
  expect(feed.readers).toBe(2)
  feed.changed(callOf(2))
  first.end()
  vi.advanceTimersByTime(100)
  expect([first.got, second.got]).toEqual([[], [[2]]])
  feed.changed(callOf(3))
  second.end()
  const third = subscribed(feed)
  feed.changed(callOf(4))
  vi.advanceTimersByTime(100)
  expect([second.got, third.got]).toEqual([[[2]], [[4]]])
})

test('after its end nothing is sent', () => {
  const feed = new CallFeed()
  const { got } = subscribed(feed)
  feed.changed(callOf(1))
  feed[Symbol.dispose]()
  expect([feed.readers, vi.getTimerCount()]).toEqual([0, 0])
  vi.advanceTimersByTime(100)
  expect(got).toEqual([])
})
