/** Calls as they are recorded from outside: their messages, who sees them, pages of them, and how they are counted. */
import { describe, expect, test } from 'vitest'
import { formatMetrics } from '../../../src/observe/metrics/exposition.ts'
import { Observer } from '../../../src/observe/observer.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'
import type { ObserveOptions } from '../../../src/observe/options.ts'
import { complete, ServerError } from '../../../src/rpc/call.ts'
import type { Call, Handler, HostSession } from '../../../src/rpc/call.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { StreamedResult } from '../../../src/wire/result/streamed-result.ts'
import { callOf } from '../../support/calls.ts'

const PIPE = { era: 'legacy', revision: '2025-11-25', transport: 'pipe' } as const
const OPERATOR = { principal: 'local', isOperator: true }
const ANY = (): boolean => true

/** The ids of the calls that are open, newest first. */
const openIn = (observer: Observer): readonly number[] =>
  observer.page(OPERATOR, ({ state }) => state === 'open', 9).calls.map(({ id }) => id)

const observing = (more: { readonly [K in keyof ObserveOptions]?: Partial<ObserveOptions[K]> } = {}) => {
  const clock = { ms: 1_000 }
  const passed: string[] = []
  let ref = 0
  const observer = new Observer({
    options: () => ({
      admin: { ...DEFAULT_OBSERVE.admin, ...more.admin },
      capture: { ...DEFAULT_OBSERVE.capture, bodies: 'all', ...more.capture },
      metrics: { ...DEFAULT_OBSERVE.metrics, ...more.metrics },
    }),
    hide: (text) => text,
    toolsetOf: ({ toolset }) => toolset,
    passed: (option) => passed.push(option),
    nextRef: () => ++ref,
    nowMs: () => clock.ms,
    wallMs: () => 1_700_000_000_000 + clock.ms,
  })
  const run = async (
    inner: Handler = () => Promise.resolve(complete(Payload.of({ n: 1 }))),
    facts: Parameters<typeof callOf>[0] = {},
  ): Promise<number> => {
    await observer
      .layer(inner)(callOf({ ref: 0, ...facts }))
      .catch(() => undefined)
    return ref
  }
  return { observer, clock, passed, run, find: (id: number) => observer.find(id, OPERATOR)! }
}

