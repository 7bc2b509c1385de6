/** The streams behind a set that hosts watch at a modern server (BRIDGING 3.7). */
import { beforeEach, expect, test, vi } from 'vitest'
import { Resubscriber } from '../../../src/era/server/resubscriber.ts'
import type { Filter, ListenStream } from '../../../src/era/server/resubscriber.ts'

interface Opened {
  readonly key: string
  readonly uris: unknown
  isClosed: boolean
  acknowledge(uris?: readonly string[]): void
  /** Ends it from the server's side. */
  drop(): void
  /** Answers it with an error. */
  refuse(): void
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
    let refusal: unknown
    const stream: Opened = {
      refuse: () => {
        refusal = new Error('refused')
        drop()
      },
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
    return { key: stream.key, acknowledged: acknowledged.promise, ended: ended.promise, refusal: () => refusal, close }
  }
  return { set: new Resubscriber('resourceSubscriptions', open, (uri) => missed.push(uri)), opened, missed }
}

beforeEach(() => void vi.useFakeTimers())
/** Lets promises run, and as much time as a retry may take. */
const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

const urisOf = (opened: readonly Opened[]): unknown[] => opened.map(({ uris }) => uris)
/** A set in which these stand, each on a stream of its own. */
const standing = async (...uris: string[]): Promise<ReturnType<typeof makeSet>> => {
  const made = makeSet()
  for (const [at, uri] of uris.entries()) {
    const added = made.set.add(uri)
    await pass()
    made.opened[at]!.acknowledge()
    expect(await added).toBe(true)
  }
  return made
}

test('what is added at one time is asked for together, what comes later on a further stream, and no URI twice', async () => {
  const { set, opened } = makeSet()
  const first = ['a', 'b', 'a'].map((uri) => set.add(uri))
  await pass()
  const later = ['b', 'c', 'd'].map((uri) => set.add(uri))
  await pass()
  expect(urisOf(opened)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
  opened[1]!.acknowledge(['d'])
  opened[0]!.acknowledge()
  expect(await Promise.all([...first, ...later])).toEqual([true, true, true, true, false, true])
  expect(await set.add('a')).toBe(true)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([false, false])
})

test('a stream is closed once none of its URIs is wanted, and a URI that is wanted again while it stands needs no other', async () => {
  const { set, opened } = makeSet()
  const added = ['a', 'b'].map((uri) => set.add(uri))
  await pass()
  opened[0]!.acknowledge()
  await Promise.all(added)
  set.remove('a')
  expect([opened[0]!.isClosed, await set.add('a')]).toEqual([false, true])
  for (const uri of ['a', 'b']) set.remove(uri)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true])
  const again = set.add('a')
  await pass()
  opened[1]!.acknowledge()
  expect(await again).toBe(true)
})

test('what is not wanted any more when its stream is acknowledged closes that', async () => {
  const { set, opened } = makeSet()
  const added = set.add('a')
  await pass()
  set.remove('a')
  opened[0]!.acknowledge()
  await added
  expect(opened[0]!.isClosed).toBe(true)
})

test('B284 a stream that is refused is split until only the refused URI fails; what stands is not touched', async () => {
  const { set, opened } = await standing('before')
  const added = ['a', 'bad', 'c', 'd'].map((uri) => set.add(uri).catch(String))
  const turn = async (): Promise<void> => {
    await pass()
    for (const stream of opened)
      if ((stream.uris as string[]).includes('bad')) stream.refuse()
      else stream.acknowledge()
  }
  for (let turns = 0; turns < 4; turns++) await turn()
  expect(await Promise.all(added)).toEqual([true, 'Error: refused', true, true])
  expect(urisOf(opened)).toEqual([['before'], ['a', 'bad', 'c', 'd'], ['a', 'bad'], ['c', 'd'], ['a'], ['bad']])
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([false, false, false, false, false, false])
  await pass(60_000)
  expect(opened, 'nothing is tried again').toHaveLength(6)
})

