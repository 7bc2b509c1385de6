/** How the main link of one server is opened, kept and opened again, and what waiting calls get (F-04, F-08, B268, B289). Time is vitest's. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { STARTING } from '../../../src/downstream/health/health.ts'
import { MainLink } from '../../../src/downstream/health/main-link.ts'
import { initialState, ServerStates } from '../../../src/downstream/health/server-state.ts'
import { Supervisor } from '../../../src/downstream/health/supervisor.ts'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const CONNECT_TIMEOUT_MS = 30_000
const GRACE_MS = 5_000
const { firstMs, maxMs, minRetryMs, maxCrashes, crashLoopMs } = DEFAULT_BACKOFF
const REFUSED = new Failure('unreachable', 'connection refused', { limit: 'timeouts.start' })
const EXITED = new Failure('exited', 'exited with code 1')
const VERSION = new Failure('version', 'no common version')
const SIGN_IN = new Failure('auth_required', 'needs sign-in', { signIn: true })
const FORGOTTEN = new Failure('session_expired', 'no such session', { executed: 'no' })
const CLOSED = new Failure('lost', 'closed by the server', { retryable: true })

beforeEach(() => {
  vi.useFakeTimers()
  // Delays are as long as they may be.
  vi.spyOn(Math, 'random').mockReturnValue(1)
})

/** A link, and what was done to it. */
const makeLink = () => {
  const closed = Promise.withResolvers<Failure | undefined>()
  const retired = Promise.withResolvers<undefined>()
  const link = {
    closed: closed.promise,
    close: vi.fn<() => Promise<void>>(async () => closed.resolve(undefined)),
    retire: vi.fn<() => Promise<undefined>>(() => retired.promise),
    gateways: ['other'],
  }
  // Cast: what is used of a link.
  return { ...link, link: link as unknown as Link, end: closed.resolve, retired: () => retired.resolve(undefined) }
}
type Opened = ReturnType<typeof makeLink>

/** One attempt that waits for the test. */
interface Attempt {
  readonly atMs: number
  readonly isWanted: () => boolean
  /** Opens the link, whose lists are read then. */
  readonly open: () => Opened
  readonly read: () => void
  readonly fail: (error: unknown) => void
}

const start = ({ principal, mayConnect }: { principal?: string | undefined; mayConnect?: Promise<unknown> } = {}) => {
  const states = new ServerStates(initialState())
  const main = new MainLink(states)
  const attempts: Attempt[] = []
  const seen: string[] = []
  const note =
    (what: string) =>
    (facts: object, message: string): void =>
      void seen.push(`${what}: ${message}${'nextTryMs' in facts ? ` (${String(facts.nextTryMs)} ms)` : ''}`)
  const restarts = { ended: vi.fn<() => void>(), waitMs: 0 }
  const scene = { complaints: [] as string[], isCrash: false, reviewed: 0 }
  const supervisor = new Supervisor({
    // Casts: what is used of each.
    options: () => ({ key: 'a', timeouts: { connectTimeoutMs: CONNECT_TIMEOUT_MS, graceMs: GRACE_MS } }) as never,
    principal,
    environment: {
      backoff: DEFAULT_BACKOFF,
      limits: { hit: (limit: string, key: string) => void seen.push(`limit: ${limit} of ${key}`) },
      log: { info: note('info'), warn: note('warn'), error: note('error') },
      starts: { review: () => scene.reviewed++ },
    } as never,
    restarts: restarts as never,
    states,
    main,
    connect: (opened, isWanted) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const open = (): Opened => {
        const made = makeLink()
        opened(made.link)
        return made
      }
      attempts.push({ atMs: performance.now() - startMs, isWanted, open, read: resolve, fail: reject })
      return promise
    },
    isCrash: () => scene.isCrash,
    mayConnect: async () => mayConnect,
    complaints: () => scene.complaints,
    up: (_, isAgain) => void seen.push(isAgain ? 'up again' : 'up'),
    failed: () => void seen.push('failed'),
    givenUp: ({ message }) => void seen.push(`given up: ${message}`),
  })
  const startMs = performance.now()
  const settle = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(0))
  /** The attempt that is under way. */
  const current = (): Attempt => attempts.at(-1)!
  const fail = async (error: unknown): Promise<void> => {
    current().fail(error)
    await settle()
  }
  const bringUp = async (): Promise<Opened> => {
    const opened = current().open()
    current().read()
    await settle()
    return opened
  }
  /** A call that waits for the link: the link, or what it is told. */
  const call = () => {
    const state: { end?: unknown } = {}
    supervisor.ready().then(
      (link) => (state.end = link),
      (error: unknown) => (state.end = error),
    )
    return state
  }
  return { supervisor, states, main, attempts, seen, restarts, scene, settle, current, fail, bringUp, call }
}

