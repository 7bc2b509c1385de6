/** Input rounds of a modern server under a legacy host, by the clock: pauses, limits, visits (BRIDGING 3.13, Example B). */
import { getEventListeners } from 'node:events'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { askLegacyHosts } from '../../../src/era/host/legacy-rounds.ts'
import { complete, EVERYTHING } from '../../../src/rpc/call.ts'
import type { Answer, Call, HostSession, Outcome, Question } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { JsonObject } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

beforeEach(() => void vi.useFakeTimers())

/** What a server answers: the params of its round, or nothing when it is done. */
type Round = object | undefined
const visit = (url: string, elicitationId: string) => ({
  method: 'elicitation/create',
  params: { mode: 'url', message: 'go', url, elicitationId },
})
const DONE = { content: [] }

/** A call of a legacy host to a server that answers these rounds, the last one for ever. */
const play = (
  rounds: readonly Round[],
  more: {
    method?: string
    refused?: ReadonlyMap<string, Answer>
    totalMs?: number
    answer?: (q: Question) => Promise<Answer>
  } = {},
) => {
  const startedMs = Date.now()
  /** When the server was called, with the state that came. */
  const calls: { readonly atMs: number; readonly state: string | undefined; readonly responses: string | undefined }[] = []
  const asked: (string | undefined)[] = []
  const told: string[] = []
  const abort = new AbortController()
  const session: HostSession = {
    id: 's',
    scope: EVERYTHING,
    capabilities: {},
    notify: (method, params) => void told.push(`${method} ${JSON.stringify((params as Payload).value('elicitationId'))}`),
    ask: () => Promise.reject(new Error('asked off the request')),
    updated: () => undefined,
    logLevel: undefined,
    onEnd: () => () => undefined,
  }
  const accept = async (): Promise<Answer> => ({ result: Payload.of({ action: 'accept' }) })
  const call = callOf({
    method: more.method ?? 'tools/call',
    caller: { revision: '2025-11-25', session },
    signal: abort.signal,
    ask: (question) => {
      asked.push(question.params?.text('url') ?? question.params?.text('message'))
      return (more.answer ?? accept)(question)
    },
  })
  const server = async ({ resume }: Call): Promise<Outcome> => {
    const round = rounds[Math.min(calls.length, rounds.length - 1)]
    calls.push({ atMs: Date.now() - startedMs, state: resume?.state, responses: resume?.responses && textOf(resume.responses) })
    if (round === undefined) return complete(Payload.of(DONE))
    const result = Payload.of({ resultType: 'input_required', ...round })
    return {
      kind: 'input_required',
      result,
      state: result.text('requestState'),
      ...(more.totalMs !== undefined && { totalMs: more.totalMs }),
      ...(more.refused !== undefined && { refused: more.refused }),
    }
  }
  const outcome = askLegacyHosts(server)(call)
  outcome.catch(() => undefined)
  return { outcome, calls, asked, told, abort }
}
const textOf = (payload: JsonObject): string => Buffer.concat(payload.parts()).toString()
const tooMany = JSON.stringify({ content: [{ type: 'text', text: 'too many input rounds' }], isError: true })

describe('B084 a round that asks nothing is retried after a pause, and nobody is asked', () => {
  test.each([
    ['no inputRequests', { requestState: 'busy' }],
    ['empty inputRequests', { requestState: 'busy', inputRequests: {} }],
  ])('%s', async (_, round) => {
    vi.spyOn(Math, 'random').mockReturnValueOnce(0).mockReturnValueOnce(0.999)
    const { outcome, calls, asked } = play([round, round, undefined])
    await vi.runAllTimersAsync()
    expect(textOf((await outcome).result)).toBe(JSON.stringify(DONE))
    expect(asked).toEqual([])
    expect(calls.map(({ state, responses }) => [state, responses])).toEqual([
      [undefined, undefined],
      ['busy', undefined],
      ['busy', undefined],
    ])
    const [, first, second] = calls.map(({ atMs }) => atMs)
    expect([first, second! - first!]).toEqual([250, expect.toSatisfy((ms: number) => ms > 700 && ms <= 750)])
  })

  test('the host gives up in the pause: the server is not called again', async () => {
    const { outcome, calls, abort } = play([{ requestState: 'busy' }])
    await vi.advanceTimersByTimeAsync(0)
    abort.abort()
    await expect(outcome).rejects.toMatchObject({ kind: 'cancelled' })
    await vi.runAllTimersAsync()
    expect(calls).toHaveLength(1)
  })
})

