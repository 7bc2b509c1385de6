/** Which call a server's request belongs to, and what becomes of its answer (BRIDGING 3.0, 3.13). */
import { beforeEach, expect, test, vi } from 'vitest'
import { Attribution } from '../../../src/era/server/attribution.ts'
import type { Answer, Call, HostSession, Question } from '../../../src/rpc/call.ts'
import type { Connection } from '../../../src/rpc/connection.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

beforeEach(() => void vi.useFakeTimers())

const RELATED = 'io.modelcontextprotocol/related-task'
const [ANN, BOB] = [{ id: 'ann' } as HostSession, { id: 'bob' } as HostSession]
const call = (method = 'tools/call', session?: HostSession, target = 'a'): Call => callOf({ method, target, caller: { session } })

/** A link with these calls under way, and a server that asks. */
const linkWith = (
  calls: readonly Call[],
  more: { isQuiet?: boolean; task?: Call; answersTasks?: boolean; isOfOneHost?: true } = {},
) => {
  const sent: unknown[] = []
  const json = (parts: unknown): unknown => JSON.parse(Buffer.concat([parts].flat(3) as Buffer[]).toString())
  const paused = new Set<Call>()
  const connection = {
    isQuiet: more.isQuiet ?? false,
    calls: () => calls,
    onlyCall: () => (calls.length === 1 ? calls[0] : undefined),
    pause: (one: Call) => {
      paused.add(one)
      return () => paused.delete(one)
    },
    respond: (id: unknown, parts: unknown) => sent.push(['result', id, json(parts)]),
    respondError: (id: unknown, parts: unknown) => sent.push(['error', id, json(parts)]),
    refuse: (id: unknown, code: number) => sent.push(['refused', id, code]),
    notify: (method: string, parts: unknown) => sent.push([method, json(parts)]),
  }
  const asked: {
    readonly question: Question
    readonly call: Call | undefined
    readonly answer: (answer: Answer | Promise<Answer>) => void
  }[] = []
  const ask = (question: Question, of: Call | undefined): Promise<Answer> =>
    new Promise((answer) => asked.push({ question, call: of, answer }))
  const violation = vi.fn()
  const tasks = {
    creatorOf: () => more.task,
    ask: () => (more.answersTasks === true ? Promise.resolve({ result: Payload.of({ task: 1 }) }) : undefined),
  }
  // Cast: only these are used.
  const attribution = new Attribution(
    connection as unknown as Connection,
    { ask, violation, ...(more.isOfOneHost && { isOfOneHost: true }) },
    tasks,
  )
  const request = (params: object = {}, during?: Call, isWithin = false, method = 'elicitation/create') =>
    attribution.request(
      readServerMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 3, method, params }))),
      during,
      isWithin,
    )
  return { attribution, request, asked, sent, paused, violation, settled: () => vi.advanceTimersByTimeAsync(0) }
}

const [one, other, list] = [call('tools/call', ANN), call('prompts/get', ANN), call('tools/list', ANN)]
const ofBob = call('tools/call', BOB)
const modern = [call(), call()]

test.each<[what: string, calls: readonly Call[], expected: Call | undefined, candidates: number | undefined]>([
  ['none is under way', [], undefined, undefined],
  ['one can carry input', [one, list], one, undefined],
  ['only one is under way, which cannot carry input', [list], list, undefined],
  ['two cannot carry input', [list, call('tools/list')], undefined, undefined],
  ['several are of one session', [one, other], other, 2],
  ['they are of two sessions', [one, ofBob], undefined, undefined],
  ['they are of modern hosts', modern, undefined, undefined],
  ['one is of a modern host', [one, modern[0]!], undefined, undefined],
])('a question without attribution is asked where %s', async (_what, calls, expected, candidates) => {
  const { request, asked, sent, paused, settled } = linkWith(calls)
  request()
  expect(asked.map(({ call: of }) => of)).toEqual([expected])
  expect(asked[0]?.question.candidates?.()).toEqual(candidates === undefined ? undefined : calls)
  expect([...paused]).toEqual(candidates === undefined ? [expected].filter((of) => of !== undefined) : calls)
  asked[0]?.answer({ result: Payload.of({ action: 'cancel' }) })
  await settled()
  expect([sent, paused.size]).toEqual([[['result', '3', { action: 'cancel' }]], 0])
})

test('B100 B257 a server with a thousand unanswered requests is refused a further one, until one is answered, but for a ping', async () => {
  const { request, asked, sent, settled } = linkWith([one])
  for (let at = 0; at < 1_001; at++) request()
  expect([asked.length, sent.splice(0)]).toEqual([1_000, [['refused', '3', -32603]]])
  request({}, undefined, false, 'ping')
  expect(sent).toEqual([['result', '3', {}]])
  asked[0]?.answer({ result: Payload.of({}) })
  await settled()
  request()
  expect(asked).toHaveLength(1_001)
})

test('B262 of several calls of the only host of a pipe, in either era, the newest that may be asked is asked', () => {
  const ask = async (): Promise<Answer> => ({ result: Payload.of({}) })
  const able = [call('tools/call', ANN), callOf({ method: 'tools/call' })].map((each) => ({ ...each, ask }))
  const { request, asked } = linkWith([...able, call()], { isOfOneHost: true })
  request()
  expect(asked.map(({ call: of }) => of)).toEqual([able[1]])
  expect(asked[0]?.question.candidates?.()).toEqual(able)
})

