/** Parts of the composition root: who watches calls, how long open calls are waited for, and where the state is kept. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { watchedBy } from '../../../src/app/call-watchers.ts'
import { CHILDREN_STOP_MS, untilAnswered } from '../../../src/app/drain.ts'
import { callNumbers, MEMBER_STRIDE } from '../../../src/app/member.ts'
import { applyConfiguration, holdAtMost, learnSecrets } from '../../../src/app/reload.ts'
import type { Reloadable } from '../../../src/app/reload.ts'
import { makeStateDir, openJournal, openSightings } from '../../../src/app/state-folder.ts'
import type { Configuration } from '../../../src/config/options.ts'
import type { Gateway } from '../../../src/gateway/gateway.ts'
import type { HostOptions } from '../../../src/host/options.ts'
import type { Observer } from '../../../src/observe/observer.ts'
import { HeldBytes } from '../../../src/transport/held-bytes.ts'

describe('calls are captured while at least one watches', () => {
  test('and no longer, however often one says that it is done', () => {
    // Casts: they are passed on.
    const observer = {} as Observer
    const context: { observer: Observer | undefined } = { observer: undefined }
    const observe = vi.fn<(by: Observer | undefined) => void>()
    const watch = watchedBy(observer, context, { observe } as unknown as Gateway)
    const [first, second] = [watch(), watch()]
    expect(context.observer).toBe(observer)
    first()
    first()
    expect(context.observer).toBe(observer)
    expect(observe.mock.lastCall).toEqual([observer])
    second()
    expect(context.observer).toBeUndefined()
    expect(observe.mock.lastCall).toEqual([undefined])
    const third = watch()
    expect([context.observer, observe.mock.lastCall]).toEqual([observer, [observer]])
    third()
    expect(observe.mock.lastCall).toEqual([undefined])
  })
})

describe('numbers of calls', () => {
  test('count from one in a single process', () => {
    const next = callNumbers(undefined)
    expect([next(), next(), next()]).toEqual([1, 2, 3])
  })

  test('increase with the time since the start of the supervisor, and within one millisecond, in each of several members', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const [first, third] = [0, 2].map((index) => callNumbers({ index, keys: [], sinceMs: 999_990 }))
    expect([first!(), first!()]).toEqual([1_000 * MEMBER_STRIDE, 1_001 * MEMBER_STRIDE])
    vi.setSystemTime(1_000_001)
    expect(third!()).toBe(1_100 * MEMBER_STRIDE + 2)
    expect(first!()).toBe(1_100 * MEMBER_STRIDE)
    // The clock was set back.
    vi.setSystemTime(1_000_000)
    expect(first!()).toBe(1_101 * MEMBER_STRIDE)
  })
})

test('messages take the memory that the limit names, and at most a quarter of the heap', () => {
  const quarter = Math.floor(getHeapStatistics().heap_size_limit / 4)
  const held = new HeldBytes()
  // Cast: the one limit that is read.
  const optionsOf = (maxInFlightBytes: number): HostOptions => ({ limits: { maxInFlightBytes } }) as HostOptions
  holdAtMost(held, optionsOf(1_000))
  expect(held.max).toBe(1_000)
  holdAtMost(held, optionsOf(quarter + 1))
  expect(held.max).toBe(quarter)
})

test('secrets of a configuration are learned, and hidden for as long as calls are kept', () => {
  const redactor = { learn: vi.fn<(secrets: unknown) => void>(), retainMs: 0 }
  const credentials = { learn: vi.fn<(secrets: unknown) => void>() }
  const configuration = { secrets: ['a'], credentials: ['b'], observe: { capture: { maxAgeMs: 7_000 } } }
  // Casts: what is read of each.
  learnSecrets(
    { redactor, credentials } as unknown as Parameters<typeof learnSecrets>[0],
    configuration as unknown as Configuration,
  )
  expect([redactor.learn.mock.calls, credentials.learn.mock.calls, redactor.retainMs]).toEqual([[[['a']]], [[['b']]], 7_000])
})

describe('open calls are waited for', () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }))
  const waited = async (inFlight: () => number, drainMs: number): Promise<{ isOver: boolean }> => {
    const state = { isOver: false }
    void untilAnswered(inFlight, drainMs).then(() => (state.isOver = true))
    await vi.advanceTimersByTimeAsync(0)
    return state
  }

  test('until there are none', async () => {
    let open = 1
    const state = await waited(() => open, CHILDREN_STOP_MS + 10_000)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(state.isOver).toBe(false)
    open = 0
    await vi.advanceTimersByTimeAsync(20)
    expect(state.isOver).toBe(true)
    expect((await waited(() => 0, CHILDREN_STOP_MS + 10_000)).isOver).toBe(true)
  })

  test('as long as the drain time leaves the servers enough', async () => {
    const state = await waited(() => 1, CHILDREN_STOP_MS + 1_000)
    await vi.advanceTimersByTimeAsync(990)
    expect(state.isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(30)
    expect(state.isOver).toBe(true)
    expect((await waited(() => 1, CHILDREN_STOP_MS - 1)).isOver).toBe(true)
  })
})

describe('the state folder', () => {
  let folder: string
  const warned: (readonly [object, string])[] = []
  const silent = { debug: () => undefined, info: () => undefined, error: () => undefined }
  const log = { ...silent, warn: (facts: object, text: string) => void warned.push([facts, text]) }
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-state-'))
    warned.length = 0
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('is made, for its owner alone, also where it was not', () => {
    const path = join(folder, 'a')
    expect(makeStateDir(path, log)).toBe(path)
    chmodSync(path, 0o755)
    expect(makeStateDir(path, log)).toBe(path)
    expect([statSync(path).mode & 0o777, warned]).toEqual([0o700, []])
  })

  test('that is none, or is not configured: all stays in memory, and the first is told', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    expect(makeStateDir(file, log)).toBeUndefined()
    expect(warned).toMatchObject([[{ folder: file }, 'the state folder cannot be used (state.dir); state is kept in memory']])
    warned.length = 0
    expect([makeStateDir(undefined, log), await openJournal(undefined, log), openSightings(undefined, log)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(warned).toEqual([])
  })

  test('of which the disk takes no journal: started processes are not written down, which is told', async () => {
    const path = join(folder, 'file')
    writeFileSync(path, '')
    expect(await openJournal(path, log)).toBeUndefined()
    expect(warned).toMatchObject([[{ folder: path }, 'processes cannot be recorded (state.dir): none is ended after a crash']])
  })

  test('has a journal, and what hosts are seen', async () => {
    mkdirSync(join(folder, 'b'))
    using journal = await openJournal(join(folder, 'b'), log)
    await using sightings = openSightings(join(folder, 'b'), log)
    expect([journal, sightings]).toEqual([expect.anything(), expect.anything()])
    expect(warned).toEqual([])
  })
})

test('a reload that the end overtakes starts no server', async () => {
  const prepared = Promise.withResolvers<undefined>()
  let isStopping = false
  const apply = vi.fn<() => void>()
  const redactor = { learn: () => undefined, retainMs: 0 }
  const [before, next] = [undefined, {}].map((audit) => ({ audit, servers: [], observe: { capture: { maxAgeMs: 0 } } }))
  const parts = {
    inForce: { configuration: before },
    redactor,
    credentials: redactor,
    memory: { learn: async () => undefined },
    audit: { prepare: () => prepared.promise },
    isBound: false,
    isStopping: () => isStopping,
    subjects: { want: () => undefined },
    fleet: { apply },
  }
  // Casts: parts and options that are used until then.
  const applied = applyConfiguration(parts as unknown as Reloadable, next as unknown as Configuration, new Set())
  isStopping = true
  prepared.resolve(undefined)
  await expect(applied).rejects.toThrow('the gateway is stopping')
  expect([apply.mock.calls, parts.inForce.configuration]).toEqual([[], before])
})