test('B085 rounds that are over leave neither a timer nor a listener', async () => {
  const { outcome, abort } = play([{ inputRequests: { a: visit('https://x/1', 'e') } }, undefined])
  await vi.advanceTimersByTimeAsync(0)
  await outcome
  expect([vi.getTimerCount(), getEventListeners(abort.signal, 'abort').length]).toEqual([0, 0])
})

test('B273 the cancellation of a host reaches the server of a later round as the host wrote it', async () => {
  const abort = new Cancellation()
  const signals: Call['signal'][] = []
  const server = async ({ resume, signal }: Call): Promise<Outcome> => {
    if (resume === undefined) return { kind: 'input_required', result: Payload.of({ resultType: 'input_required' }), state: 's' }
    signals.push(signal)
    return new Promise(() => undefined)
  }
  const session = { id: 's', scope: EVERYTHING, capabilities: {} } as HostSession
  const ask = (): Promise<Answer> => Promise.reject(new Error('not asked'))
  void askLegacyHosts(server)(callOf({ caller: { revision: '2025-11-25', session }, signal: abort.signal, ask }))
  await vi.advanceTimersByTimeAsync(1_000)
  const notice = Payload.of({ requestId: 1, reason: 'enough' })
  abort.abort(notice)
  expect(signals.map(({ aborted, notice: passed }) => [aborted, passed === notice])).toEqual([[true, true]])
})

describe('B085 rounds end', () => {
  test.each([
    ['that ask', { inputRequests: { a: { method: 'elicitation/create', params: { message: 'again?' } } } }, 16],
    ['that ask nothing', { requestState: 'busy' }, 0],
    ['whose inputRequests are empty', { requestState: 'busy', inputRequests: {} }, 0],
  ])('after 16 of those %s', async (_, round, questions) => {
    const { outcome, calls, asked } = play([round])
    await vi.runAllTimersAsync()
    expect(textOf((await outcome).result)).toBe(tooMany)
    expect(calls).toHaveLength(17)
    expect(asked).toHaveLength(questions)
  })

  test('with an error of the gateway where a result cannot say it', async () => {
    const { outcome } = play([{ requestState: 'busy' }], { method: 'prompts/get' })
    await vi.runAllTimersAsync()
    await expect(outcome).rejects.toMatchObject({ kind: 'protocol', message: 'too many input rounds' })
  })

  test.each([
    ['a host thinks', { inputRequests: { a: { method: 'elicitation/create', params: { message: '?' } } } }],
    ['a visit takes', { inputRequests: { a: visit('https://x.example/', 'e') } }],
  ])('at the maximum time, however long %s', async (what, round) => {
    const never = new Promise<Answer>(() => undefined)
    const { outcome, calls } = play([round], { totalMs: 60_000, ...(what === 'a host thinks' && { answer: () => never }) })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(textOf((await outcome).result)).toMatch(/the input rounds took too long \(timeouts\.total\).*"isError":true/)
    const { length } = calls
    await vi.runAllTimersAsync()
    expect(calls).toHaveLength(length)
  })

  test('F-31 at the maximum time with an error of the gateway where a result cannot say it', async () => {
    const round = { inputRequests: { a: { method: 'elicitation/create', params: { message: '?' } } } }
    const answer = (): Promise<Answer> => new Promise(() => undefined)
    const { outcome } = play([round], { method: 'prompts/get', totalMs: 60_000, answer })
    await vi.advanceTimersByTimeAsync(60_000)
    await expect(outcome).rejects.toMatchObject({
      kind: 'protocol',
      message: expect.stringContaining('timeouts.total') as string,
    })
  })
})

