/** Links to a server whose callers are different principals, as they will be once hosts sign in (BRIDGING 3.0; 8.3). */
import { describe, expect, test, vi } from 'vitest'
import type { LinkOwner } from '../../../src/downstream/link-owner.ts'
import { listeners } from '../../../src/downstream/link-owner.ts'
import { Links } from '../../../src/downstream/links/links.ts'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../../src/downstream/options.ts'
import type { Sharing } from '../../../src/downstream/options.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { complete, EVERYTHING, ServerError } from '../../../src/rpc/call.ts'
import type { Call, HostSession, Outcome } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

interface Opened {
  readonly owner: LinkOwner
  readonly close: ReturnType<typeof vi.fn>
}

const makeLinks = (sharing: Sharing, isShared = false, limits = DEFAULT_LIMITS) => {
  const opened: Opened[] = []
  const clock = { nowMs: 0 }
  const sessionSeen = vi.fn()
  const options = {
    ...DEFAULT_SERVER,
    key: 'a',
    prefix: 'a',
    displayName: 'A',
    place: 'test',
    launch: undefined,
    url: undefined,
    sharing,
    timeouts: DEFAULT_TIMEOUTS,
    limits,
  }
  const links = new Links(options, {
    open: async (owner) => {
      const { promise, resolve } = Promise.withResolvers<undefined>()
      const close = vi.fn(async () => resolve(undefined))
      opened.push({ owner, close })
      return { closed: promise, close } as unknown as Link
    },
    sessionSeen,
    closed: () => undefined,
    isShared: () => isShared,
    nowMs: () => clock.nowMs,
  })
  return { links, opened, clock, sessionSeen, options }
}

const makeSession = (id: string) => {
  const callbacks = new Set<() => void>()
  const onEnd = (callback: () => void): (() => void) => {
    callbacks.add(callback)
    return () => void callbacks.delete(callback)
  }
  const session = { id, onEnd } as unknown as HostSession
  return { session, callbacks, end: () => callbacks.forEach((callback) => callback()) }
}

/** Hosts that say the same of themselves are known by the same object, whoever they are. */
const SAID = {}
const call = (principal: string, session?: HostSession, method = 'tools/call', target = 'x', capabilities: object = SAID): Call =>
  ({
    method,
    target,
    caller: { principal, session, capabilities, scope: EVERYTHING },
    signal: new Cancellation(),
  }) as unknown as Call

const done: Outcome = complete(Payload.of({}))
const task = (taskId: string, ttlMs: number | null = 1_000): Outcome => ({ kind: 'task', result: Payload.of({ taskId, ttlMs }) })
/** The link that a call ran on, as an index of what was opened. */
const run = async ({ links, opened }: ReturnType<typeof makeLinks>, made: Call, outcome = done): Promise<number> => {
  let at = -1
  await links.lease(made, async (_, link) => {
    at = opened.findIndex(({ close }) => close === link.close)
    return outcome
  })
  return at
}

test.each<[Sharing, number[]]>([
  ['session', [0, 1, 2, 3, 4, 0]],
  ['principal', [0, 0, 1, 0, 1, 0]],
  ['shared', [0, 0, 0, 0, 0, 0]],
  ['call', [0, 1, 2, 3, 4, 5]],
])('B046 with sharing: %s nobody meets whom he should not', async (sharing, expected) => {
  const world = makeLinks(sharing)
  const [one, two, three] = ['1', '2', '3'].map((id) => makeSession(id).session)
  const calls = [call('P', one), call('P', two), call('Q', three), call('P'), call('Q'), call('P', one)]
  const used: number[] = []
  for (const each of calls) used.push(await run(world, each))
  expect(used).toEqual(expected)
})

test('B037 hosts without a session that can answer other things have links of their own, whoever came last', async () => {
  const world = makeLinks('principal')
  const asking = { roots: {} }
  const calls = [SAID, asking, SAID, asking].map((said) => call('P', undefined, 'tools/call', 'x', said))
  const used: number[] = []
  for (const each of calls) used.push(await run(world, each))
  expect(used).toEqual([0, 1, 0, 1])
})

test('B047 with sharing: principal a session of which a server may see something else, as after a reload, gets another link', async () => {
  const world = makeLinks('principal')
  const { session } = makeSession('1')
  const used: number[] = []
  for (const seen of [SAID, { roots: {} }, SAID]) used.push(await run(world, call('P', session, 'tools/call', 'x', seen)))
  expect(used).toEqual([0, 1, 0])
})

test('B046 a call of a session that has ended leaves no link behind', async () => {
  const world = makeLinks('session')
  const session = { id: '1', onEnd: (callback: () => void) => (callback(), () => undefined) } as unknown as HostSession
  await run(world, call('P', session))
  expect([world.links.size, world.opened[0]?.close.mock.calls.length]).toEqual([0, 1])
})

