import { expect, test, vi } from 'vitest'
import { GuardedStore } from '../../../src/store/guarded-store.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreDown } from '../../../src/store/store.ts'

test('F-28 an answer that came while this process stood still counts, however long that was', async () => {
  const { port1, port2 } = new MessageChannel()
  const answered = new Promise<string>((resolve) => port1.once('message', resolve))
  const memory = new MemoryStore()
  memory.get = () => answered
  await using store = new GuardedStore(memory, { changed: () => undefined })
  // From here the event loop goes on with its timers, and then with what has arrived.
  await new Promise(setImmediate)
  const value = store.get('a')
  port2.postMessage('there')
  const endMs = performance.now() + 300
  while (performance.now() < endMs);
  expect(await value).toBe('there')
  expect(store.state.failures).toBe(0)
  port1.close()
})

/** A store that fails while it is broken, and a clock that stands still. */
const breakable = () => {
  const state = { isBroken: true, tries: 0, ms: 0 }
  const memory = new MemoryStore()
  memory.get = () => {
    state.tries++
    return state.isBroken ? Promise.reject(new Error('refused')) : Promise.resolve('there')
  }
  const changes: (readonly [boolean, string])[] = []
  const store = new GuardedStore(memory, { changed: (...change) => void changes.push(change), now: () => state.ms })
  const get = async (): Promise<string | undefined> => {
    try {
      return await store.get('a')
    } catch (error) {
      if (!(error instanceof StoreDown)) throw error
      // What fails at once has no cause of its own.
      expect([error.name, 'cause' in error]).toEqual(['StoreDown', error.message === FAILED])
      return error.message
    }
  }
  const getTimes = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) await get()
  }
  return { state, store, changes, get, getTimes }
}
const FAILED = 'the shared store is not available (store): refused'
const AT_ONCE = 'the shared store is not available (store)'

test('F-28 the fifth failure in a row makes all operations fail at once for a second; then one of them tries', async () => {
  const { state, store, changes, get, getTimes } = breakable()
  await getTimes(4)
  expect([changes, store.state]).toEqual([[], { isDown: false, operations: 4, failures: 4 }])
  expect(await get()).toBe(FAILED)
  expect([changes, store.state]).toEqual([[[true, 'refused']], { isDown: true, operations: 5, failures: 5 }])
  state.ms = 999
  expect(await get()).toBe(AT_ONCE)
  state.ms = 1_000
  expect(await Promise.all([get(), get()])).toEqual([FAILED, AT_ONCE])
  state.ms = 1_999
  expect(await get()).toBe(AT_ONCE)
  expect([state.tries, changes.length, store.state]).toEqual([6, 1, { isDown: true, operations: 6, failures: 6 }])
  state.ms = 2_000
  state.isBroken = false
  expect([await get(), await get()]).toEqual(['there', 'there'])
  expect(changes).toEqual([
    [true, 'refused'],
    [false, ''],
  ])
  expect(store.state).toEqual({ isDown: false, operations: 8, failures: 6 })
})

test('F-28 a success between failures begins their count again', async () => {
  const { state, changes, get, getTimes } = breakable()
  await getTimes(4)
  state.isBroken = false
  expect(await get()).toBe('there')
  state.isBroken = true
  await getTimes(4)
  expect(changes).toEqual([])
  expect(await get()).toBe(FAILED)
  expect(changes).toEqual([[true, 'refused']])
})

test('F-28 an operation without an answer fails after a quarter of a second; one that is answered leaves no timer', async () => {
  vi.useFakeTimers()
  const memory = new MemoryStore()
  memory.range = () => new Promise(() => undefined)
  const store = new GuardedStore(memory, { changed: () => undefined })
  expect(await store.get('a')).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
  const failed = vi.fn<(error: unknown) => void>()
  const late = store.range('a').catch(failed)
  await vi.advanceTimersByTimeAsync(249)
  expect(failed).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(2)
  await late
  expect(failed.mock.lastCall).toEqual([new StoreDown('the shared store is not available (store): no answer within 250 ms')])
})