describe('B086 a URL that somebody agreed to visit', () => {
  test('is not asked for again while the server waits for the visit; the session hears when it is done', async () => {
    const same = { requestState: 's', inputRequests: { a: visit('https://x.example/1', 'e1') } }
    const { outcome, calls, asked, told } = play([same, same, same, same, same, same, same, undefined])
    await vi.runAllTimersAsync()
    await outcome
    expect(asked).toEqual(['https://x.example/1'])
    expect(
      calls.every(({ state, responses }, at) => at === 0 || (state === 's' && responses === '{"a":{"action":"accept"}}')),
    ).toBe(true)
    const pauses = calls.map(({ atMs }, at) => atMs - (calls[at - 1]?.atMs ?? 0))
    expect(pauses).toEqual([0, 0, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(told).toEqual(['notifications/elicitation/complete "e1"'])
  })

  test('says nothing of another, which is asked for', async () => {
    const both = { inputRequests: { a: visit('https://x.example/1', 'e1'), b: visit('https://x.example/2', 'e2') } }
    const { outcome, asked, told } = play([{ inputRequests: { a: visit('https://x.example/1', 'e1') } }, both, undefined])
    await vi.runAllTimersAsync()
    await outcome
    expect(asked).toEqual(['https://x.example/1', 'https://x.example/2'])
    expect(told).toHaveLength(2)
  })

  test('is asked for again where it was declined, and nothing is said to be done', async () => {
    const same = { inputRequests: { a: visit('https://x.example/1', 'e1') } }
    const { outcome, calls, asked, told } = play([same, same, undefined], {
      answer: async () => ({ result: Payload.of({ action: 'decline' }) }),
    })
    await vi.runAllTimersAsync()
    await outcome
    expect(asked).toHaveLength(2)
    expect(calls.at(-1)?.atMs).toBe(0)
    expect(told).toEqual([])
  })

  test('keeps its call open beyond 16 rounds: waiting is no round', async () => {
    const same = { inputRequests: { a: visit('https://x.example/1', 'e1') } }
    const { outcome, calls } = play([...Array.from({ length: 20 }, () => same), undefined])
    await vi.runAllTimersAsync()
    expect(textOf((await outcome).result)).toBe(JSON.stringify(DONE))
    expect(calls).toHaveLength(21)
  })
})

describe('what a round asks', () => {
  const dialog = (message: string) => ({ method: 'elicitation/create', params: { message } })
  const sampling = { method: 'sampling/createMessage', params: { message: 's' } }

  test('B082 dialogs come one at a time in their order, everything else at once', async () => {
    const answers: (() => void)[] = []
    const answer = (): Promise<Answer> =>
      new Promise((resolve) => answers.push(() => resolve({ result: Payload.of({ action: 'decline' }) })))
    const inputRequests = { z: dialog('1'), s: sampling, a: dialog('2'), m: dialog('3') }
    const { outcome, calls, asked } = play([{ inputRequests }, undefined], { answer })
    const steps: string[][] = []
    for (let at = 0; at < 4; at++) {
      await vi.advanceTimersByTimeAsync(0)
      steps.push([...(asked as string[])])
      answers[at]?.()
    }
    await outcome
    expect(steps[0]?.toSorted()).toEqual(['1', 's'])
    expect(asked.filter((text) => text !== 's')).toEqual(['1', '2', '3'])
    expect(steps.map((step) => step.length)).toEqual([2, 2, 3, 4])
    expect(Object.keys(JSON.parse(calls[1]?.responses ?? '') as object)).toEqual(['z', 's', 'a', 'm'])
  })

  test.each(['cancels the call', 'refuses to sample'])(
    'B082 a host that %s is not asked the dialogs that waited',
    async (how) => {
      const pending: ((answer: Answer) => void)[] = []
      const error = { error: Payload.of({ code: -1, message: 'no' }) }
      const answer = ({ method }: Question): Promise<Answer> =>
        how === 'refuses to sample' && method === sampling.method
          ? Promise.resolve(error)
          : new Promise((resolve) => pending.push(resolve))
      const { outcome, asked, abort } = play([{ inputRequests: { a: dialog('1'), b: dialog('2'), s: sampling } }], { answer })
      await vi.advanceTimersByTimeAsync(0)
      if (how === 'cancels the call') abort.abort()
      // The session takes back what is open once its call has ended.
      for (const settle of pending) settle(error)
      await vi.advanceTimersByTimeAsync(0)
      await outcome.catch(() => undefined)
      expect(asked.toSorted()).toEqual(['1', 's'])
    },
  )

  test('B094 what the host cannot be asked is not asked: a dialog counts as cancelled, anything else ends the call', async () => {
    const error = { error: Payload.of({ code: -32602, message: 'no words' }) }
    const round = { inputRequests: { a: dialog('1') } }
    const cancelled = play([round, undefined], { refused: new Map([['a', error]]) })
    await cancelled.outcome
    expect(cancelled.calls[1]?.responses).toBe('{"a":{"action":"cancel"}}')
    const ended = play([{ inputRequests: { a: sampling } }, undefined], { refused: new Map([['a', error]]) })
    expect(textOf((await ended.outcome).result)).toMatch(/no words.*"isError":true/)
    expect([...cancelled.asked, ...ended.asked]).toEqual([])
  })
})
