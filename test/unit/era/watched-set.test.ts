/** The stream behind a set that hosts watch at a modern server (BRIDGING 3.7). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WatchedSet } from '../../../src/era/watched-set.ts'
import type { Filter, ListenStream } from '../../../src/era/watched-set.ts'

interface Opened {
  readonly key: string
  readonly uris: unknown
  isClosed: boolean
  acknowledge(uris?: readonly string[]): void
  /** Ends it from the server's side. */
  drop(): void
}

const makeSet = () => {
  const opened: Opened[] = []
  const missed: string[] = []
  const open = (filter: Filter): ListenStream => {
    const ended = Promise.withResolvers<void>()
    const acknowledged = Promise.withResolvers<Filter | undefined>()
    const uris = filter['resourceSubscriptions']
    const drop = (): void => {
      acknowledged.resolve(undefined)
      ended.resolve()
    }
    const stream: Opened = {
      key: String(opened.length + 1),
      uris,
      isClosed: false,
      acknowledge: (accepted = uris as string[]) => acknowledged.resolve({ resourceSubscriptions: accepted }),
      drop,
    }
    opened.push(stream)
    const close = (): void => {
      stream.isClosed = true
      drop()
    }
    return { key: stream.key, acknowledged: acknowledged.promise, ended: ended.promise, close }
  }
  return { set: new WatchedSet('resourceSubscriptions', open, (uri) => missed.push(uri)), opened, missed }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())
/** Lets promises run, and as much time as a retry may take. */
const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

test('what is added while a stream is being opened is asked for together by the next', async () => {
  const { set, opened } = makeSet()
  const first = set.add('a')
  const more = ['b', 'c', 'd'].map((uri) => set.add(uri))
  opened[0].acknowledge()
  await pass()
  expect(opened.map(({ uris }) => uris)).toEqual([['a'], ['a', 'b', 'c', 'd']])
  expect(opened[0].isClosed, 'make before break').toBe(false)
  opened[1].acknowledge(['a', 'b', 'd'])
  expect(await Promise.all([first, ...more])).toEqual([true, true, false, true])
  expect(
    opened.map(({ isClosed }) => isClosed),
    'what is on its way is still heard',
  ).toEqual([false, false])
  await pass(1_500)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false])
})

test('B127 B134 a stream that drops is opened again, later each time, and everything on it counts as changed once', async () => {
  const { set, opened, missed } = makeSet()
  const added = set.add('a')
  opened[0].acknowledge()
  await added
  opened[0].drop()
  for (const [tries, waitMs] of [1_000, 2_000, 4_000].entries()) {
    await pass(waitMs / 2 - 1)
    expect(opened).toHaveLength(tries + 1)
    await pass(waitMs / 2 + 1)
    expect(opened).toHaveLength(tries + 2)
    if (tries < 2) opened[tries + 1].drop()
  }
  expect(missed).toEqual([])
  opened[3].acknowledge()
  await pass()
  expect(missed).toEqual(['a'])
  await pass(60_000)
  expect(opened).toHaveLength(4)
  expect(missed).toEqual(['a'])
})

test('a set that the server does not acknowledge leaves the stream before it, is tried again, and what was added counts as changed', async () => {
  const { set, opened, missed } = makeSet()
  const added = set.add('a')
  opened[0].acknowledge()
  await added
  const late = expect(set.add('b')).rejects.toThrow('the server acknowledges no subscription now')
  opened[1].drop()
  await late
  expect(opened[0].isClosed).toBe(false)
  await pass(1_000)
  expect(opened[2].uris).toEqual(['a', 'b'])
  opened[2].acknowledge()
  await pass(1_500)
  expect([missed, opened[0].isClosed, await set.add('b')]).toEqual([['b'], true, true])
})

test('what is removed is asked for no more, and nothing is opened for nothing, nor once it is closed', async () => {
  const { set, opened } = makeSet()
  const added = set.add('a')
  opened[0].acknowledge()
  await added
  await set.remove('a')
  expect(opened[0].isClosed).toBe(true)
  const again = set.add('b')
  opened[1].acknowledge()
  await again
  set.close()
  opened[1].drop()
  await pass(60_000)
  expect(opened).toHaveLength(2)
})

test('while two streams stand an update is news once, whichever says it first, and none is lost', async () => {
  const { set, opened } = makeSet()
  const added = set.add('a')
  opened[0].acknowledge()
  await added
  expect([set.isNews('a', '1'), set.isNews('a', '1')]).toEqual([true, true])
  const more = set.add('b')
  opened[1].acknowledge()
  await more
  const said = (...keys: string[]): boolean[] => keys.map((key) => set.isNews('a', key))
  expect(said('1', '2', '1', '1', '2', '2'), 'each says three').toEqual([true, false, true, true, false, false])
  expect(said('2', '2', '1', '1'), 'the old one is behind').toEqual([true, true, false, false])
  expect([set.isNews('b', '2'), set.isNews('a', undefined)]).toEqual([true, true])
  await pass(1_500)
  expect(opened[0].isClosed).toBe(true)
  await pass(1_500)
  expect(said('2', '2')).toEqual([true, true])
})

test('an update right behind one that the new stream had not heard comes through', async () => {
  const { set, opened } = makeSet()
  const added = set.add('a')
  opened[0].acknowledge()
  await added
  const more = set.add('b')
  expect(set.isNews('a', '1'), 'before the new one listens').toBe(true)
  opened[1].acknowledge()
  await more
  expect([set.isNews('a', '2'), set.isNews('a', '1')], 'one of both is news').toEqual([true, false])
})

test('where one stream follows another and is followed itself, no two updates are taken for one', async () => {
  const { set, opened } = makeSet()
  const follow = async (at: number): Promise<void> => {
    const added = set.add(`${at}`)
    opened[at].acknowledge()
    await added
  }
  const said = (...keys: string[]): boolean[] => keys.map((key) => set.isNews('a', key))
  await follow(0)
  await follow(1)
  expect(said('1', '2'), 'told to the first two').toEqual([true, false])
  await follow(2)
  expect(said('3', '2'), 'to the second and third').toEqual([true, false])
  await follow(3)
  expect(said('4', '3'), 'to the third and fourth').toEqual([true, false])
})

test('a stream that was opened once the one before had ended repeats nothing', async () => {
  const { set, opened } = makeSet()
  for (const at of [0, 1]) {
    const added = set.add('a')
    opened[at].acknowledge()
    await added
    expect(set.isNews('a', String(at + 1))).toBe(true)
    await set.remove('a')
  }
})