test('B262 at limits.links the link that was idle longest is closed for a caller that needs another', async () => {
  const world = makeLinks('principal')
  const { opened, clock } = world
  const said = Array.from({ length: DEFAULT_LIMITS.maxLinks + 1 }, (_, at) => ({ roots: { at } }))
  const callOf = (at: number): Call => call('P', undefined, 'tools/call', 'x', said[at])
  for (let at = 0; at < DEFAULT_LIMITS.maxLinks; at++) {
    clock.nowMs++
    await run(world, callOf(at))
  }
  await run(world, callOf(0))
  await run(world, callOf(DEFAULT_LIMITS.maxLinks))
  expect(opened.map(({ close }) => close.mock.calls.length)).toEqual([
    0,
    1,
    ...Array<number>(DEFAULT_LIMITS.maxLinks - 1).fill(0),
  ])
})

describe('B262 at limits.links, with all links in use,', () => {
  const asking = (principal = 'P'): Call => call(principal, undefined, 'tools/call', 'x', { roots: {} })
  /** As many calls as there may be links; `ends` ends one of them. */
  const inUse = (limits = DEFAULT_LIMITS) => {
    const world = makeLinks('principal', true, limits)
    const held = Array.from({ length: DEFAULT_LIMITS.maxLinks }, () => Promise.withResolvers<Outcome>())
    const busy = held.map(({ promise }) => world.links.lease(asking(), () => promise))
    return { ...world, held, end: () => (held.forEach(({ resolve }) => resolve(done)), Promise.all(busy)) }
  }

  test('further calls wait, and each gets a link that becomes free, in order', async () => {
    const world = inUse()
    const ran: [number, number][] = []
    const further = [0, 1, 2].map((at) => run(world, asking()).then((link) => ran.push([at, link])))
    world.held[3]?.resolve(done)
    await Promise.all(further)
    expect(ran).toEqual([
      [0, 3],
      [1, 3],
      [2, 3],
    ])
    await world.end()
    expect(world.opened).toHaveLength(DEFAULT_LIMITS.maxLinks)
  })

  test('a caller of another principal does not wait', async () => {
    const world = inUse()
    const waiting = run(world, asking())
    expect(await run(world, asking('Q'))).toBe(DEFAULT_LIMITS.maxLinks)
    await world.end()
    expect(await waiting).toBeLessThan(DEFAULT_LIMITS.maxLinks)
  })

  test('a call is refused after ten seconds, and at once where limits.queue is reached', async () => {
    const refusal = { kind: 'overloaded', facts: { executed: 'no', retryable: true, limit: 'limits.links' } }
    vi.useFakeTimers()
    try {
      const world = inUse({ ...DEFAULT_LIMITS, maxQueued: 1 })
      const waiting = expect(run(world, asking())).rejects.toMatchObject(refusal)
      await expect(run(world, asking())).rejects.toMatchObject(refusal)
      await vi.advanceTimersByTimeAsync(10_000)
      await waiting
      await world.end()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a call that is cancelled while it waits leaves the link to the next one', async () => {
    const world = inUse()
    const cancelled = new Cancellation()
    const first = expect(run(world, { ...asking(), signal: cancelled })).rejects.toMatchObject({ kind: 'cancelled' })
    const second = run(world, asking())
    cancelled.abort()
    await first
    world.held[5]?.resolve(done)
    expect(await second).toBe(5)
    await world.end()
  })

  test('F-25 a reload that allows more lets those in that wait, no more than fit', async () => {
    const world = inUse()
    const further = [0, 1].map(() => run(world, asking()))
    const more = DEFAULT_LIMITS.maxLinks + 1
    world.links.adopt({ ...world.options, limits: { ...DEFAULT_LIMITS, maxLinks: more } })
    expect(await Promise.all(further)).toEqual([more - 1, more - 1])
    await world.end()
    expect(world.opened).toHaveLength(more)
  })

  test('a call that waits ends with the server', async () => {
    const world = inUse()
    const waiting = expect(run(world, asking())).rejects.toMatchObject({ kind: 'shutting_down' })
    await world.links.close()
    await waiting
    await world.end()
  })
})

test('B262 a caller that can be asked gets another link for a while after a call that failed on its own one', async () => {
  const world = makeLinks('principal', true)
  const asking = (): Call => call('P', undefined, 'tools/call', 'x', { roots: {} })
  expect(await run(world, asking())).toBe(0)
  const failing = world.links.lease(asking(), () => Promise.reject(new Failure('timeout', 'no answer')))
  await expect(failing).rejects.toThrow('no answer')
  expect(await run(world, asking())).toBe(1)
  world.clock.nowMs += 30_000
  expect(await run(world, asking())).toBe(0)
})

test('B262 at limits.links a link with a task is not closed for another caller', async () => {
  const world = makeLinks('principal')
  const { opened, clock } = world
  const callOf = (at: number): Call => call('P', undefined, 'tools/call', 'x', { roots: { at } })
  for (let at = 0; at < DEFAULT_LIMITS.maxLinks; at++) {
    clock.nowMs++
    await run(world, callOf(at), at === 0 ? task('1', null) : done)
  }
  await run(world, callOf(DEFAULT_LIMITS.maxLinks))
  expect(opened.slice(0, 3).map(({ close }) => close.mock.calls.length)).toEqual([0, 1, 0])
})

test('a link whose session has ended stays for the call that runs on it, and is closed with its end', async () => {
  const world = makeLinks('session')
  const { session, end } = makeSession('1')
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
  const running = world.links.lease(call('P', session), () => released.then(() => done))
  await vi.waitFor(() => expect(world.links.ofSession(session)).toHaveLength(1))
  end()
  expect([world.links.size, world.opened[0]?.close.mock.calls.length]).toEqual([1, 0])
  release(undefined)
  await running
  await vi.waitFor(() => expect(world.opened[0]?.close).toHaveBeenCalledOnce())
  expect(world.links.size).toBe(0)
})

test.each<Sharing>(['session', 'principal'])(
  'with sharing: %s the next call after the loss of a link opens another one',
  async (sharing) => {
    const world = makeLinks(sharing)
    const { session } = makeSession('1')
    const used = [await run(world, call('P', session)), await run(world, call('P', session))]
    await (world.opened[0]?.close as (() => Promise<void>) | undefined)?.()
    await vi.waitFor(() => expect(world.links.size).toBe(0))
    used.push(await run(world, call('P', session)))
    expect(used).toEqual([0, 0, 1])
  },
)

test('3.21 hosts of one principal without a session that call themselves differently at a bridge have links of their own', async () => {
  const world = makeLinks('principal')
  const named = (clientInfo: object | undefined): Call => {
    const made = call('P')
    return { ...made, caller: { ...made.caller, ...(clientInfo && { clientInfo }) } }
  }
  const [one, two] = [{ name: 'one' }, { name: 'two' }]
  const used: number[] = []
  for (const each of [one, two, one, undefined]) used.push(await run(world, named(each)))
  expect(used).toEqual([0, 1, 0, 2])
})

test('B048 the links of a caller are those of its session or of its principal, never of another', async () => {
  const world = makeLinks('session')
  const { session } = makeSession('1')
  for (const each of [call('P'), call('Q'), call('P', session)]) await run(world, each)
  const ownersOf = (principal: string, own?: HostSession): number[] =>
    world.links.ofCaller({ principal, session: own }).map(({ owner }) => world.opened.findIndex((each) => each.owner === owner))
  expect([ownersOf('P'), ownersOf('Q'), ownersOf('P', session), ownersOf('R')]).toEqual([[0], [1], [2], []])
})

test('B048 a call waits for its link to open only until it is open', async () => {
  const world = makeLinks('principal')
  const waited: number[] = []
  const made = call('P')
  const running = world.links.lease(made, async () => (waited.push(world.opened[0]!.owner.waiting.size), done))
  expect([...world.opened[0]!.owner.waiting]).toEqual([made])
  await running
  expect(waited).toEqual([0])
})

test('B051 B052 where principals mix, nobody is told or asked what belongs to no call', async () => {
  const world = makeLinks('shared')
  const { session } = makeSession('1')
  await run(world, call('P', session))
  expect(listeners(world.opened[0]!.owner)).toEqual([session])
  await run(world, call('Q', makeSession('2').session))
  expect(listeners(world.opened[0]!.owner)).toEqual([])
})

test('links that are closed leave nothing behind at a session that lives on', async () => {
  const world = makeLinks('session')
  const { session, callbacks } = makeSession('1')
  await run(world, call('P', session))
  expect(callbacks.size).toBe(1)
  await world.links.close()
  expect(callbacks.size).toBe(0)
})

test('once they are closed no link is opened, and no session uses the server: a call that had waited is refused unexecuted', async () => {
  const world = makeLinks('session')
  const { links, opened, sessionSeen } = world
  await run(world, call('P', makeSession('1').session))
  await links.close()
  const late = call('P', makeSession('2').session)
  const refusal = { kind: 'shutting_down', facts: { executed: 'no' } }
  await expect(run(world, late)).rejects.toMatchObject(refusal)
  await expect(links.opened(late.caller)).rejects.toMatchObject(refusal)
  expect([opened.length, links.size, sessionSeen.mock.calls.length]).toEqual([1, 0, 1])
})

test('a link that several sessions use forgets each that ends, as a user of it and as the last to call', async () => {
  const world = makeLinks('shared')
  const [one, two] = [makeSession('1'), makeSession('2')]
  for (const { session } of [one, two]) await run(world, call('P', session))
  const { owner, close } = world.opened[0]!
  expect([[...owner.sessions], owner.latest]).toEqual([[one.session, two.session], two.session])
  two.end()
  expect([[...owner.sessions], owner.latest]).toEqual([[one.session], one.session])
  one.end()
  expect([[...owner.sessions], owner.latest]).toEqual([[], undefined])
  expect(close).not.toHaveBeenCalled()
})

test('F-13 for a session that ended while the server was starting no link stays open, and none is opened for its call', async () => {
  const world = makeLinks('session')
  const { session } = makeSession('1')
  const ended = { ...session, onEnd: (callback: () => void) => (callback(), () => undefined) } as HostSession
  await world.links.opened(call('P', ended).caller)
  await vi.waitFor(() => expect(world.opened[0]?.close).toHaveBeenCalledOnce())
  expect(world.links.size).toBe(0)
  const cancelled = call('P', ended)
  ;(cancelled.signal as Cancellation).abort()
  await expect(run(world, cancelled)).rejects.toMatchObject({ kind: 'cancelled', executed: 'no' })
  expect(world.opened).toHaveLength(1)
})

test('a session is asked once to say when it ends, however many links it comes to use', async () => {
  const world = makeLinks('call')
  const { session, callbacks } = makeSession('1')
  for (let at = 0; at < 5; at++) await run(world, call('P', session))
  expect(callbacks.size).toBe(1)
  expect(world.links.size).toBe(0)
  expect(world.links.ofSession(session)).toEqual([])
})

describe('links with tasks', () => {
  const about = (id: string, principal: string, session?: HostSession) => call(principal, session, 'tasks/get', id)

  test('B177 of two tasks of one id each principal finds his own, and a session the one on its own link', async () => {
    const world = makeLinks('session')
    const [one, two, three] = ['1', '2', '3'].map((id) => makeSession(id).session)
    for (const [principal, session] of [
      ['P', one],
      ['P', two],
      ['Q', three],
    ] as const)
      await run(world, call(principal, session), task('1'))
    expect(await run(world, about('1', 'P', one))).toBe(0)
    expect(await run(world, about('1', 'P', two))).toBe(1)
    expect(await run(world, about('1', 'P'))).toBe(1)
    expect(await run(world, about('1', 'Q'))).toBe(2)
  })

  test.each<[string, (links: Links, owner: LinkOwner, clock: { nowMs: number }) => void]>([
    ['has ended', (links, owner) => links.taskEnded('1', owner)],
    ['has expired', (_, __, clock) => (clock.nowMs += 1_001)],
  ])('the link of an ended session stays until its task %s', async (_, finish) => {
    const world = makeLinks('session')
    const { session, end } = makeSession('1')
    const other = makeSession('2').session
    await run(world, call('P', session), task('1'))
    await run(world, call('P', other), task('1'))
    end()
    world.links.taskEnded('1', world.opened[1]!.owner)
    world.links.sweep()
    expect(world.links.size).toBe(2)
    finish(world.links, world.opened[0]!.owner, world.clock)
    world.links.sweep()
    expect(world.links.size).toBe(1)
    expect(world.links.ofSession(other)).toHaveLength(1)
  })

  test('B177 a task is not looked for on a link that is lost, where another one has it', async () => {
    const world = makeLinks('session')
    const [one, two] = ['1', '2'].map((id) => makeSession(id).session)
    for (const session of [one, two]) await run(world, call('P', session), task('1'))
    await (world.opened[1]?.close as (() => Promise<void>) | undefined)?.()
    await vi.waitFor(() => expect(world.links.size).toBe(1))
    expect(await run(world, about('1', 'P'))).toBe(0)
  })

  test('a link of one call stays while its task runs', async () => {
    const world = makeLinks('call')
    await run(world, call('P'), task('1', null))
    world.links.sweep()
    expect(await run(world, about('1', 'P'))).toBe(0)
    world.links.taskEnded('1', undefined)
    world.links.sweep()
    expect(world.links.size).toBe(0)
  })

  test('a result that is an error ends its task, too', async () => {
    const world = makeLinks('session')
    const { session, end } = makeSession('1')
    await run(world, call('P', session), task('1'))
    const failing = world.links.lease(call('P', session, 'tasks/result', '1'), () =>
      Promise.reject(new ServerError(-32603, 'it broke', Payload.of({}))),
    )
    await expect(failing).rejects.toThrow('it broke')
    end()
    expect(world.links.size).toBe(0)
  })
})
