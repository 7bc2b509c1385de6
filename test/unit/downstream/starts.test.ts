/** Which processes start at the same time (RELIABILITY F-24). */
import { expect, test } from 'vitest'
import { Starts } from '../../../src/downstream/pacing/starts.ts'
import type { StartSlot } from '../../../src/downstream/pacing/starts.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

const unwanted = (): boolean => false

/** Starts with `max` slots; `passes`: so much time on their clock. */
const setUp = (max: number) => {
  let nowMs = 0
  let waits = 0
  const sweeper = new Sweeper({ clock: () => nowMs })
  const starts = new Starts({ sweeper, max: () => max, onWait: () => waits++ })
  const granted: string[] = []
  const ask = async (name: string, isWanted: () => boolean = unwanted): Promise<StartSlot> => {
    const slot = await starts.acquire(isWanted)
    granted.push(name)
    return slot
  }
  const passes = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 100) starts.sweep((nowMs += 100))
    await new Promise(setImmediate)
  }
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
  await passes(4_000)
  expect(granted).toEqual(['prints'])
  await passes(1_200)
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
