/** The back-off of callers whose processes end soon after they were started (F-04). */
import { beforeEach, expect, test, vi } from 'vitest'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { LinkStarts } from '../../../src/downstream/pacing/link-starts.ts'
import { Restarts } from '../../../src/downstream/pacing/restarts.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const MAX_WAIT_MS = 30_000

beforeEach(() => {
  vi.useFakeTimers()
  // Delays are as long as they may be.
  vi.spyOn(Math, 'random').mockReturnValue(1)
})

const makeStarts = (maxRestarts = 100) => {
  const nowMs = (): number => performance.now()
  const starts = new LinkStarts(DEFAULT_BACKOFF, nowMs, new Restarts(() => maxRestarts, nowMs), () => true)
  const open = vi.fn<() => Promise<Link>>().mockRejectedValue(new Failure('exited', 'it has ended'))
  return { starts, open, start: (maxWaitMs = MAX_WAIT_MS) => starts.open('a', maxWaitMs, open) }
}

test('F-04 a caller whose process has ended waits for the next one', async () => {
  const { open, start } = makeStarts()
  await expect(start()).rejects.toMatchObject({ kind: 'exited' })
  const second = start()
  second.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(1)
  expect(open).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(DEFAULT_BACKOFF.firstMs)
  expect(open).toHaveBeenCalledTimes(2)
})

test('the stop of its server ends the wait: the attempt is made at once, and no timer is left', async () => {
  const { starts, open, start } = makeStarts()
  await expect(start()).rejects.toMatchObject({ kind: 'exited' })
  open.mockRejectedValue(new Failure('shutting_down', 'the server is being stopped'))
  const second = start()
  starts.close()
  await expect(second).rejects.toMatchObject({ kind: 'shutting_down' })
  await expect(start()).rejects.toMatchObject({ kind: 'shutting_down' })
  expect(vi.getTimerCount()).toBe(0)
})

test('F-04 a caller waits as long as it may, and is refused at once where it would have to wait longer', async () => {
  const { open, start } = makeStarts()
  await expect(start()).rejects.toMatchObject({ kind: 'exited' })
  await expect(start(DEFAULT_BACKOFF.firstMs - 1)).rejects.toMatchObject({
    kind: 'exited',
    retryable: true,
    facts: { executed: 'no', retryAfterMs: DEFAULT_BACKOFF.firstMs },
  })
  start(DEFAULT_BACKOFF.firstMs).catch(() => undefined)
  await vi.advanceTimersByTimeAsync(DEFAULT_BACKOFF.firstMs)
  expect(open).toHaveBeenCalledTimes(2)
})

test('F-04 processes that end count against limits.restarts, whose wait is a wait like any other', async () => {
  const { open, start } = makeStarts(1)
  await expect(start()).rejects.toMatchObject({ kind: 'exited' })
  await expect(start(59_999)).rejects.toMatchObject({ kind: 'overloaded', facts: { limit: 'limits.restarts' } })
  start(60_000).catch(() => undefined)
  await vi.advanceTimersByTimeAsync(59_999)
  expect(open).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(open).toHaveBeenCalledTimes(2)
})

/** How long the next start waits. */
const nextWaitMs = async ({ open, start }: ReturnType<typeof makeStarts>): Promise<number> => {
  const [sinceMs, count] = [performance.now(), open.mock.calls.length]
  start().catch(() => undefined)
  await vi.advanceTimersByTimeAsync(0)
  while (open.mock.calls.length === count) await vi.advanceTimersToNextTimerAsync()
  return performance.now() - sinceMs
}

test('F-04 the waits double, and begin anew two minutes after the last of them', async () => {
  const world = makeStarts()
  const waits: number[] = []
  for (let at = 0; at < 4; at++) waits.push(await nextWaitMs(world))
  // The wait after the last one is 4 s.
  await vi.advanceTimersByTimeAsync(4_000 + DEFAULT_BACKOFF.windowMs - 1)
  waits.push(await nextWaitMs(world), await nextWaitMs(world))
  await vi.advanceTimersByTimeAsync(8_000 + 16_000 + DEFAULT_BACKOFF.windowMs)
  waits.push(await nextWaitMs(world), await nextWaitMs(world))
  expect(waits).toEqual([0, 500, 1_000, 2_000, 0, 8_000, 0, 500])
})

test.each<[string, upMs: number, failure: Failure | undefined, waitMs: number]>([
  ['was closed by us is followed by no wait', 0, undefined, 0],
  ['ended soon adds to the wait', 59_999, new Failure('lost', 'it has ended'), 1_000],
  ['lasted a minute and ended begins the waits anew', 60_000, new Failure('lost', 'it has ended'), 500],
])('F-04 a link that %s', async (_, upMs, failure, waitMs) => {
  const world = makeStarts()
  const closed = Promise.withResolvers<Failure | undefined>()
  await nextWaitMs(world)
  // Cast: what is used of a link.
  world.open.mockResolvedValueOnce({ closed: closed.promise } as unknown as Link)
  expect(await nextWaitMs(world)).toBe(500)
  await vi.advanceTimersByTimeAsync(upMs)
  closed.resolve(failure)
  await vi.advanceTimersByTimeAsync(0)
  expect(await nextWaitMs(world)).toBe(waitMs)
})
