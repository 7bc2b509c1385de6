import { getEventListeners } from 'node:events'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { driveTask } from '../../../src/gateway/tasks/driving.ts'
import { complete, ServerError } from '../../../src/rpc/call.ts'
import type { Answer, Call, Handler, Outcome, Question } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const call = callOf({ caller: { revision: '2025-11-25' } })
/** A task that wants to be looked at so often; `undefined`: it does not say. */
const taskOf = (status: string, pollIntervalMs: unknown): Payload =>
  Payload.of({ taskId: 't', status, pollIntervalMs, ...(status === 'completed' && { result: { content: [] } }) })

describe('following a task', () => {
  beforeEach(() => void vi.useFakeTimers())

  /** The waits before each look at a task whose answers say `intervals`, one after the other. */
  const waits = async (intervals: readonly unknown[], random: number, maxMs = 3_600_000): Promise<string[]> => {
    vi.spyOn(Math, 'random').mockReturnValue(random)
    const found: string[] = []
    let lastMs = performance.now()
    const handle: Handler = ({ method }) => {
      found.push(`${method} ${Math.round(performance.now() - lastMs)}`)
      lastMs = performance.now()
      const next = found.length < intervals.length ? 'working' : 'completed'
      return Promise.resolve(complete(taskOf(next, intervals[found.length])))
    }
    const outcome = driveTask(taskOf('working', intervals[0]), call, handle, maxMs).catch((error: Error) =>
      found.push(error.message),
    )
    await vi.runAllTimersAsync()
    await outcome
    return found
  }

  test.each([
    ['as often as the last answer says', [500, 2_000, 120_000], 0, [500, 2_000, 120_000]],
    ['later by jitter, never sooner', [500, 2_000], 0.5, [550, 2_200]],
    ['once a second where nothing is said, or nothing that is a time', [undefined, '7', null], 0, [1_000, 1_000, 1_000]],
    ['not without a pause', [0, -5], 0, [20, 20]],
  ] as const)('B181 looks %s', async (_, intervals, random, expected) => {
    expect(await waits(intervals, random)).toEqual(expected.map((ms) => `tasks/get ${ms}`))
  })

  test.each<[string, () => Outcome]>([
    ['is completed', () => complete(taskOf('completed', 20))],
    [
      'cannot be looked at any more',
      () => {
        throw new Failure('shutting_down', 'the gateway stops')
      },
    ],
  ])('a task that %s leaves no timer, and no listener on the signal of its call, which may outlive it', async (_, look) => {
    const { signal } = new AbortController()
    const listening: number[] = []
    const outcome = driveTask(
      taskOf('working', 20),
      { ...call, signal },
      async () => {
        listening.push(getEventListeners(signal, 'abort').length)
        return look()
      },
      60_000,
    ).catch(() => undefined)
    await vi.advanceTimersByTimeAsync(100)
    await outcome
    expect([listening[0], getEventListeners(signal, 'abort').length]).toEqual([1, 0])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('B181 B144 a task that wants to be asked too seldom ends with its time, and is cancelled', async () => {
    expect(await waits([1e15, 1e15, 1e15], 0, 60_000)).toEqual(['tasks/cancel 60000', 'the task took too long'])
  })

  /** How a call ends whose task has these states one after the other, and what was sent to the server for it. */
  const follow = async (states: readonly object[], facts: Partial<Call> = {}, failures: readonly unknown[] = []) => {
    const sent: string[] = []
    const left = states.slice(1)
    const failing = [...failures]
    const handle: Handler = async ({ method, target, resume }) => {
      sent.push(
        `${method} ${target}${resume === undefined ? '' : ` ${Buffer.concat(resume.responses?.parts() ?? []).toString()}`}`,
      )
      if (method !== 'tasks/get') return complete(Payload.of({}))
      const failure = failing.shift()
      if (failure !== undefined) throw failure
      return complete(Payload.of({ taskId: 't', ...left.shift() }))
    }
    const end = driveTask(Payload.of({ taskId: 't', ...states[0] }), { ...call, ...facts }, handle, 3_600_000).then(
      ({ result }) => JSON.parse(Buffer.concat(result.parts()).toString()) as unknown,
      (error: unknown) => error,
    )
    await vi.runAllTimersAsync()
    return { end: await end, sent }
  }
  const WORKING = { status: 'working' }
  const text = (words: string): object => ({ content: [{ type: 'text', text: words }], isError: true })

  test.each<[string, object, unknown]>([
    ['completed with its result', { status: 'completed', result: { content: [], x: 1 } }, { content: [], x: 1 }],
    ['cancelled', { status: 'cancelled' }, text('the task was cancelled')],
    [
      'failed with its error',
      { status: 'failed', error: { code: -5, message: 'no disk', data: 1 } },
      expect.objectContaining({ name: 'ServerError', code: -5, message: 'no disk' }),
    ],
    [
      'completed without its result',
      { status: 'completed', error: { code: -5, message: 'no disk' } },
      expect.objectContaining({ kind: 'bad_response', message: 'a completed task without its result' }),
    ],
    [
      'failed without its error',
      { status: 'failed', result: { content: [] } },
      expect.objectContaining({ kind: 'bad_response', message: 'a failed task without its error' }),
    ],
    [
      'failed with an error that is none',
      { status: 'failed', error: { code: 1.5, message: 'x' } },
      expect.objectContaining({ kind: 'bad_response', message: 'a failed task without its error' }),
    ],
    [
      'failed with an error without words',
      { status: 'failed', error: { code: -5 } },
      expect.objectContaining({ kind: 'bad_response', message: 'a failed task without its error' }),
    ],
  ])('a task that is %s ends its call so, and is not cancelled', async (_, last, expected) => {
    const { end, sent } = await follow([WORKING, last])
    expect(end).toEqual(expected)
    expect(sent).toEqual(['tasks/get t'])
  })

  test('a task whose server is away is looked at again, and given up after five times in a row', async () => {
    const away = new Failure('unreachable', 'refused')
    const four = Array.from({ length: 4 }, () => away)
    const done = { status: 'completed', result: {} }
    expect((await follow([WORKING, WORKING, done], {}, [...four, undefined, ...four])).end).toEqual({})
    const { end, sent } = await follow([WORKING, done], {}, [...four, away])
    expect(end).toBe(away)
    expect(sent).toEqual([...Array<string>(5).fill('tasks/get t'), 'tasks/cancel t'])
  })

  test.each([
    [
      'a server that does not know it',
      new ServerError(-32602, 'no such task', Payload.of({ code: -32602, message: 'no such task' })),
    ],
    ['a gateway that stops', new Failure('shutting_down', 'the gateway stops')],
  ])('a task is not looked at again because of %s', async (_, failure) => {
    const { end, sent } = await follow([WORKING, { status: 'completed', result: {} }], {}, [failure])
    expect([end, sent]).toEqual([failure, ['tasks/get t', 'tasks/cancel t']])
  })

  describe('that has questions', () => {
    const asks = (...keys: string[]): object => ({
      status: 'input_required',
      inputRequests: Object.fromEntries(keys.map((key) => [key, { method: key, params: { n: 1 } }])),
    })
    const DONE = { status: 'completed', result: {} }
    const answering = (answers: Readonly<Record<string, Answer>>) => {
      const asked: string[] = []
      const ask = async ({ method }: Question): Promise<Answer> => {
        asked.push(method)
        return answers[method] ?? { error: Payload.of({ code: -1, message: 'no' }) }
      }
      return { asked, facts: { ask } as unknown as Partial<Call> }
    }

    test('gets each answered once, one after the other', async () => {
      const { asked, facts } = answering({
        'roots/list': { result: Payload.of({ roots: [] }) },
        'x/y': { result: Payload.of({ z: 1 }) },
      })
      const { end, sent } = await follow([asks('roots/list'), asks('roots/list', 'x/y'), asks('x/y'), DONE], facts)
      expect([end, asked]).toEqual([{}, ['roots/list', 'x/y']])
      expect(sent).toEqual([
        'tasks/update t {"roots/list":{"roots":[]}}',
        'tasks/get t',
        'tasks/update t {"x/y":{"z":1}}',
        'tasks/get t',
        'tasks/get t',
      ])
    })

    test('counts a dialog that failed as cancelled', async () => {
      const { end, sent } = await follow([asks('elicitation/create'), DONE], answering({}).facts)
      expect([end, sent[0]]).toEqual([{}, 'tasks/update t {"elicitation/create":{"action":"cancel"}}'])
    })

    test.each([
      [{ code: -1, message: 'not now' }, 'not now'],
      [{ code: -1 }, 'the host declined'],
    ])('is cancelled where the host refuses, and the model is told: %j', async (error, words) => {
      const { facts } = answering({ 'sampling/createMessage': { error: Payload.of(error) } })
      const { end, sent } = await follow([asks('sampling/createMessage'), DONE], facts)
      expect([end, sent]).toEqual([text(words), ['tasks/cancel t']])
    })

    test('waits for its end where the host cannot be asked', async () => {
      expect(await follow([asks('roots/list'), DONE])).toEqual({ end: {}, sent: ['tasks/get t'] })
    })

    test.each([0, 5_000])('is cancelled while a question is open, if the host cancels its call after %i ms', async (ms) => {
      const cancelling = new AbortController()
      const ask = (): Promise<Answer> => {
        if (ms === 0) cancelling.abort()
        else setTimeout(() => cancelling.abort(), ms)
        return new Promise(() => undefined)
      }
      const { end, sent } = await follow([asks('roots/list'), DONE], { ask, signal: cancelling.signal })
      expect(end).toMatchObject({ kind: 'cancelled' })
      expect(sent).toEqual(['tasks/cancel t'])
    })
  })

  test('a task of a call that was cancelled before is cancelled at once', async () => {
    const { end, sent } = await follow([WORKING, WORKING], { signal: AbortSignal.abort() })
    expect(end).toBeInstanceOf(Failure)
    expect(end).not.toMatchObject({ kind: 'timeout' })
    expect(sent).toEqual(['tasks/cancel t'])
  })

  test('new words of a task are progress for a host that asked for it, each once', async () => {
    const words = (statusMessage?: string): object => ({ ...WORKING, ...(statusMessage !== undefined && { statusMessage }) })
    const states = [words(), words('a'), words('a'), words('b'), { status: 'completed', result: {} }]
    const told = async (progressToken: number | undefined): Promise<unknown[]> => {
      const found: unknown[] = []
      const notify = (method: string, params: Payload): void =>
        void found.push([method, JSON.parse(Buffer.concat(params.parts()).toString())])
      await follow(states, { notify, progressToken } as unknown as Partial<Call>)
      return found
    }
    expect(await told(undefined)).toEqual([])
    expect(await told(7)).toEqual([
      ['notifications/progress', { progressToken: 0, progress: 1, message: 'a' }],
      ['notifications/progress', { progressToken: 0, progress: 2, message: 'b' }],
    ])
  })
})
