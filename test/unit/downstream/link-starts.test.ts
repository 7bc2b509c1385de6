/** The back-off of callers whose processes end soon after they were started (F-04). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { LinkStarts } from '../../../src/downstream/pacing/link-starts.ts'
import { Restarts } from '../../../src/downstream/pacing/restarts.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const MAX_WAIT_MS = 30_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const makeStarts = () => {
  const nowMs = (): number => performance.now()
  const starts = new LinkStarts(DEFAULT_BACKOFF, nowMs, new Restarts(() => 10, nowMs))
  const open = vi.fn<() => Promise<Link>>().mockRejectedValue(new Failure('exited', 'it has ended'))
  return { starts, open, start: () => starts.open('a', MAX_WAIT_MS, open) }
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
