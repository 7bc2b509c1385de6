/** Progress for one request of a host, and results that are streamed to it (BRIDGING 3.9). */
import { beforeEach, expect, test, vi } from 'vitest'
import { ProgressExchange } from '../../../src/host/response/progress.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { StreamedResult } from '../../../src/wire/result/streamed-result.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))

/** An exchange that cannot pass on streams. */
const onPipe = (): ProgressExchange =>
  new ProgressExchange({ message: () => undefined, answer: () => undefined, end: () => undefined }, '"p"', '1')

test('B136 progress of a task after the answer is limited to a burst and ten a second', () => {
  vi.advanceTimersByTime(10_000)
  const exchange = onPipe()
  const send = vi.fn<() => void>()
  let progress = 0
  const report = (count: number): number => {
    send.mockClear()
    for (let at = 0; at < count; at++) exchange.late(Payload.of({ progressToken: 7, progress: ++progress }), { send })
    return send.mock.calls.length
  }
  expect(report(1_000)).toBe(20)
  vi.advanceTimersByTime(300)
  expect(report(1_000)).toBe(3)
})

test('a streamed result that the transport cannot pass on is an error, and is not read', () => {
  const abort = vi.fn<() => void>()
  const onBroken = vi.fn<(error: unknown) => void>()
  // Cast: no more of it is used.
  onPipe().stream({ abort } as Partial<StreamedResult> as StreamedResult, '1', new Cancellation(), onBroken)
  expect(abort).toHaveBeenCalledOnce()
  expect(String(onBroken.mock.lastCall?.[0])).toContain('must be continued there')
})
