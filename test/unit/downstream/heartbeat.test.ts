/** Pings of a quiet link (F-14). */
import { beforeEach, expect, test, vi } from 'vitest'
import { Heartbeat } from '../../../src/downstream/health/heartbeat.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'

const PING_MS = 30_000

beforeEach(() => void vi.useFakeTimers())

/** A link whose pings are answered as the list says, and then always. */
const watch = (...answers: boolean[]) => watchLink({}, ...answers)

const watchLink = (facts: Partial<Link>, ...answers: boolean[]) => {
  const close = vi.fn(async () => undefined)
  const ping = vi.fn(async () => answers.shift() ?? true)
  const link = { transport: 'http', inFlight: 0, ping, close, closed: new Promise(() => undefined), ...facts }
  // Cast: what is used of a link.
  Heartbeat.watch(link as unknown as Link, new Sweeper(), () => PING_MS)
  return { close, ping }
}

test('F-14 a link that misses two pings one after the other is closed, no sooner', async () => {
  const { close, ping } = watch(false, true, false, false)
  await vi.advanceTimersByTimeAsync(PING_MS + 1_000)
  expect(ping).toHaveBeenCalledTimes(2)
  await vi.advanceTimersByTimeAsync(PING_MS - 2_000)
  expect(close).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(close).toHaveBeenCalled()
})

test('F-14 a link that answers is asked once in each silence and stays', async () => {
  const { close, ping } = watch()
  await vi.advanceTimersByTimeAsync(PING_MS - 1)
  expect(ping).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(ping).toHaveBeenCalledOnce()
  await vi.advanceTimersByTimeAsync(3 * PING_MS + 1_000)
  expect(ping).toHaveBeenCalledTimes(4)
  expect(close).not.toHaveBeenCalled()
})

test('F-14 a link is not asked again before it has answered', async () => {
  const answer = Promise.withResolvers<boolean>()
  const ping = vi.fn<() => Promise<boolean>>().mockReturnValueOnce(answer.promise).mockResolvedValue(true)
  const { close } = watchLink({ ping })
  await vi.advanceTimersByTimeAsync(3 * PING_MS)
  expect(ping).toHaveBeenCalledOnce()
  answer.resolve(false)
  await vi.advanceTimersByTimeAsync(2_000)
  expect([ping.mock.calls.length, close.mock.calls.length]).toEqual([2, 0])
})

test('F-14 a ping that is missed while a call is under way closes nothing: the server may be busy with the call', async () => {
  const facts = { inFlight: 0 }
  const ping = vi.fn(async () => {
    // The call comes while the second ping waits for its answer.
    facts.inFlight = ping.mock.calls.length - 1
    return false
  })
  const close = vi.fn(async () => undefined)
  const link = Object.assign(facts, { transport: 'http', ping, close, closed: new Promise(() => undefined) })
  // Cast: what is used of a link.
  Heartbeat.watch(link as unknown as Link, new Sweeper(), () => PING_MS)
  await vi.advanceTimersByTimeAsync(4 * PING_MS)
  expect([ping.mock.calls.length, close.mock.calls.length]).toEqual([2, 0])
})

test('F-14 a pipe is not asked: it reports its end itself', async () => {
  const { ping } = watchLink({ transport: 'pipe' })
  await vi.advanceTimersByTimeAsync(4 * PING_MS)
  expect(ping).not.toHaveBeenCalled()
})

test('F-14 a link with requests under way is not asked', async () => {
  const { ping } = watchLink({ inFlight: 1 })
  await vi.advanceTimersByTimeAsync(4 * PING_MS)
  expect(ping).not.toHaveBeenCalled()
})
