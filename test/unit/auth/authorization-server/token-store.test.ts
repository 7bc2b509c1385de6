/** Records of sign-ins: who sees them, how long they last, and who may change them (T-14, F-17). */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TokenStore } from '../../../../src/auth/authorization-server/token-store.ts'
import type { StoreKey } from '../../../../src/auth/authorization-server/token-store.ts'
import { Seal } from '../../../../src/auth/seal.ts'
import { MemoryStore } from '../../../../src/store/memory-store.ts'
import { StoreDown } from '../../../../src/store/store.ts'

interface Token {
  readonly token: string
}
const DAY_MS = 86_400_000
const KEY: StoreKey<Token> = ['token', 'server', 'alice']
const OTHER: StoreKey<Token> = ['token', 'server', 'bob']
const seal = new Seal({ keys: [Buffer.alloc(32, 7)] })

let folder: string
let trouble: Error[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
  trouble = []
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A store as a process has it; `undefined`: without a folder. */
const storeIn = (at: string | undefined, shared?: MemoryStore): TokenStore =>
  new TokenStore(seal, at, (error) => void trouble.push(error), shared)

test('a record outlives its process, as a file of its owner that opens under its own name alone', () => {
  storeIn(folder).write(KEY, { token: 'secret' })
  storeIn(folder).write(OTHER, { token: 'other' })
  expect(storeIn(folder).read(KEY)).toEqual({ token: 'secret' })
  const files = readdirSync(join(folder, 'credentials')).map((name) => join(folder, 'credentials', name))
  expect(files).toHaveLength(2)
  for (const file of files) {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain('secret')
  }
  // One record under the name of the other.
  const [one = '', other = ''] = files
  const [a, b] = [readFileSync(one), readFileSync(other)]
  writeFileSync(one, b)
  writeFileSync(other, a)
  expect([storeIn(folder).read(KEY), storeIn(folder).read(OTHER)]).toEqual([undefined, undefined])
})

test('a removed record is nowhere', async () => {
  const shared = new MemoryStore()
  const [store, memory] = [storeIn(folder, shared), storeIn(undefined)]
  for (const one of [store, memory]) {
    one.write(KEY, { token: 'a' })
    expect(one.read(KEY)).toEqual({ token: 'a' })
    one.remove(KEY)
    expect(one.read(KEY)).toBeUndefined()
  }
  const late = storeIn(undefined, shared)
  await late.exclusively(KEY, async () => expect(late.read(KEY)).toBeUndefined())
})

test('without a folder that can be written a record lasts as long as the process, and the reason is told', () => {
  const file = join(folder, 'no-folder')
  writeFileSync(file, '')
  const store = storeIn(file)
  store.write(KEY, { token: 'a' })
  expect(store.read(KEY)).toEqual({ token: 'a' })
  expect(trouble).toHaveLength(1)
})

test('F-17 F-26 what could not be written is used until another process writes a newer record', () => {
  const file = join(folder, 'credentials')
  const [one, other] = [storeIn(folder), storeIn(folder)]
  one.write(KEY, { token: 'a' })
  rmSync(file, { recursive: true })
  writeFileSync(file, 'the disk is full')
  one.write(KEY, { token: 'b' })
  rmSync(file)
  expect([one.read(KEY), other.read(KEY)]).toEqual([{ token: 'b' }, undefined])
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 1_000 })
  other.write(KEY, { token: 'c' })
  expect(one.read(KEY)).toEqual({ token: 'c' })
})

test('F-17 another replica has a sign-in for 90 days after it was last written', async () => {
  let nowMs = 0
  const shared = new MemoryStore({ now: () => nowMs })
  storeIn(folder, shared).write(KEY, { token: 'a' })
  const readLater = async (): Promise<Token | undefined> => {
    const late = storeIn(undefined, shared)
    return late.exclusively(KEY, async () => late.read(KEY))
  }
  nowMs = 89 * DAY_MS
  expect(await readLater()).toEqual({ token: 'a' })
  nowMs = 91 * DAY_MS
  expect(await readLater()).toBeUndefined()
})

test('F-17 what one replica writes the others are told of, once, and only those that watch it', async () => {
  const shared = new MemoryStore()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  const [changed, changedOther] = [vi.fn<() => void>(), vi.fn<() => void>()]
  other.watch(KEY, changed)
  other.watch(OTHER, changedOther)
  one.write(KEY, { token: 'a' })
  await vi.waitFor(() => expect(other.read(KEY)).toEqual({ token: 'a' }))
  one.write(KEY, { token: 'a' })
  one.write(KEY, { token: 'b' })
  await vi.waitFor(() => expect(other.read(KEY)).toEqual({ token: 'b' }))
  expect([changed.mock.calls.length, changedOther.mock.calls.length]).toEqual([2, 0])
})