describe('a server that is up', () => {
  test('rests until the next call, which opens another link; a call that comes meanwhile opens it at once', async () => {
    const { supervisor, attempts, call, bringUp, settle, seen, states } = start()
    supervisor.rest()
    supervisor.run()
    await settle()
    const { retire } = await bringUp()
    supervisor.rest()
    expect(retire).toHaveBeenCalledTimes(1)
    await settle()
    await vi.advanceTimersByTimeAsync(1e9)
    expect([attempts.length, states.now.health, states.now.link]).toEqual([1, STARTING, undefined])
    const first = call()
    await settle()
    const second = await bringUp()
    expect([attempts.length, first.end]).toEqual([2, second.link])
    supervisor.rest()
    const meanwhile = call()
    await settle()
    const third = await bringUp()
    expect([attempts.length, meanwhile.end]).toEqual([3, third.link])
    expect(seen.filter((what) => !what.startsWith('info'))).toEqual(['up', 'up again', 'up again'])
  })

  test('is connected once, and all calls get the one link, those that waited for it as well', async () => {
    const { supervisor, attempts, call, bringUp, settle, seen, states, scene } = start()
    supervisor.run()
    supervisor.run()
    await settle()
    const [one, other] = [call(), call()]
    await settle()
    expect([one.end, attempts.length, scene.reviewed]).toEqual([undefined, 1, 2])
    const { link } = await bringUp()
    const late = call()
    await settle()
    expect([one.end, other.end, late.end]).toEqual([link, link, link])
    expect([seen, states.now.health.state, attempts.length]).toEqual([['up'], 'healthy', 1])
  })

  test('is connected by its first call, too, and knows whether one waits', async () => {
    const { call, current, settle, bringUp, states } = start()
    const first = call()
    await settle()
    expect(current().isWanted()).toBe(true)
    expect(states.now.health.state).toBe('starting')
    const { link } = await bringUp()
    expect([first.end, current().isWanted()]).toEqual([link, false])
  })

  test('is not connected before it may be', async () => {
    const may = Promise.withResolvers<undefined>()
    const { supervisor, attempts, settle } = start({ mayConnect: may.promise })
    supervisor.run()
    await settle()
    expect(attempts).toHaveLength(0)
    may.resolve(undefined)
    await settle()
    expect(attempts).toHaveLength(1)
  })

  test('keeps a call waiting no longer than a connection may take, and goes on connecting', async () => {
    const { call, bringUp, attempts } = start()
    const first = call()
    await vi.advanceTimersByTimeAsync(CONNECT_TIMEOUT_MS - 1)
    expect(first.end).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(first.end).toMatchObject({ kind: 'starting', executed: 'no', retryable: true })
    const { link } = await bringUp()
    const second = call()
    await vi.advanceTimersByTimeAsync(0)
    expect([second.end, attempts.length]).toEqual([link, 1])
  })
})

describe('B289 a link that lasted and has ended', () => {
  test('is opened again at once, which is no failure, and its complaints end with it', async () => {
    const { supervisor, states, scene, bringUp, seen, settle, attempts, restarts } = start()
    supervisor.run()
    await settle()
    scene.complaints = ['two tools have one name']
    const opened = await bringUp()
    expect(states.now.health).toMatchObject({ state: 'degraded', reason: 'two tools have one name' })
    await vi.advanceTimersByTimeAsync(minRetryMs)
    opened.end(CLOSED)
    await settle()
    expect(attempts.map(({ atMs }) => atMs)).toEqual([0, minRetryMs])
    expect(states.now.health).toEqual({
      state: 'starting',
      reason: undefined,
      failure: undefined,
      failures: 0,
      nextTryAtMs: undefined,
    })
    scene.complaints = []
    await bringUp()
    expect(states.now.health.state).toBe('healthy')
    expect(seen).toEqual(['up', 'info: the link has ended and is opened again: closed by the server', 'up again'])
    expect(restarts.ended).not.toHaveBeenCalled()
  })

  test('after a moment only is opened after a wait, for which calls are kept within the grace time', async () => {
    const { supervisor, bringUp, settle, call, attempts, seen } = start()
    supervisor.run()
    await settle()
    const opened = await bringUp()
    await vi.advanceTimersByTimeAsync(minRetryMs - 1)
    opened.end(CLOSED)
    await settle()
    expect(attempts).toHaveLength(1)
    const waiting = call()
    await vi.advanceTimersByTimeAsync(1)
    expect(attempts.map(({ atMs }) => atMs)).toEqual([0, minRetryMs])
    const { link } = await bringUp()
    expect(waiting.end).toBe(link)
    expect(seen).toEqual(['up', `warn: closed by the server (${firstMs} ms)`, 'failed', 'up again'])
  })
})

