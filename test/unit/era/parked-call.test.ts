/** One parked call and its times (BRIDGING 3.13, rule 4). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ParkedCall } from '../../../src/era/host/parked-call.ts'
import { complete } from '../../../src/rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const TTL_MS = 1_000
const OPTIONS = { ttlMs: TTL_MS, maxParked: 9, maxPerPrincipal: 9, coalesceMs: 10 }

beforeEach(() => void vi.useFakeTimers())

const open = () => {
  const nonces: string[] = []
  const expired = vi.fn()
  const parked = new ParkedCall('P', OPTIONS, {
    prepare: () => undefined,
    issue: (nonce) => (nonces.push(nonce), nonce),
    limitReached: () => undefined,
    expired,
    onEnd: () => undefined,
  })
  const call = (params: object): Call =>
    ({
      params: Payload.of(params),
      signal: new Cancellation().signal,
      notify: () => undefined,
      caller: { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
    }) as unknown as Call
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

test('F-21 the request that carries the call now tells whether its host reads; while there is none, nothing waits for one', async () => {
  const { parked, nonces, call, question } = open()
  const server = Promise.withResolvers<Outcome>()
  const carrier = (params: object, isStalled: boolean): Call => ({ ...call(params), responseChannel: { flow: { isStalled } } })
  let inner: Call | undefined
  const isStalled = (): boolean | undefined => inner?.responseChannel?.flow?.isStalled
  const first = parked.start(carrier({}, true), async (begun) => {
    inner = begun
    await begun.ask?.(question)
    return server.promise
  })
  expect(isStalled()).toBe(true)
  await vi.advanceTimersByTimeAsync(10)
  await first
  expect(isStalled()).toBeUndefined()
  const second = parked.resume(
    carrier({ inputResponses: { 'input-1': { action: 'accept', content: {} } } }, false),
    nonces[0] ?? '',
  )
  expect(isStalled()).toBe(false)
  server.resolve(complete(Payload.of({})))
  await second
})

test('B075 what its server tells reaches the request that carries the call now; while there is none, it is dropped', async () => {
  const { parked, nonces, call, question } = open()
  const server = Promise.withResolvers<Outcome>()
  const [one, two] = [vi.fn(), vi.fn()]
  let tell: ((...told: Parameters<Call['notify']>) => void) | undefined
  const first = parked.start({ ...call({}), notify: one }, async (carried) => {
    tell = (...told) => carried.notify(...told)
    await carried.ask?.(question)
    return server.promise
  })
  const said = Payload.of({ progress: 1 })
  tell?.('notifications/progress', said)
  await vi.advanceTimersByTimeAsync(OPTIONS.coalesceMs)
  await first
  tell?.('notifications/progress', said)
  tell?.('notifications/message', said)
  const inputResponses = { 'input-1': { action: 'accept', content: {} } }
  const second = parked.resume({ ...call({ inputResponses }), notify: two }, nonces[0] ?? '')
  tell?.('notifications/message', said, true)
  expect([one.mock.calls, two.mock.calls]).toEqual([
    [['notifications/progress', said, undefined]],
    [['notifications/message', said, true]],
  ])
  server.resolve(complete(Payload.of({})))
  await second
})

/** A parked call whose server asks these questions at once, and then answers when it is told to. */
const asking = async (...questions: readonly Question[]) => {
  const scene = open()
  const server = Promise.withResolvers<Outcome>()
  const answers: (Answer | undefined)[] = questions.map(() => undefined)
  const seen: { ask?: NonNullable<Call['ask']>; signal?: Call['signal'] } = {}
  const carrier = new Cancellation()
  const first = scene.parked.start({ ...scene.call({}), signal: carrier.signal }, (inner) => {
    const { ask } = inner
    Object.assign(seen, { ask, signal: inner.signal })
    for (const [at, asked] of questions.entries()) void ask?.(asked).then((answer) => (answers[at] = answer))
    return server.promise
  })
  await vi.advanceTimersByTimeAsync(OPTIONS.coalesceMs)
  const round = async (outcome: Promise<Outcome>): Promise<object> =>
    JSON.parse(Buffer.concat([(await outcome).result.parts()].flat(2)).toString()) as object
  const resume = (inputResponses: object, at = scene.nonces.length - 1): Promise<Outcome> =>
    scene.parked.resume(scene.call({ inputResponses }), scene.nonces[at] ?? '')
  return { ...scene, first, server, answers, seen, carrier, round, resume, settled: () => vi.advanceTimersByTimeAsync(0) }
}
const form = (...fields: readonly string[]): Question => ({
  method: 'elicitation/create',
  params: Payload.of({ message: 'm', requestedSchema: { properties: Object.fromEntries(fields.map((field) => [field, {}])) } }),
})
const YES = { action: 'accept', content: {} }

