/** When a replica may serve its sessions, and when another one may take them (decision 0165). Time is vitest's. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { DEFAULT_REPLICA_TIMES, Lease } from '../../../src/replicas/lease.ts'
import type { Home } from '../../../src/replicas/home.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreDown } from '../../../src/store/store.ts'
import type { Store } from '../../../src/store/store.ts'

const { leaseMs, renewMs, believedMs } = DEFAULT_REPLICA_TIMES
const homeAt = (instance: string): Home => ({ instance, url: `http://${instance}:1` })

beforeEach(() => void vi.useFakeTimers())

interface Side {
  readonly lease: Lease
  readonly link: { isCut: boolean }
  readonly warned: (readonly [object, string])[]
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

/** A replica; `mayTake`: what it finds out about another one. */
const startOne = async (instance: string, store: MemoryStore, mayTake: (home: Home) => boolean): Promise<Side> => {
  const side = { link: { isCut: false }, warned: [] as Side['warned'][0][], fenced: 0 }
  const lease = new Lease({
    self: homeAt(instance),
    store: throughLink(store, side.link),
    times: DEFAULT_REPLICA_TIMES,
    log: { warn: (facts, text) => void side.warned.push([facts, text]) },
    facts: () => undefined,
    onFenced: async () => void side.fenced++,
    mayTake: async (home) => mayTake(home),
  })
  await lease.start()
  return Object.assign(side, { lease })
}

/** Two replicas that share a store; `mayTake`: what each finds out about the other. */
const startTwo = async (mayTake: (home: Home) => boolean, store = new MemoryStore()): Promise<Record<'a' | 'b', Side>> => {
  const sides = { a: await startOne('a', store, mayTake), b: await startOne('b', store, mayTake) }
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

/** Its writes wait while it is slow. */
class SlowStore extends MemoryStore {
  readonly #held = Promise.withResolvers<void>()
  isSlow = false

  override async set(...given: Parameters<MemoryStore['set']>): Promise<void> {
    if (this.isSlow) await this.#held.promise
    return super.set(...given)
  }

  goOn(): void {
    this.#held.resolve()
  }
}

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
  const store = new SlowStore()
  const { a } = await startTwo(() => true, store)
  store.isSlow = true
  await vi.advanceTimersByTimeAsync(renewMs)
  expect(a.lease.reachesStore).toBe(true)
  store.goOn()
})

test('F-28 a replica looks once for what was taken when another one has fenced it, and again when it is fenced again', async () => {
  const store = new MemoryStore()
  const { a, b } = await startTwo(() => true, store)
  const counts = (): number[] => [a.fenced, a.lease.looks, b.fenced]
  expect(counts()).toEqual([0, 0, 0])
  for (const [at, fence] of ['one', 'two'].entries()) {
    await store.set('fence:a', fence, 60 * leaseMs)
    await vi.advanceTimersByTimeAsync(4 * renewMs)
    expect(counts()).toEqual([at + 1, at + 1, 0])
  }
})

test('F-28 a replica that ends gives its lease back, and does not take it again', async () => {
  const store = new MemoryStore()
  const { a, b } = await startTwo(() => true, store)
  expect([...(await b.lease.all()).keys()]).toEqual(['a', 'b'])
  await a.lease.release()
  await vi.advanceTimersByTimeAsync(4 * renewMs)
  expect(await b.lease.isLost(homeAt('a'), false)).toBe(true)
  expect([...(await b.lease.all()).keys()]).toEqual(['b'])
})

test('F-28 a replica that ends during a renewal gives its lease back all the same', async () => {
  const store = new SlowStore()
  const a = await startOne('a', store, () => true)
  store.isSlow = true
  await vi.advanceTimersByTimeAsync(renewMs)
  const released = a.lease.release()
  store.goOn()
  await released
  expect(await store.get('replica:a')).toBeUndefined()
})

test('F-28 a replica whose renewal takes longer than a lease does not serve on the strength of it', async () => {
  class Slow extends MemoryStore {
    isSlow = false
    override async set(...given: Parameters<MemoryStore['set']>): Promise<void> {
      if (this.isSlow) await new Promise((resolve) => setTimeout(resolve, leaseMs))
      return super.set(...given)
    }
  }
  const store = new Slow()
  const { a } = await startTwo(() => false, store)
  store.isSlow = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect([a.lease.isHeld, a.lease.reachesStore]).toEqual([false, true])
  const isServing = a.lease.mayServe()
  await vi.advanceTimersByTimeAsync(3 * leaseMs)
  expect(await isServing).toBe(false)
})

