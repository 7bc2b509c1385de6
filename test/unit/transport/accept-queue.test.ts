/** When a listener closes while the event loop has no rest. What real connections see of it: plain-http.test.ts. */
import { MessageChannel } from 'node:worker_threads'
import { expect, test, vi } from 'vitest'
import { onceAllAreAccepted } from '../../../src/transport/http1/server/connection/accept-queue.ts'

/** Something happens in every turn of the event loop. */
const busyLoop = (): Disposable => {
  const { port1, port2 } = new MessageChannel()
  port1.on('message', () => setImmediate(() => port2.postMessage(0)))
  port2.postMessage(0)
  return { [Symbol.dispose]: () => port1.close() }
}

test('F-22 where the event loop has no rest, the listener closes in a turn without a new connection', async () => {
  using _loop = busyLoop()
  const seen: number[] = []
  let nowMs = 0
  using _clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const accepted = (): number => {
    // A turn takes 10 ms; the flood is shorter than the 500 ms for which one puts the close off.
    nowMs += 10
    seen.push(nowMs < 300 ? seen.length : -1)
    return seen.at(-1) ?? 0
  }
  await new Promise<void>((resolve) => onceAllAreAccepted(accepted, resolve))
  expect(seen.slice(-2)).toEqual([-1, -1])
})

test('F-22 a flood of new connections does not put the close off for good', async () => {
  using _ = busyLoop()
  let accepted = 0
  await new Promise<void>((resolve) => onceAllAreAccepted(() => accepted++, resolve))
  expect(accepted).toBeGreaterThan(1)
})