test('a link that was closed without a reason is lost, and may be used again', async () => {
  const { supervisor, states, bringUp, settle } = start()
  supervisor.run()
  await settle()
  const opened = await bringUp()
  opened.end(undefined)
  await settle()
  expect(states.now.health.failure).toMatchObject({ kind: 'lost', message: 'the connection was closed', retryable: true })
})

describe('F-04 a server that cannot be reached', () => {
  test('is tried again after waits that double, and what is known of it is told', async () => {
    const { supervisor, states, attempts, fail, seen, settle } = start()
    supervisor.run()
    await settle()
    for (const waitMs of [firstMs, 2 * firstMs, 4 * firstMs]) {
      const count = attempts.length
      await fail(REFUSED)
      expect(states.now.health).toMatchObject({
        state: 'down',
        reason: 'connection refused',
        failures: 1,
        nextTryAtMs: performance.now() + waitMs,
      })
      await vi.advanceTimersByTimeAsync(waitMs - 1)
      expect(attempts).toHaveLength(count)
      await vi.advanceTimersByTimeAsync(1)
      expect([attempts.length, states.now.health.nextTryAtMs]).toEqual([count + 1, undefined])
    }
    const told = (waitMs: number): string[] => ['limit: timeouts.start of a', `warn: connection refused (${waitMs} ms)`, 'failed']
    expect(seen).toEqual([...told(firstMs), ...told(2 * firstMs), ...told(4 * firstMs)])
  })

  test.each([
    [20_000, 20_000],
    [3_600_000, 30_000],
  ])('5.3 and asks for a wait of %i ms is not tried again before %i ms, by a call neither', async (retryAfterMs, waitMs) => {
    const { attempts, call, current, fail, settle } = start()
    call()
    await settle()
    const busy = new Failure('downstream_error', 'HTTP 503', { status: 503, retryAfterMs })
    await fail(busy)
    await vi.advanceTimersByTimeAsync(waitMs - 1)
    const tooSoon = call()
    await settle()
    expect([attempts.length, tooSoon.end]).toEqual([1, expect.objectContaining({ kind: 'downstream_error' })])
    await vi.advanceTimersByTimeAsync(1)
    expect([attempts.length, current().atMs]).toEqual([2, waitMs])
  })

  test('answers calls that wait with its failure, and those that come too soon at once; then a call brings the next attempt', async () => {
    const { attempts, fail, call, settle, bringUp, seen } = start()
    const first = call()
    for (let failed = 0; failed < 6; failed++) {
      await settle()
      await fail(REFUSED)
      await vi.advanceTimersByTimeAsync(maxMs)
    }
    await fail(REFUSED)
    expect(first.end).toMatchObject({ kind: 'unreachable', executed: 'no', facts: { state: 'down' } })
    const count = attempts.length
    // The attempt itself took longer than the time between attempts.
    const second = call()
    await settle()
    expect(attempts).toHaveLength(count + 1)
    await fail(REFUSED)
    expect(second.end).toMatchObject({ kind: 'unreachable' })
    const tooSoon = call()
    await settle()
    expect([attempts.length, tooSoon.end]).toEqual([count + 1, expect.objectContaining({ kind: 'unreachable' })])
    await vi.advanceTimersByTimeAsync(minRetryMs)
    const third = call()
    await settle()
    expect(attempts).toHaveLength(count + 2)
    const { link } = await bringUp()
    expect(third.end).toBe(link)
    expect(seen.at(-1)).toBe('up again')
  })

  test('and has answered the calls that waited is tried again after the whole wait', async () => {
    const { supervisor, attempts, fail, call, settle } = start()
    supervisor.run()
    await settle()
    for (const waitMs of [firstMs, 2 * firstMs, 4 * firstMs, 8 * firstMs]) {
      await fail(REFUSED)
      await vi.advanceTimersByTimeAsync(waitMs)
    }
    const waiting = call()
    await settle()
    await fail(REFUSED)
    expect(waiting.end).toMatchObject({ kind: 'unreachable' })
    await vi.advanceTimersByTimeAsync(16 * firstMs - 1)
    expect(attempts).toHaveLength(5)
    await vi.advanceTimersByTimeAsync(1)
    expect(attempts).toHaveLength(6)
  })

  test('is asked by `tried` for one attempt, which never fails', async () => {
    const { supervisor, fail, settle } = start()
    let isTried = false
    void supervisor.tried().then(() => (isTried = true))
    await settle()
    expect(isTried).toBe(false)
    await fail(REFUSED)
    expect(isTried).toBe(true)
  })

  test('is tried again at once where a person asks', async () => {
    const { supervisor, states, fail, settle, attempts, call } = start()
    supervisor.run()
    await settle()
    await fail(REFUSED)
    supervisor.retryNow()
    expect(states.now.health.state).toBe('starting')
    const waiting = call()
    await settle()
    expect([attempts.length, waiting.end]).toEqual([2, undefined])
    // Again, after the first wait would have ended and before the second one ends.
    await fail(REFUSED)
    await vi.advanceTimersByTimeAsync(firstMs + 100)
    expect(attempts).toHaveLength(2)
    supervisor.retryNow()
    await settle()
    expect(attempts).toHaveLength(3)
  })

  test('within the grace time is tried again as soon as it may be while a call waits', async () => {
    const { supervisor, settle, bringUp, fail, call, attempts, states } = start()
    supervisor.run()
    await settle()
    const opened = await bringUp()
    await vi.advanceTimersByTimeAsync(60_000)
    opened.end(CLOSED)
    await settle()
    const waiting = call()
    for (const waitMs of [firstMs, 2 * firstMs, 4 * firstMs]) {
      await fail(REFUSED)
      await vi.advanceTimersByTimeAsync(waitMs)
    }
    await fail(REFUSED)
    expect([states.now.health.state, attempts.length]).toEqual(['starting', 5])
    await vi.advanceTimersByTimeAsync(minRetryMs)
    // The wait is twice as long.
    expect([attempts.length, waiting.end]).toEqual([6, undefined])
  })

  test('fails with what was not foreseen as well, and its link is closed', async () => {
    const { supervisor, states, settle, current, fail } = start()
    supervisor.run()
    await settle()
    const opened = current().open()
    await fail(new TypeError('x is undefined'))
    expect(opened.close).toHaveBeenCalledOnce()
    expect(states.now.health.failure).toMatchObject({
      kind: 'bad_response',
      message: 'the handshake failed: TypeError: x is undefined',
      executed: 'no',
    })
  })

  test('which was not opened at all is no server that is up', async () => {
    const { supervisor, states, settle, current } = start()
    supervisor.run()
    await settle()
    current().read()
    await settle()
    expect([states.now.link, states.now.health.failure]).toEqual([undefined, expect.objectContaining({ kind: 'shutting_down' })])
  })
})