test('F-28 a replica stops a tenth of a lease before the store forgets it, since its clock may be slower', async () => {
  const { a } = await startTwo(() => true)
  a.link.isCut = true
  // The latest renewal was just now.
  await vi.advanceTimersByTimeAsync(0.9 * leaseMs - 1)
  expect(a.lease.isHeld).toBe(true)
  await vi.advanceTimersByTimeAsync(1)
  expect(a.lease.isHeld).toBe(false)
})

test('F-28 a replica that takes its lease again sees what was taken until just before', async () => {
  const store = new MemoryStore()
  const { a } = await startTwo(() => true, store)
  a.link.isCut = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  const before = a.fenced
  a.link.isCut = false
  const isServing = a.lease.mayServe()
  await vi.advanceTimersByTimeAsync(renewMs / 6)
  // Another one has found no lease just before, and takes a session over.
  await store.set('fence:a', 'late', 60 * leaseMs)
  await vi.advanceTimersByTimeAsync(renewMs / 6)
  expect([await isServing, a.fenced]).toEqual([true, before + 1])
})

test('F-28 a replica that is closed renews nothing: its lease ends', async () => {
  const store = new MemoryStore()
  const { a, b } = await startTwo(() => true, store)
  a.lease.close()
  expect([...(await b.lease.all()).keys()]).toEqual(['a', 'b'])
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect([...(await b.lease.all()).keys()]).toEqual(['b'])
})

test('F-28 the others, and no other, are asked whether they reach the store, once for a while', async () => {
  const asked: string[] = []
  const { a, b } = await startTwo((home) => (asked.push(home.url), false))
  a.link.isCut = b.link.isCut = true
  await vi.advanceTimersByTimeAsync(leaseMs)
  for (let times = 0; times < 3; times++) expect(await a.lease.mayServe()).toBe(true)
  expect(asked).toEqual([homeAt('b').url])
  await vi.advanceTimersByTimeAsync(believedMs)
  expect(await a.lease.mayServe()).toBe(true)
  expect(asked).toEqual([homeAt('b').url, homeAt('b').url])
})

test('F-28 a replica that started later is found with the tenth renewal, and all of them write their names once', async () => {
  const asked: string[] = []
  const store = new MemoryStore()
  const listed = vi.spyOn(store, 'range')
  const { a, b } = await startTwo((home) => (asked.push(home.instance), false), store)
  const c = await startOne('c', store, () => false)
  await vi.advanceTimersByTimeAsync(20 * renewMs)
  expect(await store.range('replicas')).toEqual(['a', 'b', 'c'])
  // Three after each start and one of two in each ten renewals, by three replicas.
  expect(listed.mock.calls.length).toBeLessThanOrEqual(3 * 5 + 1)
  a.link.isCut = b.link.isCut = c.link.isCut = true
  await vi.advanceTimersByTimeAsync(leaseMs)
  await a.lease.mayServe()
  expect(asked).toEqual(['b', 'c'])
})

test('F-28 a lease that had ended is taken again with a warning that says how late; the first one is taken without', async () => {
  const { a } = await startTwo(() => true)
  a.link.isCut = true
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect(a.warned).toEqual([])
  a.link.isCut = false
  await vi.advanceTimersByTimeAsync(2 * renewMs)
  expect(a.warned).toEqual([[{ lateMs: expect.any(Number) as number }, expect.stringContaining('had ended')]])
  const [[{ lateMs }]] = a.warned as unknown as [[{ lateMs: number }]]
  expect(lateMs).toBeGreaterThan(leaseMs)
  expect(lateMs).toBeLessThan(leaseMs + 3 * renewMs)
})

test('F-28 a replica that never had its lease, since the store was away from the start, takes it without a warning', async () => {
  const store = new MemoryStore()
  const away = vi.spyOn(store, 'set').mockRejectedValue(new StoreDown('away'))
  const a = await startOne('a', store, () => true)
  expect(a.lease.isHeld).toBe(false)
  away.mockRestore()
  await vi.advanceTimersByTimeAsync(2 * renewMs)
  expect([a.lease.isHeld, a.warned]).toEqual([true, []])
})

test.each(['', 'null', '7', '{}', '{"url":1}', 'url=http://z:1'])(
  'a lease that this version does not understand (%j) ends no replica, and is of one that counts as running',
  async (lease) => {
    const store = new MemoryStore()
    await store.append('replicas', ['z'], 10, 3_600_000)
    await store.set('replica:z', lease, 3_600_000)
    const asked: string[] = []
    const one = await startOne('a', store, ({ instance }) => asked.push(instance) > 0)
    await vi.advanceTimersByTimeAsync(3 * renewMs)
    expect(await one.lease.mayServe()).toBe(true)
    expect(await one.lease.isLost(homeAt('z'), false)).toBe(false)
    one.lease.close()
  },
)