const answerOf = (id: number) => readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"n":1}}`))
const sending: Handler = async ({ record }) => {
  record?.sent?.([Buffer.from('{"id":5,"params":{"name":"x"}}')], 5, PIPE)
  record?.progressed?.()
  record?.received?.(answerOf(5))
  record?.deviated?.({ feature: 'f', rule: 'B1', verdict: 'projected', reason: 'r' })
  return complete(Payload.of({ n: 1 }))
}

describe('a call', () => {
  test('is kept with its messages on both sides and what differs between them', async () => {
    const { run, find, clock, observer } = observing()
    const id = await run(
      (call) => {
        clock.ms += 3
        const answer = sending(call)
        clock.ms += 4
        return answer
      },
      {
        params: Payload.of({ name: 'a__x' }),
        caller: { scope: { server: undefined, toolset: 't' }, session: { id: 'S' } as HostSession, revision: '2025-11-25' },
      },
    )
    const { session, ...call } = find(id)
    expect(call).toMatchObject({
      id,
      method: 'tools/call',
      principal: 'local',
      revision: '2025-11-25',
      era: 'legacy',
      toolset: 't',
      state: 'done',
      outcome: 'ok',
      rules: ['B1'],
      bytesIn: call.request?.text?.length,
      bytesOut: call.response?.text?.length,
      request: { text: expect.stringContaining('"name":"a__x"') as unknown },
      response: { text: expect.stringContaining('"n":1') as unknown },
      hops: [
        {
          requestId: 5,
          end: 'result',
          request: { text: '{"id":5,"params":{"name":"x"}}' },
          response: { text: answerOf(5).bytes.toString() },
        },
      ],
      times: { started: 0, sent: 3, firstByte: 3, done: 3, answered: 7, written: 7 },
    })
    expect(session).toEqual(expect.any(String))
    expect(call.diff?.request.map(({ path }) => path.join('.'))).toContain('params.name')
    expect(call.diff?.response.map(({ path }) => path.join('.'))).toContain('id')
    expect(observer.latest).toBe(id)
  })

  test('that is answered while it comes is kept with the ends of the answer, and ends when that does', async () => {
    const { run, find, observer, clock } = observing()
    const free = { pause: () => undefined, resume: () => undefined, abort: () => undefined }
    const result = StreamedResult.begin(
      Buffer.from('{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"'),
      '5',
      free,
    )
    if (!(result instanceof StreamedResult)) throw new Error('it is read whole')
    const id = await run(async ({ record }) => {
      record?.sent?.([Buffer.from('{}')], 5, PIPE)
      record?.received?.({ ...answerOf(5), result })
      return complete(result)
    })
    expect([find(id).state, find(id).hops[0]?.end, openIn(observer)]).toEqual(['open', 'open', [id]])
    clock.ms += 5
    result.pipe({ write: () => undefined, end: () => undefined, fail: () => undefined })
    result.push(Buffer.from('x"}]}}'))
    result.finish()
    expect(find(id)).toMatchObject({
      state: 'done',
      outcome: 'streamed',
      bytesOut: expect.any(Number) as unknown,
      hops: [{ end: 'result', done: 5, response: { streamed: true, text: expect.stringContaining('x"}]}}') as unknown } }],
    })
    expect(find(id).bytesOut).toBeGreaterThan(50)
    expect(openIn(observer)).toEqual([])
  })

  test('that fails while its host is asked has its lane and its question ended with it', async () => {
    const { run, find, clock } = observing()
    const id = await run(
      async ({ record, ask }) => {
        record?.sent?.([Buffer.from('{}')], 5, PIPE)
        clock.ms += 1
        void ask?.({ method: 'roots/list', params: undefined })
        clock.ms += 1
        throw new ServerError(5, 'no', Payload.of({}))
      },
      { ask: () => new Promise(() => undefined) },
    )
    expect(find(id)).toMatchObject({
      outcome: 'error',
      error: { code: 5, message: 'no' },
      asks: [{ from: 1, to: 2 }],
      hops: [{ end: 'lost', done: 2 }],
    })
  })

  test.each([
    ['off', false, false],
    ['errors', false, true],
    ['all', true, true],
  ] as const)(
    'with bodies %s is kept with its messages if it is good: %s, and if it failed: %s',
    async (bodies, ofGood, ofBad) => {
      const { run, find } = observing({ capture: { bodies } })
      const failing: Handler = async (call) => {
        await sending(call)
        throw new ServerError(5, 'no', Payload.of({}))
      }
      const [good, bad] = [find(await run(sending)), find(await run(failing))]
      expect(
        [good, bad].map(({ request, hops }) => [
          request !== undefined,
          hops[0]?.request !== undefined,
          hops[0]?.response !== undefined,
        ]),
      ).toEqual([ofGood, ofBad].map((isKept) => [isKept, isKept, isKept]))
    },
  )

  test('is kept with its messages while a reader wants them, whatever the option', async () => {
    const { run, find, observer } = observing({ capture: { bodies: 'off' } })
    const stop = observer.keepWhole()
    expect([observer.bodies, find(await run(sending)).request === undefined]).toEqual(['all', false])
    stop()
    expect([observer.bodies, find(await run(sending)).request === undefined]).toEqual(['off', true])
  })
})

test('a result that is an error, a retry and progress are told with their times', async () => {
  const { run, find, clock } = observing()
  const id = await run(async ({ record }) => {
    clock.ms += 1
    record?.sent?.([Buffer.from('{}')], 1, PIPE)
    clock.ms += 1
    record?.sent?.([Buffer.from('{}')], 2, PIPE)
    for (const _ of [1, 2]) {
      clock.ms += 1
      record?.progressed?.()
    }
    clock.ms += 1
    record?.received?.(answerOf(2))
    return complete(Payload.of({ isError: true }))
  })
  expect(find(id)).toMatchObject({
    outcome: 'tool_error',
    hops: [
      { sent: 1, firstByte: null, done: 2, end: 'lost' },
      { sent: 2, firstByte: 3, done: 5, end: 'result' },
    ],
  })
})

test('a call that is begun by its listener is kept with what that knows, and counts the bytes of its params', async () => {
  const { observer, find } = observing()
  const { caller } = callOf()
  const begun = { ...caller, ref: 7, method: 'tools/call', clientInfo: { name: 'h' }, replayOf: 3, message: undefined } as const
  const recording = observer.begin({ ...begun, transport: 'sse' })
  recording.progressed()
  recording.received(answerOf(1))
  const params = Payload.at(Buffer.from('   {"name":"a"}'), 3)
  await observer.layer(async () => complete(Payload.of({})))(callOf({ ref: 7, params, record: recording }))
  recording.answered(undefined)
  expect(find(7)).toMatchObject({ transport: 'sse', replayOf: 3, host: 'h', outcome: 'ok', bytesIn: 12, hops: [] })
})

describe('who looks', () => {
  test('sees its own calls, an operator all of them, and neither what is too old', async () => {
    const { run, observer, clock, passed } = observing({ capture: { maxAgeMs: 100 } })
    const [ann, bob] = ['ann', 'bob'].map((principal) => ({ principal, isOperator: false }))
    const id = await run(undefined, { caller: { principal: 'ann' } })
    expect([OPERATOR, ann!, bob!].map((viewer) => observer.find(id, viewer)?.id)).toEqual([id, id, undefined])
    expect([OPERATOR, ann!, bob!].map((viewer) => observer.page(viewer, ANY, 9).calls.length)).toEqual([1, 1, 0])
    clock.ms += 100
    expect([observer.find(id, OPERATOR), observer.find(99, OPERATOR), passed]).toEqual([undefined, undefined, ['ui.capture.ttl']])
    await run()
    clock.ms += 100
    expect(observer.page(OPERATOR, ANY, 9)).toEqual({ calls: [], next: null, kept: { calls: 0, bytes: 0, oldest: null } })
  })

  test('sees pages of kept and open calls, the newest first', async () => {
    const { run, observer } = observing()
    const gate = Promise.withResolvers<void>()
    const open = observer.layer(() => gate.promise.then(() => complete(Payload.of({}))))(
      callOf({ ref: 3, caller: { principal: 'bob' } }),
    )
    for (const ref of [1, 5, 2, 4]) await run(undefined, { ref })
    const page = (limit: number, before?: number, filter = ANY) => {
      const { calls, next } = observer.page(OPERATOR, filter, limit, before)
      return [calls.map(({ id }) => id), next]
    }
    expect([page(9), page(2), page(2, 4), page(2, 2), page(5)]).toEqual([
      [[5, 4, 3, 2, 1], null],
      [[5, 4], 4],
      [[3, 2], 2],
      [[1], null],
      [[5, 4, 3, 2, 1], null],
    ])
    expect(openIn(observer)).toEqual([3])
    expect(observer.page({ principal: 'bob', isOperator: false }, ANY, 9).calls.map(({ id }) => id)).toEqual([3])
    expect(observer.page(OPERATOR, ANY, 9).kept).toEqual({
      calls: 4,
      bytes: observer.keptBytes,
      oldest: new Date(1_700_000_001_000).toISOString(),
    })
    gate.resolve()
    await open
    expect([observer.keptCalls, openIn(observer)]).toEqual([5, []])
  })

  test('sees what ended since a time, and is told of a ring that is full', async () => {
    const { run, observer, clock, passed } = observing({ capture: { maxBytes: 3_000, bodies: 'off' } })
    for (let at = 0; at < 3; at++) {
      await run()
      clock.ms += 10
    }
    expect([observer.since(1_010).map(({ id }) => id), observer.since(1_011).map(({ id }) => id), passed]).toEqual([
      [2, 3],
      [3],
      ['ui.capture.ring'],
    ])
    observer.refusedReader()
    expect(passed.at(-1)).toBe('ui.capture.readers')
  })

  test('is told of calls in the order of their numbers until it stops, and nothing is kept without readers and a page', async () => {
    const { run, observer } = observing({ admin: { hasUi: false } })
    await run()
    expect(observer.keptCalls).toBe(0)
    const told: number[][] = []
    const first = Promise.withResolvers<void>()
    const stop = observer.feed.subscribe((calls) => {
      told.push(calls.map(({ id }) => id))
      first.resolve()
    })
    for (const ref of [7, 6]) await run(undefined, { ref })
    await first.promise
    expect([told, observer.keptCalls]).toEqual([[[6, 7]], 2])
    await run(undefined, { ref: 8 })
    stop()
    const second = Promise.withResolvers<void>()
    const end = observer.feed.subscribe((calls) => {
      told.push(calls.map(({ id }) => id))
      second.resolve()
    })
    await run(undefined, { ref: 9 })
    await second.promise
    expect(told).toEqual([[6, 7], [9]])
    end()
    expect(observer.feed.readers).toBe(0)
    observer.feed.subscribe(() => told.push([]))
    observer[Symbol.dispose]()
    expect(observer.feed.readers).toBe(0)
  })
})

describe('a call is counted', () => {
  const linesOf = (observer: Observer): readonly string[] => formatMetrics(observer.metrics.families, false).split('\n')
  const routed =
    (facts: object, ms: number, clock: { ms: number }): Handler =>
    async ({ record }: Call) => {
      Object.assign(record ?? {}, facts)
      clock.ms += ms
      return complete(Payload.of({}))
    }

  test.each<[method: string, target: string, isListed: boolean, session: string | undefined, labels: string]>([
    ['tools/call', 'one__a', true, undefined, 'server="one",tool="one__a",method="tools/call",outcome="ok",era="modern"'],
    ['prompts/get', 'one__p', true, 'S', 'server="one",tool="one__p",method="prompts/get",outcome="ok",era="legacy"'],
    ['tools/call', 'made up', false, undefined, 'server="one",tool="",method="tools/call",outcome="ok",era="modern"'],
    ['resources/read', 'a://x', true, undefined, 'server="one",tool="",method="resources/read",outcome="ok",era="modern"'],
  ])('%s of %s, listed: %s', async (method, target, isListed, session, labels) => {
    const { run, observer, clock } = observing()
    await run(routed({ server: 'one', isListed }, 2_000, clock), {
      method,
      target,
      caller: { session: session === undefined ? undefined : ({ id: session } as HostSession) },
    })
    expect(linesOf(observer)).toContain(`trunkline_calls_total{${labels}} 1`)
    expect(linesOf(observer).find((line) => line.startsWith('trunkline_call_duration_seconds_sum'))).toMatch(/ 2$/)
  })

  test('unless metrics are off', async () => {
    const { run, observer } = observing({ metrics: { isOn: false } })
    await run()
    expect(observer.metrics.families.flatMap(({ samples }) => [...samples])).toEqual([])
  })
})