describe('F-04 a process that ends by itself', () => {
  test('is started again when restarts allow it, and not earlier by a call', async () => {
    const { supervisor, scene, restarts, bringUp, settle, attempts, seen, call } = start()
    supervisor.run()
    await settle()
    const opened = await bringUp()
    await vi.advanceTimersByTimeAsync(60_000)
    scene.isCrash = true
    restarts.waitMs = 20_000
    opened.end(EXITED)
    await settle()
    expect(restarts.ended).toHaveBeenCalledOnce()
    expect(seen).toEqual(['up', 'limit: limits.restarts of a', 'warn: exited with code 1 (20000 ms)', 'failed'])
    const early = call()
    await vi.advanceTimersByTimeAsync(19_999)
    // Longer than the grace time: nothing waits.
    expect([attempts.length, early.end]).toEqual([1, expect.objectContaining({ kind: 'exited' })])
    await vi.advanceTimersByTimeAsync(1)
    expect(attempts).toHaveLength(2)
  })

  test('is kept for calls within the grace time, and counts against no limit where restarts are left', async () => {
    const { supervisor, scene, bringUp, settle, attempts, seen, call } = start()
    supervisor.run()
    await settle()
    const opened = await bringUp()
    await vi.advanceTimersByTimeAsync(60_000)
    scene.isCrash = true
    opened.end(EXITED)
    await settle()
    const waiting = call()
    await settle()
    expect([attempts.length, waiting.end]).toEqual([2, undefined])
    const { link } = await bringUp()
    expect(waiting.end).toBe(link)
    expect(seen).toEqual(['up', `warn: exited with code 1 (${firstMs} ms)`, 'failed', 'up again'])
  })

  test('after a minute of health is started as early as after the first end', async () => {
    const { supervisor, scene, settle, bringUp, seen } = start()
    await vi.advanceTimersByTimeAsync(60_000)
    scene.isCrash = true
    supervisor.run()
    await settle()
    for (const [upMs, waitMs] of [
      [10_000, firstMs],
      [59_999, 2 * firstMs],
      [60_000, firstMs],
    ] as const) {
      const opened = await bringUp()
      await vi.advanceTimersByTimeAsync(upMs)
      opened.end(EXITED)
      await settle()
      expect(seen).toContain(`warn: exited with code 1 (${waitMs} ms)`)
      seen.length = 0
      await vi.advanceTimersByTimeAsync(waitMs)
    }
  })

  test('again and again is started seldom, and calls do not change that', async () => {
    const { supervisor, scene, settle, attempts, fail, call } = start()
    scene.isCrash = true
    supervisor.run()
    await settle()
    for (let crash = 1; crash <= maxCrashes; crash++) {
      if (crash > 1) await vi.advanceTimersByTimeAsync(firstMs * 2 ** (crash - 2))
      await fail(EXITED)
    }
    expect(attempts).toHaveLength(maxCrashes)
    await vi.advanceTimersByTimeAsync(crashLoopMs - 1)
    const early = call()
    await settle()
    expect([attempts.length, early.end]).toEqual([maxCrashes, expect.objectContaining({ kind: 'exited' })])
    await vi.advanceTimersByTimeAsync(1)
    expect(attempts).toHaveLength(maxCrashes + 1)
  })
})