test('B127 B134 a stream that drops is opened again, later each time, and everything on it counts as changed once', async () => {
  const { opened, missed } = await standing('a')
  opened[0]!.drop()
  for (const [tries, waitMs] of [1_000, 2_000, 4_000].entries()) {
    await pass(waitMs / 2 - 1)
    expect(opened).toHaveLength(tries + 1)
    await pass(waitMs / 2 + 2)
    expect(opened).toHaveLength(tries + 2)
    if (tries < 2) opened[tries + 1]!.drop()
  }
  expect(missed).toEqual([])
  opened[3]!.acknowledge()
  await pass()
  expect(missed).toEqual(['a'])
  await pass(60_000)
  expect(opened).toHaveLength(4)
  expect(missed).toEqual(['a'])
})

test('B127 a stream that ends right after its acknowledgement is opened again later each time, one that stood for a while soon', async () => {
  const { opened } = await standing('a')
  for (const [tries, waitMs] of [1_000, 2_000, 4_000].entries()) {
    opened[tries]!.drop()
    await pass(waitMs / 2 - 1)
    expect(opened).toHaveLength(tries + 1)
    await pass(waitMs / 2 + 2)
    expect(opened).toHaveLength(tries + 2)
    opened[tries + 1]!.acknowledge()
    await pass()
  }
  await pass(5_000)
  opened[3]!.drop()
  await pass(1_001)
  expect(opened).toHaveLength(5)
})

test('what the server does not acknowledge is tried again and counts as changed; other streams stand', async () => {
  const { set, opened, missed } = await standing('a')
  const late = expect(set.add('b')).rejects.toThrow('the server acknowledges no subscription now')
  await pass()
  opened[1]!.drop()
  await late
  await pass(1_001)
  expect(urisOf(opened)).toEqual([['a'], ['b'], ['b']])
  opened[2]!.acknowledge()
  await pass()
  expect([missed, opened[0]!.isClosed, await set.add('b')]).toEqual([['b'], false, true])
})

test('B127 what is wanted again while the stream it was left out of is asked for is asked for later', async () => {
  const { set, opened } = makeSet()
  const added = ['a', 'b'].map((uri) => set.add(uri).catch(String))
  set.remove('a')
  await pass()
  expect(urisOf(opened)).toEqual([['b']])
  const again = set.add('a').catch(String)
  opened[0]!.acknowledge()
  await Promise.all([...added, again])
  await pass(1_001)
  expect(urisOf(opened)).toEqual([['b'], ['a']])
})

test('B127 what is wanted again after its part of a split stream was closed is asked for later', async () => {
  const { set, opened } = makeSet()
  const added = ['a', 'b'].map((uri) => set.add(uri).catch(String))
  await pass()
  opened[0]!.refuse()
  await pass()
  opened[1]!.acknowledge()
  await pass()
  set.remove('a')
  expect(opened[1]!.isClosed).toBe(true)
  const again = set.add('a').catch(String)
  opened[2]!.acknowledge()
  await Promise.all([...added, again])
  await pass(1_001)
  expect(urisOf(opened)).toEqual([['a', 'b'], ['a'], ['b'], ['a']])
})

test('nothing is opened once the set is closed', async () => {
  const { set, opened } = await standing('a')
  set.close()
  opened[0]!.drop()
  await pass(60_000)
  expect(opened).toHaveLength(1)
})

test('an update is news on the stream that holds its URI, and only while that is wanted', async () => {
  const { set } = await standing('a', 'b')
  expect(['1', '2', undefined].map((key) => set.isNews('a', key))).toEqual([true, false, true])
  expect(set.isNews('a/below', '1')).toBe(true)
  // A stream that somebody else has opened.
  expect(set.isNews('a', '3')).toBe(true)
  const both = makeSet()
  const added = ['a', 'b'].map((uri) => both.set.add(uri))
  await pass()
  both.opened[0]!.acknowledge()
  await Promise.all(added)
  both.set.remove('a')
  expect(['a', 'b'].map((uri) => both.set.isNews(uri, '1'))).toEqual([false, true])
})