test('B060 the questions of a round have keys: the only field of a form, else a number; none is used twice', async () => {
  const { first, round } = await asking(form('name'), form('name'), form('a', 'b'), form('1st'), {
    method: 'roots/list',
    params: undefined,
  })
  expect(await round(first)).toMatchObject({
    resultType: 'input_required',
    requestState: expect.any(String) as unknown,
    inputRequests: { name: {}, 'input-2': {}, 'input-3': {}, 'input-4': {}, 'input-5': { method: 'roots/list' } },
  })
})

test('B060 a field that is called like a numbered key takes no other question its key', async () => {
  const { first, round } = await asking(form('input-2'), form('a', 'b'), form('input-5'), form('a', 'b'), form('a', 'b'))
  const { inputRequests } = (await round(first)) as { inputRequests: object }
  expect(Object.keys(inputRequests)).toEqual(['input-2', 'input-3', 'input-5', 'input-4', 'input-6'])
})

test('B061 questions without an answer are asked again with a new state, and the old one is used', async () => {
  const { first, round, resume, answers, nonces, server, settled } = await asking(form('a'), form('b'))
  await first
  const second = resume({ a: YES })
  expect(Object.keys(((await round(second)) as { inputRequests: object }).inputRequests)).toEqual(['b'])
  await settled()
  expect([answers[0] !== undefined, answers[1], nonces.length]).toEqual([true, undefined, 2])
  expect(() => resume({ b: YES }, 0)).toThrow(expect.objectContaining({ code: -32602 }) as Error)
  const third = resume({ b: YES })
  expect(() => resume({ b: YES }, 1)).toThrow(expect.objectContaining({ code: -32600 }) as Error)
  server.resolve(complete(Payload.of({ n: 1 })))
  expect(await round(third)).toEqual({ n: 1 })
  expect(() => resume({ b: YES }, 1)).toThrow(expect.objectContaining({ code: -32602 }) as Error)
})

test('B059 what the next request no longer accepts is refused to the server at once, and the rest is asked again', async () => {
  const sampling: Question = { method: 'sampling/createMessage', params: Payload.of({ messages: [], maxTokens: 1 }) }
  const { parked, call, nonces, first, round, answers, server, settled } = await asking(form('a'), sampling)
  expect(Object.keys(((await round(first)) as { inputRequests: object }).inputRequests)).toEqual(['a', 'input-2'])
  // Cast: what is read of a caller.
  const resume = (capabilities: object): Promise<Outcome> =>
    parked.resume({ ...call({ inputResponses: {} }), caller: { capabilities } } as unknown as Call, nonces.at(-1) ?? '')
  const second = resume({ elicitation: {} })
  expect(Object.keys(((await round(second)) as { inputRequests: object }).inputRequests)).toEqual(['a'])
  await settled()
  expect([answers[0], answers[1] && 'error' in answers[1]]).toEqual([undefined, true])
  // Where nothing is left to ask, the request carries the call on.
  const third = resume({ sampling: {} })
  await settled()
  expect([answers[0] && 'error' in answers[0], nonces.length, parked.isParked]).toEqual([true, 2, false])
  server.resolve(complete(Payload.of({ n: 1 })))
  expect(await round(third)).toEqual({ n: 1 })
})

test('a malformed answer delivers none, and the round stays open', async () => {
  const { first, resume, answers, settled } = await asking(form('a'), form('b'))
  await first
  expect(() => resume({ a: YES, b: { action: 'yes' } })).toThrow(expect.objectContaining({ code: -32602 }) as Error)
  await settled()
  expect(answers).toEqual([undefined, undefined])
  void resume({ a: YES, b: YES })
  await settled()
  expect(answers).not.toContain(undefined)
})

describe('B262 a question that may belong to another call as well', () => {
  const other = (): Call & { readonly asked: Question[] } => {
    const asked: Question[] = []
    const ask = async (question: Question): Promise<Answer> => {
      asked.push(question)
      return { result: Payload.of({ action: 'decline' }) }
    }
    return { ...callOf({ ask }), asked }
  }

  test('is answered by the next request of a call that ended while it was parked', async () => {
    const rest = other()
    const { first, round, resume, server, answers, settled } = await asking({ ...form('a'), candidates: () => [rest] })
    await first
    server.resolve(complete(Payload.of({ n: 1 })))
    await settled()
    expect(answers).toEqual([undefined])
    expect(await round(resume({ a: YES }))).toEqual({ n: 1 })
    expect([(answers[0] as { result: Payload }).result.text('action'), rest.asked]).toEqual(['accept', []])
  })

  test('is declined once nobody came back, or the next request has no answer', async () => {
    const { first, resume, server, answers, settled } = await asking({ ...form('a'), candidates: () => [other()] })
    await first
    server.resolve(complete(Payload.of({})))
    await settled()
    await resume({})
    expect((answers[0] as { result: Payload }).result.text('action')).toBe('cancel')
  })

  test('is asked there if the call ends before the question was asked, and never of the call itself', async () => {
    const rest = other()
    const { seen, server, first, answers, settled } = await asking()
    const own = callOf({ signal: seen.signal!, ask: seen.ask })
    const [left, alone]: Question[] = [[rest, own], [own]].map((calls) => ({ ...form('a'), candidates: () => calls }))
    for (const [at, question] of [left!, alone!].entries()) void seen.ask?.(question).then((answer) => (answers[at] = answer))
    server.resolve(complete(Payload.of({})))
    await first
    await settled()
    const actions = answers.map((answer) => (answer as { result: Payload }).result.text('action'))
    expect([actions, rest.asked]).toEqual([['decline', 'cancel'], [left]])
  })
})