describe('F-08 a server that only a person can help', () => {
  test('is given up, and tried again when a person asks', async () => {
    const { supervisor, states, fail, call, settle, attempts, seen, bringUp } = start()
    const waiting = call()
    await settle()
    await fail(VERSION)
    expect(states.now.health.state).toBe('failed')
    expect(waiting.end).toMatchObject({ kind: 'version', facts: { state: 'failed' } })
    expect(seen).toEqual(['error: no common version', 'failed', 'given up: no common version'])
    await vi.advanceTimersByTimeAsync(crashLoopMs)
    expect(attempts).toHaveLength(1)
    supervisor.retryNow()
    await settle()
    expect(attempts).toHaveLength(2)
    await bringUp()
    expect([states.now.health.state, seen.at(-1)]).toEqual(['healthy', 'up again'])
  })

  test.each([
    ['the operator', undefined, 'warn'],
    ['a principal', 'alice', 'info'],
  ])('for want of a sign-in of %s is logged once until it was up', async (_, principal, level) => {
    const { supervisor, fail, settle, bringUp, seen } = start({ principal })
    const logged = (): number => seen.filter((line) => line === `${level}: needs sign-in`).length
    supervisor.run()
    await settle()
    for (let times = 0; times < 2; times++) {
      await fail(SIGN_IN)
      expect(logged()).toBe(1)
      supervisor.retryNow()
      await settle()
    }
    const { end } = await bringUp()
    end(SIGN_IN)
    await settle()
    expect(logged()).toBe(2)
  })
})

