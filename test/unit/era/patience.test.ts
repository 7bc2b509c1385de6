/** How long a legacy server may be silent while somebody thinks about what it asked (BRIDGING 3.9). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { LegacyLink } from '../../../src/era/server/legacy-link.ts'
import type { Answer, HostSession } from '../../../src/rpc/call.ts'
import { Connection } from '../../../src/rpc/connection.ts'
import { Sweeper } from '../../../src/rpc/sweeper.ts'
import type { Channel, ChannelEvents } from '../../../src/transport/channel/channel.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const LIMITS = { idleMs: 1_000, totalMs: 60_000, startMs: 1_000 }

/** A call under way to a server on a pipe; `ask`: the server asks for input. */
const begin = async (sweeper: Sweeper, call = callOf()) => {
  const events = Promise.withResolvers<ChannelEvents>()
  const channel: Channel = {
    kind: 'pipe',
    open: (given) => Promise.resolve(events.resolve(given)),
    send: () => true,
    abandon: () => undefined,
    closed: new Promise(() => undefined),
    close: () => Promise.resolve(),
  }
  const connection = new Connection(channel, sweeper)
  await connection.open()
  const answers: ((answer: Answer) => void)[] = []
  const ignore = (): void => undefined
  const ask = (): Promise<Answer> => new Promise((resolve) => answers.push(resolve))
  const told = {
    listChanged: ignore,
    updated: ignore,
    taskChanged: ignore,
    message: ignore,
    vendor: ignore,
    elicitationComplete: ignore,
  }
  const link = new LegacyLink(connection, { ...told, ask, violation: ignore }, () => LIMITS)
  let end = ''
  link.handle(call).catch((error: Error) => (end = error.message))
  const { receive } = await events.promise.then((given) => ({ receive: given.receive.bind(given) }))
  return {
    ask: (id: number) =>
      receive(readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: {} })))),
    answer: () => answers.shift()?.({ result: Payload.of({ action: 'accept' }) }),
    end: () => end,
  }
}

describe('a call of a legacy server', () => {
  beforeEach(() => void vi.useFakeTimers())

  test('that is silent ends after the idle time', async () => {
    using sweeper = new Sweeper()
    const call = await begin(sweeper)
    await vi.advanceTimersByTimeAsync(900)
    expect(call.end()).toBe('')
    await vi.advanceTimersByTimeAsync(200)
    expect(call.end()).toBe('no answer within 1000 ms (timeouts.idle)')
  })

  test('B145 is not silent while a human answers, be it the first question or the last; then the time begins anew', async () => {
    using sweeper = new Sweeper()
    const call = await begin(sweeper)
    call.ask(1)
    call.ask(2)
    await vi.advanceTimersByTimeAsync(20_000)
    call.answer()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(call.end()).toBe('')
    call.answer()
    await vi.advanceTimersByTimeAsync(900)
    expect(call.end()).toBe('')
    await vi.advanceTimersByTimeAsync(200)
    expect(call.end()).toBe('no answer within 1000 ms (timeouts.idle)')
  })

  test.each([
    ['that runs as a task', { task: {} }],
    ['that does not', {}],
  ])('B144 %s ends after the time of its tool, and without one after those of its server', async (_, more) => {
    using sweeper = new Sweeper()
    const params = { name: 'a__x', arguments: {}, ...more }
    const [own, other] = [
      await begin(sweeper, callOf({ params: Payload.of(params), totalMs: 500 })),
      await begin(sweeper, callOf({ params: Payload.of(params) })),
    ]
    await vi.advanceTimersByTimeAsync(400)
    expect([own.end(), other.end()]).toEqual(['', ''])
    await vi.advanceTimersByTimeAsync(200)
    expect([own.end(), other.end()]).toEqual(['no answer within 500 ms (tools.timeout)', ''])
    await vi.advanceTimersByTimeAsync(500)
    expect(other.end()).toBe('no answer within 1000 ms (timeouts.idle)')
  })

  test('F-02 B144 whose tool may take longer than its server may be silent is silent for as long', async () => {
    using sweeper = new Sweeper()
    const params = Payload.of({ name: 'a__x', arguments: {} })
    const call = await begin(sweeper, callOf({ params, totalMs: 5_000 }))
    await vi.advanceTimersByTimeAsync(4_900)
    expect(call.end()).toBe('')
    await vi.advanceTimersByTimeAsync(200)
    expect(call.end()).toBe('no answer within 5000 ms (tools.timeout)')
  })

  test('B179 that waits for the result of a task may be silent for as long as the task takes', async () => {
    using sweeper = new Sweeper()
    // Cast: a task of a legacy host is asked for in its own session.
    const session = { id: 's' } as HostSession
    const params = Payload.of({ taskId: '1' })
    const call = await begin(sweeper, callOf({ method: 'tasks/result', target: '1', params, caller: { session } }))
    await vi.advanceTimersByTimeAsync(59_000)
    expect(call.end()).toBe('')
    await vi.advanceTimersByTimeAsync(1_200)
    expect(call.end()).toContain('no answer within 60000 ms')
  })

  test('B145 B144 ends all the same after the most it may take', async () => {
    using sweeper = new Sweeper()
    const call = await begin(sweeper)
    call.ask(1)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(call.end()).toBe('')
    await vi.advanceTimersByTimeAsync(1_200)
    expect(call.end()).toBe('no answer within 60000 ms (timeouts.total)')
  })
})