test('F-17 nothing is read for one that watches no longer, and it is told of nothing', async () => {
  const shared = new MemoryStore()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  const [changed, changedOther] = [vi.fn<() => void>(), vi.fn<() => void>()]
  const [end, endSecond] = [other.watch(KEY, changed), other.watch(KEY, changed)]
  other.watch(OTHER, changedOther)
  end()
  endSecond()
  one.write(KEY, { token: 'a' })
  one.write(OTHER, { token: 'b' })
  await vi.waitFor(() => expect(changedOther).toHaveBeenCalledOnce())
  expect([changed.mock.calls, other.read(KEY)]).toEqual([[], undefined])
})

test.each<[string, () => readonly [TokenStore, TokenStore]]>([
  ['one process', () => [storeIn(folder), storeIn(folder)]],
  [
    'replicas',
    () => {
      const shared = new MemoryStore()
      return [storeIn(undefined, shared), storeIn(undefined, shared)]
    },
  ],
])('F-17 changes of one record follow each other, and see the one before, in %s', async (_, stores) => {
  const [one, other] = stores()
  one.write(KEY, { token: '' })
  let [running, most] = [0, 0]
  const add = (store: TokenStore, letter: string): Promise<void> =>
    store.exclusively(KEY, async () => {
      most = Math.max(most, ++running)
      const before = store.read(KEY)?.token ?? '?'
      await new Promise((resolve) => setImmediate(resolve))
      store.write(KEY, { token: before + letter })
      running--
    })
  await Promise.all([add(one, 'a'), add(other, 'b'), add(one, 'c')])
  expect(most).toBe(1)
  const last = await one.exclusively(KEY, async () => one.read(KEY)?.token ?? '')
  expect(last.split('').sort()).toEqual(['a', 'b', 'c'])
})

test('a change that fails lets the next one in, and its error is its caller’s', async () => {
  const store = storeIn(folder, new MemoryStore())
  const failing = store.exclusively(KEY, () => Promise.reject(new Error('no token')))
  const next = store.exclusively(KEY, async () => 'next')
  await expect(failing).rejects.toThrow('no token')
  expect(await next).toBe('next')
})

test('F-28 a store that is away delays no sign-in: the change goes on without it', async () => {
  class Away extends MemoryStore {
    override get(): Promise<string | undefined> {
      return Promise.reject(new StoreDown('away'))
    }
    override set(): Promise<void> {
      return Promise.reject(new StoreDown('away'))
    }
  }
  const store = storeIn(folder, new Away())
  await store.exclusively(KEY, async () => store.write(KEY, { token: 'a' }))
  expect(store.read(KEY)).toEqual({ token: 'a' })
})

