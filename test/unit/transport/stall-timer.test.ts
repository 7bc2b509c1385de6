import { PassThrough } from 'node:stream'
import { beforeEach, expect, test, vi } from 'vitest'
import { StallTimer, takenBytes } from '../../../src/transport/stall-timer.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

/** A turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('F-21 the bytes of earlier writes count: the same rest of a later write is progress', async () => {
  const stalls: string[] = []
  const handle = { bytesWritten: 100, writeQueueSize: 40 }
  const stream = Object.assign(new PassThrough(), { _handle: handle })
  const timer = new StallTimer(stream, () => stalls.push('stalled'))
  timer.start(1_000)
  handle.bytesWritten = 200
  vi.advanceTimersByTime(1_000)
  await turn()
  expect(stalls).toEqual([])
  vi.advanceTimersByTime(1_000)
  await turn()
  expect(stalls).toEqual(['stalled'])
})

test.each<[string, (timer: StallTimer, handle: { writeQueueSize: number }) => void]>([
  ['a part of a write', (_, handle) => void (handle.writeQueueSize = 10)],
  ['a whole write, with more behind it', (timer) => timer.refresh()],
  ['everything', (timer) => timer.stop()],
])('F-27 after a pause of this process, %s that is taken before the turn ends is progress', async (_, take) => {
  const stalls: string[] = []
  const handle = { bytesWritten: 100, writeQueueSize: 40 }
  const stream = Object.assign(new PassThrough(), { _handle: handle })
  const timer = new StallTimer(stream, () => stalls.push('stalled'))
  timer.start(1_000)
  vi.advanceTimersByTime(1_000)
  take(timer, handle)
  await turn()
  expect(stalls).toEqual([])
})

test('F-21 below TLS the handle of the connection counts', () => {
  const inner = { bytesWritten: 500, writeQueueSize: 20 }
  const stream = Object.assign(new PassThrough(), { _handle: { bytesWritten: 400, writeQueueSize: 400, _parent: inner } })
  expect(takenBytes(stream)).toBe(480)
  expect(takenBytes(new PassThrough())).toBeUndefined()
})