test('the end of a call that nobody carries is kept for its next request, and what it asked is declined', async () => {
  const { first, round, resume, server, answers, settled, expired } = await asking(form('a'))
  await first
  server.resolve(complete(Payload.of({ n: 1 })))
  await settled()
  expect(answers[0]).toHaveProperty('result')
  expect(await round(resume({ a: YES }))).toEqual({ n: 1 })
  await vi.advanceTimersByTimeAsync(2 * TTL_MS)
  expect(expired).not.toHaveBeenCalled()
})

test('an error of the server ends the carrying request, also one that came later', async () => {
  const { first, resume, server } = await asking(form('a'))
  await first
  const second = resume({ a: YES })
  server.reject(new Error('lost'))
  await expect(second).rejects.toThrow('lost')
  const later = await asking(form('a'))
  await later.first
  later.server.reject(new Error('lost'))
  await later.settled()
  await expect(later.resume({ a: YES })).rejects.toThrow('lost')
})

test('B076 a host that cancels its request cancels the call, while it carries it and not later', async () => {
  const carried = await asking()
  const notice = Payload.of({ reason: 'r' })
  carried.carrier.abort(notice)
  await expect(carried.first).rejects.toMatchObject({ kind: 'cancelled' })
  expect([carried.seen.signal?.aborted, carried.seen.signal?.notice]).toEqual([true, notice])
  const parked = await asking(form('a'))
  await parked.first
  parked.carrier.abort()
  expect(parked.seen.signal?.aborted).toBe(false)
  const aborted = new Cancellation()
  aborted.abort()
  await expect(
    parked.parked.resume({ ...parked.call({}), signal: aborted.signal }, parked.nonces[0] ?? ''),
  ).rejects.toMatchObject({ kind: 'cancelled' })
  expect(parked.seen.signal?.aborted).toBe(true)
})

test('a call that is given up declines its questions, cancels its server and is over', async () => {
  const { first, parked, answers, seen, settled } = await asking(form('a'))
  await first
  await vi.advanceTimersByTimeAsync(TTL_MS)
  await settled()
  expect([answers[0] !== undefined, seen.signal?.aborted, parked.isParked]).toEqual([true, true, true])
})

test('a call that may not ask any more declines what is open and what follows, and goes on', async () => {
  const scene = open()
  const server = Promise.withResolvers<Outcome>()
  const answers: Answer[] = []
  const first = scene.parked.start(scene.call({}), async ({ ask }) => {
    answers.push(await ask!(scene.question))
    answers.push(await ask!(scene.question))
    return server.promise
  })
  scene.parked.stopAsking()
  await vi.advanceTimersByTimeAsync(2 * OPTIONS.coalesceMs)
  expect([answers.length, scene.nonces]).toEqual([2, []])
  server.resolve(complete(Payload.of({ n: 1 })))
  expect(await first).toMatchObject({ kind: 'complete' })
})

test('a question that its server withdraws is asked no more', async () => {
  const withdraw: (() => void)[] = []
  const onWithdrawn: Question['onWithdrawn'] = (callback) => withdraw.push(() => callback(Payload.of({})))
  const scene = open()
  const server = Promise.withResolvers<Outcome>()
  let answer: Answer | undefined
  const first = scene.parked.start(scene.call({}), async ({ ask }) => {
    answer = await ask!({ ...form('a'), onWithdrawn })
    return server.promise
  })
  withdraw[0]?.()
  await vi.advanceTimersByTimeAsync(2 * OPTIONS.coalesceMs)
  expect([answer !== undefined, scene.nonces]).toEqual([true, []])
  server.resolve(complete(Payload.of({})))
  expect(await first).toMatchObject({ kind: 'complete' })
})

test('a call whose server ends before its questions are put answers, and is over once', async () => {
  const onEnd = vi.fn()
  const parked = new ParkedCall('P', OPTIONS, {
    prepare: () => undefined,
    issue: () => 's',
    limitReached: () => undefined,
    expired: () => undefined,
    onEnd,
  })
  const { call } = open()
  const first = parked.start(call({}), async ({ ask }) => {
    void ask?.(form('a'))
    return complete(Payload.of({ n: 1 }))
  })
  expect(await first).toMatchObject({ kind: 'complete' })
  await vi.advanceTimersByTimeAsync(2 * TTL_MS)
  expect(onEnd).toHaveBeenCalledTimes(1)
})
