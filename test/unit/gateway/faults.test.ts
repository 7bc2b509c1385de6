/** Injected delays, over simulated time; what hosts see of faults is in test/integration/faults/injected.test.ts. */
import { beforeEach, expect, test, vi } from 'vitest'
import { Faults } from '../../../src/gateway/faults.ts'
import { complete } from '../../../src/rpc/call.ts'
import type { Handler } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

beforeEach(() => void vi.useFakeTimers())

/** A server behind one rule that delays calls, and the calls that have reached it. */
const delayed = (delayMs: number): { readonly handle: Handler; readonly reached: readonly string[] } => {
  const faults = new Faults({ warn: () => undefined })
  const reached: string[] = []
  faults.apply([
    {
      name: 'faults[0]',
      server: 'a',
      tools: undefined,
      methods: ['tools/call'],
      delayMs,
      kind: undefined,
      code: -32603,
      message: '',
      every: 1,
      share: 1,
    },
  ])
  const layer = faults.layerOf({ key: 'a', era: 'modern', idleMs: 1_000 })
  if (layer === undefined) throw new Error('no layer')
  const handle = layer(({ method }) => {
    reached.push(method)
    return Promise.resolve(complete(Payload.of({ content: [] })))
  })
  return { handle, reached }
}

test('a call reaches its server after the delay, and not before', async () => {
  const { handle, reached } = delayed(200)
  const outcome = handle(callOf({}))
  await vi.advanceTimersByTimeAsync(199)
  expect(reached).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(await outcome).toMatchObject({ kind: 'complete' })
  expect(reached).toEqual(['tools/call'])
})

test('a delay beyond the idle time of the server is a time-out after that time, and no call', async () => {
  const { handle, reached } = delayed(5_000)
  const failed = expect(handle(callOf({}))).rejects.toMatchObject({ kind: 'timeout', facts: { injected: 'faults[0]' } })
  await vi.advanceTimersByTimeAsync(1_000)
  await failed
  expect(reached).toEqual([])
})