/** A store that can be away for a while. */
class Leaving extends MemoryStore {
  isAway = false
  override get = (key: string): Promise<string | undefined> => (this.isAway ? this.#away() : super.get(key))
  override set = (key: string, value: string, ttlMs: number): Promise<void> =>
    this.isAway ? this.#away() : super.set(key, value, ttlMs)
  override claim = (key: string, value: string, ttlMs: number, instead?: string): Promise<string> =>
    this.isAway ? this.#away() : super.claim(key, value, ttlMs, instead)
  #away = (): Promise<never> => Promise.reject(new StoreDown('away'))
}

test('F-28 a lock that the store gave too late is given back, so that no other replica waits for its end', async () => {
  const locks: string[] = []
  class Late extends MemoryStore {
    override async claim(key: string, value: string, ttlMs: number): Promise<string> {
      locks.push(key)
      await super.claim(key, value, ttlMs)
      throw new StoreDown('no answer within 250 ms')
    }
  }
  const shared = new Late()
  expect(await storeIn(undefined, shared).exclusively(KEY, async () => 'renewed')).toBe('renewed')
  expect([locks.length, await shared.get(locks[0] ?? '')]).toEqual([1, undefined])
})

test('F-17 F-28 tokens that were renewed while the store was away are the ones that all replicas use when it is back', async () => {
  const shared = new Leaving()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  const write = (token: string): Promise<void> => one.exclusively(KEY, async () => one.write(KEY, { token }))
  const seenBy = (store: TokenStore): Promise<Token | undefined> => store.exclusively(KEY, async () => store.read(KEY))
  await write('before')
  expect(await seenBy(other)).toEqual({ token: 'before' })
  shared.isAway = true
  await write('renewed')
  shared.isAway = false
  // Also by a process that was started again.
  for (const each of [one, storeIn(folder, shared), other]) expect(await seenBy(each)).toEqual({ token: 'renewed' })
})

test.each([
  ['renewed', 'before'],
  ['made', undefined],
])('F-17 F-28 tokens that were %s while the store was away are shared when it is back', async (_, before) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'Date'], now: Date.now() })
  const shared = new Leaving()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  if (before !== undefined) one.write(KEY, { token: before })
  other.watch(KEY, () => undefined)
  await vi.waitFor(() => expect(other.read(KEY)?.token).toBe(before))
  vi.advanceTimersByTime(1_000)
  shared.isAway = true
  one.write(KEY, { token: 'renewed' })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(other.read(KEY)?.token).toBe(before)
  shared.isAway = false
  await vi.advanceTimersByTimeAsync(5_000)
  expect(other.read(KEY)).toEqual({ token: 'renewed' })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(vi.getTimerCount()).toBe(0)
  shared.isAway = true
  one.write(KEY, { token: 'at the end' })
  await vi.advanceTimersByTimeAsync(0)
  expect(vi.getTimerCount()).toBe(1)
  one.close()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(vi.getTimerCount()).toBe(0)
})

test('F-17 F-27 a sign-in that has ended replaces no later one, also where the clock of its replica is three minutes fast', async () => {
  const shared = new MemoryStore()
  const [fast, slow, third] = [storeIn(folder, shared), storeIn(undefined, shared), storeIn(undefined, shared)]
  const startMs = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], now: startMs + 180_000 })
  await fast.exclusively(KEY, async () => fast.write(KEY, { token: 'ended' }))
  await third.exclusively(KEY, async () => expect(third.read(KEY)).toEqual({ token: 'ended' }))
  await fast.exclusively(KEY, async () => fast.remove(KEY))
  vi.setSystemTime(startMs)
  await slow.exclusively(KEY, async () => slow.write(KEY, { token: 'later' }))
  for (const store of [third, slow, fast])
    expect(await store.exclusively(KEY, async () => store.read(KEY))).toEqual({ token: 'later' })
})

test('F-17 F-28 a record that one replica removes does not replace the one with which another has renewed it meanwhile', async () => {
  const shared = new Leaving()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  one.write(KEY, { token: 'before' })
  await other.exclusively(KEY, async () => expect(other.read(KEY)).toEqual({ token: 'before' }))
  vi.advanceTimersByTime(1_000)
  shared.isAway = true
  await other.exclusively(KEY, async () => other.write(KEY, { token: 'renewed' }))
  shared.isAway = false
  vi.advanceTimersByTime(1_000)
  one.remove(KEY)
  for (const store of [other, one])
    expect(await store.exclusively(KEY, async () => store.read(KEY))).toEqual({ token: 'renewed' })
})

test('F-17 a record that one replica removes is gone at all of them, and they are told', async () => {
  const shared = new MemoryStore()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  one.write(KEY, { token: 'a' })
  await other.exclusively(KEY, async () => expect(other.read(KEY)).toEqual({ token: 'a' }))
  const told = vi.fn()
  other.watch(KEY, told)
  one.remove(KEY)
  expect(one.read(KEY)).toBeUndefined()
  await vi.waitFor(() => expect(told).toHaveBeenCalledOnce())
  expect([other.read(KEY), storeIn(folder).read(KEY)]).toEqual([undefined, undefined])
})

test('F-17 a replica that still has a sign-in that has ended gets the next one, and does not replace it', async () => {
  const shared = new MemoryStore()
  const [one, other] = [storeIn(folder, shared), storeIn(undefined, shared)]
  for (const token of ['a', 'b', 'c']) one.write(KEY, { token })
  await other.exclusively(KEY, async () => expect(other.read(KEY)).toEqual({ token: 'c' }))
  await one.exclusively(KEY, async () => one.remove(KEY))
  // A person has signed in again.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 1_000 })
  await one.exclusively(KEY, async () => one.write(KEY, { token: 'again' }))
  expect(await other.exclusively(KEY, async () => other.read(KEY))).toEqual({ token: 'again' })
})