describe('a server that is stopped', () => {
  test('while it is up keeps its link until that is closed, and is not connected again', async () => {
    const { supervisor, states, settle, bringUp, attempts, main } = start()
    supervisor.run()
    await settle()
    const opened = await bringUp()
    let isComplete = false
    states.health$.subscribe({ complete: () => (isComplete = true) })
    supervisor.drain()
    expect([states.now.health.state, main.current]).toEqual(['draining', opened.link])
    const ended = supervisor.ended()
    await vi.advanceTimersByTimeAsync(maxMs)
    expect(isComplete).toBe(false)
    await main.close()
    await ended
    supervisor.run()
    await settle()
    expect([isComplete, attempts.length, opened.close.mock.calls.length]).toEqual([true, 1, 1])
  })

  test('while it waits for the next attempt makes none', async () => {
    const { supervisor, settle, fail, attempts, call } = start()
    supervisor.run()
    await settle()
    await fail(REFUSED)
    supervisor.drain()
    const ended = supervisor.ended()
    await settle()
    await ended
    await vi.advanceTimersByTimeAsync(maxMs)
    const late = call()
    await settle()
    expect([attempts.length, late.end]).toEqual([1, expect.objectContaining({ kind: 'shutting_down' })])
  })

  test('while it is connected fails the calls that wait at once, and closes what was opened', async () => {
    const { supervisor, settle, current, call, seen } = start()
    const waiting = call()
    await settle()
    supervisor.drain()
    await settle()
    expect(waiting.end).toMatchObject({ kind: 'shutting_down', executed: 'no' })
    // A start that waits for its turn need not wait.
    expect(current().isWanted()).toBe(true)
    const opened = current().open()
    current().read()
    await supervisor.ended()
    expect([opened.close.mock.calls.length, seen]).toEqual([1, []])
  })

  test('before it may be connected is not', async () => {
    const may = Promise.withResolvers<undefined>()
    const { supervisor, attempts } = start({ mayConnect: may.promise })
    supervisor.run()
    supervisor.drain()
    may.resolve(undefined)
    await supervisor.ended()
    expect(attempts).toHaveLength(0)
  })
})

describe('B268 a link that takes no calls any more', () => {
  test('is replaced at once where the server has forgotten its session; its pending calls end first', async () => {
    const { supervisor, main, settle, bringUp, attempts, seen } = start()
    supervisor.run()
    await settle()
    expect(main.gateways).toEqual([])
    const old = await bringUp()
    expect(main.gateways).toEqual(['other'])
    await vi.advanceTimersByTimeAsync(minRetryMs)
    await expect(main.over(old.link, () => Promise.reject(FORGOTTEN))).rejects.toBe(FORGOTTEN)
    await settle()
    expect([attempts.length, main.current]).toEqual([2, undefined])
    expect([old.retire.mock.calls.length, old.close.mock.calls.length]).toEqual([1, 0])
    expect(seen.at(-1)).toBe('info: the link has ended and is opened again: the connection was closed')
    const next = await bringUp()
    // Another call over the old link learns the same: the new one stays.
    await expect(main.over(old.link, () => Promise.reject(FORGOTTEN))).rejects.toBe(FORGOTTEN)
    expect(main.current).toBe(next.link)
    await main.close()
    expect([old.close.mock.calls.length, next.close.mock.calls.length]).toEqual([1, 1])
  })

  test('and has no calls left is not closed again', async () => {
    const { supervisor, main, settle, bringUp } = start()
    supervisor.run()
    await settle()
    const old = await bringUp()
    main.giveUp(old.link)
    old.retired()
    await settle()
    await main.close()
    expect(old.close).not.toHaveBeenCalled()
  })

  test('for a reason that a person must remove ends with that reason', async () => {
    const { supervisor, main, states, settle, bringUp, seen } = start()
    supervisor.run()
    await settle()
    const { link } = await bringUp()
    await expect(main.over(link, () => Promise.reject(SIGN_IN))).rejects.toBe(SIGN_IN)
    await settle()
    expect([states.now.health.state, seen.at(-1)]).toEqual(['failed', 'given up: needs sign-in'])
  })

  test('is not the one over which a call fails or succeeds otherwise', async () => {
    const { supervisor, main, settle, bringUp } = start()
    supervisor.run()
    await settle()
    const { link, retire } = await bringUp()
    expect(await main.over(link, async () => 'done')).toBe('done')
    for (const error of [CLOSED, REFUSED, new Error('no'), new Failure('session_expired', 'may have run')])
      await expect(main.over(link, () => Promise.reject(error))).rejects.toBe(error)
    expect([main.current, retire.mock.calls.length]).toEqual([link, 0])
  })
})