test('a question on the stream of a call is asked there, and an error is answered as one', async () => {
  const { request, asked, sent, paused, settled } = linkWith([one, other])
  request({}, one, true)
  expect([asked[0]?.call, asked[0]?.question.candidates, [...paused]]).toEqual([one, undefined, [one]])
  asked[0]?.answer({ error: Payload.of({ code: 1, message: 'no' }) })
  await settled()
  expect(sent).toEqual([['error', '3', { code: 1, message: 'no' }]])
})

test('B271 F-31 a question that cannot be written for its host is refused, unless it was withdrawn, and told', async () => {
  const { attribution, request, asked, sent, paused, violation, settled } = linkWith([one])
  const unreadable = new Error('bad escape')
  for (const isWithdrawn of [false, true]) {
    request()
    const { question, answer } = asked.at(-1)!
    question.onWithdrawn?.(() => undefined)
    if (isWithdrawn) attribution.withdraw(Payload.of({ requestId: 3 }))
    answer(Promise.reject(unreadable))
    await settled()
  }
  expect([sent, paused.size]).toEqual([[['refused', '3', -32603]], 0])
  const told = ['a request could not be handled', 'elicitation/create', unreadable]
  expect(violation.mock.calls).toEqual([told, told])
})

test.each([
  [true, false, {}, true],
  [true, true, {}, undefined],
  [false, false, {}, undefined],
  [true, false, { _meta: { [RELATED]: { taskId: '1' } } }, undefined],
])(
  'on a link that is quiet: %s, within a stream: %s, with %j a question is unsolicited: %s',
  (isQuiet, isWithin, params, expected) => {
    const { request, asked } = linkWith([], { isQuiet })
    request(params, undefined, isWithin)
    expect(asked[0]?.question.isUnsolicited).toBe(expected)
  },
)

test('a question of a task is asked where its result is waited for, else where it was made, unless its follower answers', async () => {
  const params = { _meta: { [RELATED]: { taskId: '1' } } }
  const waiting = call('tasks/result', ANN, '1')
  const others = [call('tasks/result', ANN, '2'), call('tasks/get', ANN, '1')]
  const first = linkWith([waiting, ...others], { task: one })
  first.request(params, other)
  const second = linkWith(others, { task: one })
  second.request(params)
  expect([first.asked[0]?.call, second.asked[0]?.call]).toEqual([waiting, one])
  const third = linkWith([], { task: one, answersTasks: true })
  third.request(params)
  await third.settled()
  expect([third.asked, third.sent]).toEqual([[], [['result', '3', { task: 1 }]]])
})

test('a ping is answered at once', () => {
  const { request, asked, sent } = linkWith([one])
  request({}, undefined, false, 'ping')
  expect([asked, sent]).toEqual([[], [['result', '3', {}]]])
})

test('B145 a server that gave a progress token hears every 20 s that its question is open, until a host reports progress or answers', async () => {
  const { request, asked, sent, settled } = linkWith([one])
  request({ _meta: { progressToken: 't' } })
  vi.advanceTimersByTime(40_000)
  const beat = (progress: number) => ['notifications/progress', { progressToken: 't', progress }]
  expect(sent).toEqual([beat(1), beat(2)])
  asked[0]?.question.progress?.(Payload.of({ progressToken: 9, progress: 5 }))
  vi.advanceTimersByTime(40_000)
  expect(sent.slice(2)).toEqual([beat(5)])
  const again = linkWith([one])
  again.request({ _meta: { progressToken: 't' } })
  again.asked[0]?.answer({ result: Payload.of({}) })
  await again.settled()
  vi.advanceTimersByTime(40_000)
  expect(again.sent).toEqual([['result', '3', {}]])
  const quiet = linkWith([one])
  quiet.request()
  vi.advanceTimersByTime(40_000)
  expect([quiet.sent, quiet.asked[0]?.question.progress]).toEqual([[], undefined])
  await settled()
})

test('B136 progress of a host below the last heartbeat is not relayed, and the heartbeats go on', () => {
  const { request, asked, sent } = linkWith([one])
  request({ _meta: { progressToken: 't' } })
  vi.advanceTimersByTime(40_000)
  for (const progress of [0.5, 2]) asked[0]?.question.progress?.(Payload.of({ progressToken: 9, progress }))
  vi.advanceTimersByTime(20_000)
  for (const progress of [3.5, 1]) asked[0]?.question.progress?.(Payload.of({ progressToken: 9, progress }))
  vi.advanceTimersByTime(40_000)
  const beat = (progress: number) => ['notifications/progress', { progressToken: 't', progress }]
  expect(sent).toEqual([1, 2, 3, 3.5].map(beat))
})

test('a question that is withdrawn is withdrawn at the host, and its answer is not sent', async () => {
  const { attribution, request, asked, sent, paused, settled } = linkWith([one])
  const notices: unknown[] = []
  request()
  asked[0]?.question.onWithdrawn?.((notice) => notices.push(notice))
  for (const params of [undefined, Payload.of({}), Payload.of({ requestId: 4 })]) attribution.withdraw(params)
  expect(notices).toEqual([])
  const notice = Payload.of({ requestId: 3, reason: 'r' })
  attribution.withdraw(notice)
  expect(notices).toEqual([notice])
  asked[0]?.answer({ result: Payload.of({}) })
  await settled()
  expect([sent, paused.size]).toEqual([[], 0])
  attribution.withdraw(notice)
  expect(notices).toHaveLength(1)
})
