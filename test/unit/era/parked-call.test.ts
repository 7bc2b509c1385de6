/** One parked call and its times (BRIDGING 3.13, rule 4). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ParkedCall } from '../../../src/era/host/parked-call.ts'
import { complete } from '../../../src/rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const TTL_MS = 1_000
const OPTIONS = { ttlMs: TTL_MS, maxParked: 9, maxPerPrincipal: 9, coalesceMs: 10 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const open = () => {
  const nonces: string[] = []
  const expired = vi.fn()
  const parked = new ParkedCall('P', OPTIONS, {
    issue: (nonce) => (nonces.push(nonce), nonce),
    limitReached: () => undefined,
    expired,
    onEnd: () => undefined,
  })
  const call = (params: object): Call =>
    ({ params: Payload.of(params), signal: new Cancellation().signal, notify: () => undefined }) as unknown as Call
  const question = { method: 'elicitation/create', params: Payload.of({ message: 'Sure?' }) } as unknown as Question
  return { parked, nonces, expired, call, question }
}

test('B076 a call that was resumed in time goes on for as long as its server needs', async () => {
  const { parked, nonces, expired, call, question } = open()
  const server = Promise.withResolvers<Outcome>()
  const first = parked.start(call({}), async ({ ask }) => {
    await (ask as (asked: Question) => Promise<Answer>)(question)
    return server.promise
  })
  await vi.advanceTimersByTimeAsync(10)
  expect(await first).toMatchObject({ kind: 'input_required' })
  await vi.advanceTimersByTimeAsync(TTL_MS - 1)
  const resumed = parked.resume(call({ inputResponses: { 'input-1': { action: 'accept', content: {} } } }), nonces[0] ?? '')
  await vi.advanceTimersByTimeAsync(5 * TTL_MS)
  server.resolve(complete(Payload.of({})))
  expect(await resumed).toMatchObject({ kind: 'complete' })
  expect(expired).not.toHaveBeenCalled()
})

test('B076 a call that nobody comes back for is given up when its time is over', async () => {
  const { parked, expired, call, question } = open()
  const first = parked.start(call({}), async ({ ask }) => {
    await (ask as (asked: Question) => Promise<Answer>)(question)
    return complete(Payload.of({}))
  })
  await vi.advanceTimersByTimeAsync(10)
  await first
  await vi.advanceTimersByTimeAsync(TTL_MS)
  expect(expired).toHaveBeenCalledOnce()
})
