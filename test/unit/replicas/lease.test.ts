/** When a replica may serve its sessions, and when another one may take them (decision 0165). Time is vitest's. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { DEFAULT_REPLICA_TIMES, Lease } from '../../../src/replicas/lease.ts'
import type { Home } from '../../../src/replicas/home.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreDown } from '../../../src/store/store.ts'
import type { Store } from '../../../src/store/store.ts'

const { leaseMs, renewMs, believedMs } = DEFAULT_REPLICA_TIMES
const homeAt = (instance: string): Home => ({ instance, url: `http://${instance}:1` })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Side {
  readonly lease: Lease
  readonly link: { isCut: boolean }
  fenced: number
}

const throughLink = (store: Store, link: { readonly isCut: boolean }): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown =>
        link.isCut ? Promise.reject(new StoreDown('cut')) : (member.apply(target, args) as unknown)
    },
  })

/** Two replicas that share a store; `mayTake`: what each finds out about the other. */
const startTwo = async (mayTake: () => boolean, store = new MemoryStore()): Promise<Record<'a' | 'b', Side>> => {
  const start = async (instance: string): Promise<Side> => {
    const side = { link: { isCut: false }, fenced: 0 }
    const lease = new Lease({
      self: homeAt(instance),
      store: throughLink(store, side.link),
      times: DEFAULT_REPLICA_TIMES,
      log: { warn: () => undefined },
      facts: undefined,
      onFenced: async () => void side.fenced++,
      mayTake: async () => mayTake(),
    })
    await lease.start()
    return Object.assign(side, { lease })
  }
  const sides = { a: await start('a'), b: await start('b') }
  await vi.advanceTimersByTimeAsync(3 * renewMs)
  return sides
}

describe('F-28 a replica that is cut off from the store', () => {
  test('serves its sessions no longer once its lease has ended, before another one may take them', async () => {
    const { a, b } = await startTwo(() => true)
    a.link.isCut = true
    let untilMs = 0
    for (; !(await b.lease.isLost(homeAt('a'), false)); untilMs += 100) {
      expect(untilMs).toBeLessThan(2 * leaseMs)
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(a.lease.isHeld).toBe(false)
    expect(await a.lease.mayServe()).toBe(false)
    // It has known for as long as its clock may be slower than that of the store.
    expect(untilMs).toBeGreaterThanOrEqual(leaseMs - renewMs)
  })

  test('goes on where no other replica reaches the store', async () => {
    const { a, b } = await startTwo(() => false)
    a.link.isCut = b.link.isCut = true
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    expect([a.lease.isHeld, a.lease.reachesStore]).toEqual([false, false])
    expect(await a.lease.mayServe()).toBe(true)
  })

  test('serves again at once when the store is back, after it has looked twice whether something was taken', async () => {
    const { a } = await startTwo(() => true)
    a.link.isCut = true
    await vi.advanceTimersByTimeAsync(2 * leaseMs)
    a.link.isCut = false
    await vi.advanceTimersByTimeAsync(believedMs)
    const isServing = a.lease.mayServe()
    await vi.advanceTimersByTimeAsync(renewMs / 3)
    expect(await isServing).toBe(true)
    expect(a.lease.isHeld).toBe(true)
  })
})

test('F-28 leases that all have ended with an outage of the store are no reason to take sessions', async () => {
  const store = new MemoryStore()
  const { a, b } = await startTwo(() => false, store)
  a.link.isCut = b.link.isCut = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  b.link.isCut = false
  await vi.advanceTimersByTimeAsync(renewMs + renewMs / 3)
  expect(b.lease.isHeld).toBe(true)
  // The other one may have asked before, and heard that there is no store.
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(false)
  expect(await b.lease.isLost(homeAt('a'), true)).toBe(true)
  await vi.advanceTimersByTimeAsync(2 * renewMs)
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(true)
})

test('F-28 after the store has lost its data nothing is taken until replicas have written again what they took', async () => {
  const store = new MemoryStore()
  const { a, b } = await startTwo(() => true, store)
  const [before] = [a.fenced]
  await store[Symbol.asyncDispose]()
  expect(await b.lease.isLost(homeAt('a'), true)).toBe(false)
  await vi.advanceTimersByTimeAsync(renewMs)
  expect(await b.lease.isLost(homeAt('c'), true)).toBe(false)
  expect([a.fenced > before, b.fenced > 0]).toEqual([true, true])
  // As long as a replica that does not reach the store any more may believe in its lease.
  await vi.advanceTimersByTimeAsync(leaseMs - 2 * renewMs)
  expect([await b.lease.isLost(homeAt('c'), true), await b.lease.isStoreOld()]).toEqual([false, false])
  await vi.advanceTimersByTimeAsync(2 * renewMs)
  expect([await b.lease.isLost(homeAt('c'), true), await b.lease.isStoreOld()]).toEqual([true, true])
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(false)
})

test('F-28 after the store has lost its data replicas find each other again: one that is cut off then does not go on', async () => {
  const store = new MemoryStore()
  const { a } = await startTwo(() => true, store)
  await store[Symbol.asyncDispose]()
  // The others are looked for with each tenth renewal.
  await vi.advanceTimersByTimeAsync(12 * renewMs)
  a.link.isCut = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect(await a.lease.mayServe()).toBe(false)
})

test('F-28 a replica whose renewal fails says that it does not reach the store, and takes nothing for as long as that is believed', async () => {
  const { a, b } = await startTwo(() => true)
  a.link.isCut = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect([b.lease.reachesStore, await b.lease.isLost(homeAt('a'), false)]).toEqual([true, true])
  b.link.isCut = true
  await vi.advanceTimersByTimeAsync(renewMs)
  b.link.isCut = false
  expect([b.lease.isHeld, b.lease.reachesStore]).toEqual([true, false])
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(false)
  await vi.advanceTimersByTimeAsync(renewMs + believedMs)
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(false)
  await vi.advanceTimersByTimeAsync(renewMs)
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(true)
})

test('F-28 a renewal that is under way is no sign that the store is away', async () => {
  const held = Promise.withResolvers<undefined>()
  class Slow extends MemoryStore {
    isSlow = false
    override async set(...given: Parameters<MemoryStore['set']>): Promise<void> {
      if (this.isSlow) await held.promise
      return super.set(...given)
    }
  }
  const store = new Slow()
  const { a } = await startTwo(() => true, store)
  store.isSlow = true
  await vi.advanceTimersByTimeAsync(renewMs)
  expect(a.lease.reachesStore).toBe(true)
  held.resolve(undefined)
})
