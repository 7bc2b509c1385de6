/** Which processes start at the same time (RELIABILITY F-24). */
import { beforeEach, expect, test, vi } from 'vitest'
import { Starts } from '../../../src/downstream/pacing/starts.ts'
import type { StartSlot } from '../../../src/downstream/pacing/starts.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

const unwanted = (): boolean => false

beforeEach(() => void vi.useFakeTimers())

/** Starts with `max` slots. */
const setUp = (max: number) => {
  let waits = 0
  const starts = new Starts({ sweeper: new Sweeper(), max: () => max, onWait: () => waits++ })
  const granted: string[] = []
  const ask = async (name: string, isWanted: () => boolean = unwanted): Promise<StartSlot> => {
    const slot = await starts.acquire(isWanted)
    granted.push(name)
    return slot
  }
  const passes = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms))
  return { starts, granted, ask, passes, waits: () => waits }
}

test('F-24 a process that has been silent for a second gives its slot back, whatever becomes of its handshake', async () => {
  const { ask, granted, passes } = setUp(1)
  const slot = await ask('hangs')
  slot.watch({ outputBytes: 0 })
  void ask('healthy')
  await passes(900)
  expect(granted).toEqual(['hangs'])
  await passes(200)
  expect(granted).toEqual(['hangs', 'healthy'])
})

test('F-24 a process that prints keeps its slot, and not for more than five seconds', async () => {
  const { ask, granted, passes } = setUp(1)
  let outputBytes = 0
  const slot = await ask('prints')
  slot.watch({
    get outputBytes() {
      return ++outputBytes
    },
  })
  void ask('next')
  await passes(4_900)
  expect(granted).toEqual(['prints'])
  await passes(100)
  expect(granted).toEqual(['prints', 'next'])
})

test('F-24 starts are granted in the order of asking; one that a call waits for passes the others and the cap', async () => {
  const { starts, ask, granted, passes, waits } = setUp(1)
  const first = await ask('first')
  let isWanted = false
  void ask('second')
  void ask('third', () => isWanted)
  await ask('called at once', () => true)
  expect(granted).toEqual(['first', 'called at once'])
  isWanted = true
  starts.review()
  await passes(0)
  expect(granted).toEqual(['first', 'called at once', 'third'])
  first.release()
  first.release()
  await passes(0)
  expect(granted).not.toContain('second')
  expect(waits()).toBe(2)
})

test('F-24 a slot whose process is not spawned yet is kept', async () => {
  const { ask, granted, passes } = setUp(1)
  await ask('is prepared')
  void ask('next')
  await passes(10_000)
  expect(granted).toEqual(['is prepared'])
})

test('F-24 no more than limits.starts begin when slots are given back, and nothing is watched once all are', async () => {
  const { starts, ask, granted, passes } = setUp(2)
  const slots = [await ask('a'), await ask('b')]
  let isWanted = false
  const others = [ask('c', () => isWanted), ask('d'), ask('e')]
  isWanted = true
  starts.review()
  starts.review()
  slots.push(await others[0]!)
  slots[0]!.release()
  await passes(0)
  expect(granted).toEqual(['a', 'b', 'c'])
  slots[1]!.release()
  await passes(0)
  expect(granted).toEqual(['a', 'b', 'c', 'd'])
  slots[2]!.release()
  for (const other of [others[1]!, others[2]!]) (await other).release()
  expect([granted.at(-1), vi.getTimerCount()]).toEqual(['e', 0])
  await ask('f')
  await ask('g')
  void ask('h')
  await passes(0)
  expect(granted.slice(-2)).toEqual(['f', 'g'])
})
