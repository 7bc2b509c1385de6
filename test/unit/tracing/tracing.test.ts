/** Spans and durations of calls, without a collector: what is kept of them, and when they end. */
import { SpanStatusCode } from '@opentelemetry/api'
import type { Attributes, Histogram } from '@opentelemetry/api'
import { TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { expect, test, vi } from 'vitest'
import { complete, ServerError } from '../../../src/rpc/call.ts'
import type { Call, Handler, Question, ResponseChannel } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { DEFAULT_TRACING } from '../../../src/tracing/options.ts'
import { Tracing } from '../../../src/tracing/tracing.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { StreamedResult } from '../../../src/wire/result/streamed-result.ts'
import { callOf } from '../../support/calls.ts'

/** Tracing whose spans and durations are kept here. */
const start = (captureArguments = false) => {
  const spans: ReadableSpan[] = []
  const durations: (readonly [string, number, Attributes])[] = []
  const provider = new TracerProvider({
    spanProcessors: [
      {
        onStart: () => undefined,
        onEnd: (span) => void spans.push(span),
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  })
  const histogram = (name: string): Histogram => ({
    record: (seconds, attributes = {}) => void durations.push([name, seconds, attributes]),
  })
  const tracing = new Tracing(
    { ...DEFAULT_TRACING, endpoint: new URL('http://127.0.0.1:9'), captureArguments },
    {
      log: { info: () => undefined, warn: () => undefined },
      hit: () => undefined,
      version: '1',
      instance: 'i',
      toolsetOf: () => 'work',
      hide: (text) => text.replaceAll('hush', '***'),
      hideJson: (json) => json.replaceAll('hush', '***'),
    },
    provider.getTracer('test'),
    {
      serverOperation: histogram('server'),
      clientOperation: histogram('client'),
      serverSession: histogram('server session'),
      clientSession: histogram('client session'),
    },
    () => Promise.resolve(),
  )
  return { tracing, spans, durations }
}
const done: Handler = () => Promise.resolve(complete(Payload.of({ content: [] })))
const A = { key: 'a', url: undefined, revision: '2026-07-28' }

test('a call and its request to a server are spans of one trace, and durations of both sides', async () => {
  const { tracing, spans, durations } = start()
  vi.useFakeTimers({ toFake: ['performance'] })
  vi.advanceTimersByTime(10_000)
  const seen: (readonly [string | undefined, string | undefined])[] = []
  const responseChannel: ResponseChannel = { hostId: '1', transport: 'tcp' }
  const answer = tracing.layer((call) => {
    const send: Handler = (sent) => {
      seen.push([sent.trace?.traceId, sent.trace?.spanId])
      vi.advanceTimersByTime(500)
      return done(sent)
    }
    vi.advanceTimersByTime(1_000)
    return call.trace!.sending(A, send)(call)
  })
  await answer(callOf({ responseChannel }))
  const [client, server] = spans
  expect(spans.map(({ name, status }) => [name, status.code])).toEqual([
    ['tools/call a__x', SpanStatusCode.UNSET],
    ['tools/call a__x', SpanStatusCode.UNSET],
  ])
  expect(client?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId)
  expect(seen).toEqual([[server?.spanContext().traceId, client?.spanContext().spanId]])
  expect(responseChannel.traceId).toBe(server?.spanContext().traceId)
  expect(durations.map(([name, seconds]) => [name, seconds])).toEqual([
    ['client', 0.5],
    ['server', 1.5],
  ])
  expect(server?.attributes['trunkline.toolset']).toBe('work')
})

test('the name of a tool is part of durations where it is in the catalog', async () => {
  for (const isListed of [true, false]) {
    const { tracing, durations } = start()
    await tracing.layer((call) => call.trace!.sending(A, done)(call))(callOf({ record: { isListed } }))
    const name = isListed ? 'a__x' : undefined
    expect(durations.map(([, , attributes]) => attributes['gen_ai.tool.name'])).toEqual([name, name])
  }
})

test.each<[what: string, error: unknown, isCancelled: boolean, type: string, message: string | undefined]>([
  ['a failure', new Failure('lost', 'no hush'), false, 'lost', 'no ***'],
  ['an error that no code expects', new Error('hush'), false, '_OTHER', undefined],
  ['a failure after a cancellation', new Failure('lost', 'gone'), true, 'cancelled', 'gone'],
])('%s is the error of its span and rejects the call', async (_, error, isCancelled, type, message) => {
  const { tracing, spans, durations } = start()
  const cancellation = new Cancellation()
  if (isCancelled) cancellation.abort()
  const call = callOf({ signal: cancellation.signal })
  await expect(tracing.layer(() => Promise.reject(error as Error))(call)).rejects.toBe(error)
  expect(spans[0]?.attributes['error.type']).toBe(type)
  expect(spans[0]?.status).toEqual({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
  expect(durations.map(([, , attributes]) => attributes['error.type'])).toEqual([type])
})

test.each([
  [-32_602, '-32602'],
  [-32_042, '-32042'],
  [-32_768, undefined],
  [-5, undefined],
  [1_730_000_000, undefined],
])(
  'the code %i of a server is on its span; durations are split by it only if a revision or JSON-RPC has it',
  async (code, shown) => {
    const { tracing, spans, durations } = start()
    const error = new ServerError(code, 'no', Payload.of({ code, message: 'no' }))
    await expect(tracing.layer(() => Promise.reject(error))(callOf())).rejects.toBe(error)
    expect(spans[0]?.attributes).toMatchObject({ 'error.type': String(code), 'rpc.response.status_code': String(code) })
    const [, , attributes] = durations[0] ?? []
    expect([attributes?.['error.type'], attributes?.['rpc.response.status_code']]).toEqual([shown ?? '_OTHER', shown])
  },
)

test('a call that goes well is no error, even if it was cancelled meanwhile', async () => {
  const { tracing, spans } = start()
  const cancellation = new Cancellation()
  cancellation.abort()
  await tracing.layer(done)(callOf({ signal: cancellation.signal }))
  expect([spans[0]?.status, spans[0]?.attributes['error.type']]).toEqual([{ code: SpanStatusCode.UNSET }, undefined])
})

test('arguments and results are kept up to 64 KiB, of tools alone, and only where that is asked for', async () => {
  const of = async (facts: Partial<Call>, result: Payload, isOn = true): Promise<(string | undefined)[]> => {
    const { tracing, spans } = start(isOn)
    await tracing.layer(() => Promise.resolve(complete(result)))(callOf(facts))
    return ['arguments', 'result'].map((what) => spans[0]?.attributes[`gen_ai.tool.call.${what}`] as string | undefined)
  }
  const sized = (bytes: number): Payload => Payload.of({ a: 'x'.repeat(bytes - '{"a":""}'.length) })
  const paramsOf = (args: unknown): Payload => Payload.of({ name: 'a__x', arguments: args })
  const small = Payload.of({ content: 'hush' })
  expect(await of({ params: paramsOf({ a: 'hush' }) }, small)).toEqual(['{"a":"***"}', '{"content":"***"}'])
  expect(await of({ params: paramsOf({}) }, small, false)).toEqual([undefined, undefined])
  expect(await of({ params: Payload.of({ name: 'a__x' }) }, small)).toEqual([undefined, '{"content":"***"}'])
  expect(await of({ method: 'prompts/get', params: paramsOf({}) }, small)).toEqual([undefined, undefined])
  expect((await of({}, sized(65_536)))[1]).toHaveLength(65_536)
  expect((await of({}, sized(65_537)))[1]).toBeUndefined()
})

test('T-14 arguments and results hold no value of a member that is named like a secret', async () => {
  const { tracing, spans } = start(true)
  const params = Payload.of({ name: 'a__x', arguments: { user: 'bob', password: 'unknown-1' } })
  await tracing.layer(() => Promise.resolve(complete(Payload.of({ structuredContent: { apiKey: 'unknown-2' } }))))(
    callOf({ params }),
  )
  expect(spans[0]?.attributes).toMatchObject({
    'gen_ai.tool.call.arguments': '{"user":"bob","password":"***"}',
    'gen_ai.tool.call.result': '{"structuredContent":{"apiKey":"***"}}',
  })
})

test.each<[what: string, end: (result: StreamedResult) => void, type: string | undefined]>([
  ['goes through', (result) => result.finish(), undefined],
  ['breaks off', (result) => result.fail(new Failure('lost', 'gone')), 'lost'],
])('a call with a streamed result that %s is over with its stream', async (_, end, type) => {
  const { tracing, spans, durations } = start()
  const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
  const source = { pause: () => undefined, resume: () => undefined, abort: () => undefined }
  const result = StreamedResult.begin(bytes, '1', source)
  if (!(result instanceof StreamedResult)) throw new Error('it is read whole')
  await tracing.layer(() => Promise.resolve(complete(result)))(callOf())
  expect([spans, durations]).toEqual([[], []])
  result.pipe({ write: () => undefined, end: () => undefined, fail: () => undefined })
  end(result)
  expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual([type])
  expect(durations).toHaveLength(1)
})

test('the trace of the HTTP request is a link of the span of a call, where there is one', async () => {
  const { tracing, spans } = start()
  for (const ambient of [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, undefined])
    await tracing.layer(done)(callOf({ responseChannel: { hostId: '1', ambient } }))
  const linked = { context: expect.objectContaining({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }) as unknown }
  expect(spans.map(({ links }) => links)).toEqual([[expect.objectContaining(linked)], []])
})

test('a question to the host is a span below its call, or below the span of the server that asks', async () => {
  const { tracing, spans } = start()
  const asked: unknown[] = []
  const ask = async (question: Question) => {
    asked.push(JSON.parse(join(question.params?.parts() ?? []).toString()))
    return question.method === 'roots/list' ? { error: Payload.of({ code: -7 }) } : { result: Payload.of({}) }
  }
  const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await tracing.layer(async (call) => {
    await call.ask!({ method: 'elicitation/create', params: Payload.of({}) })
    await call.ask!({ method: 'roots/list', params: Payload.of({ _meta: { traceparent: parent } }) })
    return done(call)
  })(callOf({ ask }))
  const [first, second, call] = spans
  expect([first?.name, second?.name]).toEqual(['elicitation/create', 'roots/list'])
  expect([first?.parentSpanContext?.spanId, second?.parentSpanContext?.spanId]).toEqual([
    call?.spanContext().spanId,
    'b'.repeat(16),
  ])
  expect(asked).toEqual(
    [first, second].map((span) => {
      return { _meta: { traceparent: `00-${span?.spanContext().traceId}-${span?.spanContext().spanId}-01` } }
    }),
  )
  expect([first?.status.code, second?.status.code]).toEqual([SpanStatusCode.UNSET, SpanStatusCode.ERROR])
  expect([first?.attributes['error.type'], second?.attributes['error.type']]).toEqual([undefined, '-7'])
})

test('a question of a server with a tracestate alone takes it to no host: it belongs to no trace', async () => {
  const { tracing } = start()
  const asked: unknown[] = []
  const ask = async ({ params }: Question) => {
    asked.push(JSON.parse(join(params?.parts() ?? []).toString()))
    return { result: Payload.of({}) }
  }
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await tracing.layer(async (call) => {
    for (const meta of [{}, { traceparent: 'unreadable' }, { traceparent }])
      await call.ask!({ method: 'roots/list', params: Payload.of({ _meta: { ...meta, tracestate: 'of=another' } }) })
    return done(call)
  })(callOf({ ask }))
  expect(asked.map((params) => (params as { _meta: { tracestate?: string } })._meta.tracestate)).toEqual([
    undefined,
    undefined,
    'of=another',
  ])
})

test.each([
  ['a long text', 'x'.repeat(100_000)],
  ['an object', {}],
  ['a fraction', 1.5],
  ['null', null],
])('a question that a host answers with an error, its code %s, is _OTHER', async (_, code) => {
  const { tracing, spans } = start()
  const ask = () => Promise.resolve({ error: Payload.of({ code, message: 'no' }) })
  await tracing.layer(async (call) => {
    await call.ask!({ method: 'roots/list', params: undefined })
    return done(call)
  })(callOf({ ask }))
  expect(spans[0]?.attributes['error.type']).toBe('_OTHER')
})

test('a question that gets no answer ends its span', async () => {
  const { tracing, spans } = start()
  const failure = new Failure('lost', 'gone')
  const answer = tracing.layer(async (call) => {
    await call.ask!({ method: 'roots/list', params: undefined })
    return done(call)
  })
  await expect(answer(callOf({ ask: () => Promise.reject(failure) }))).rejects.toBe(failure)
  expect(spans.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
    ['roots/list', 'lost'],
    ['tools/call a__x', 'lost'],
  ])
})

test('a server is told of its span, under the id of its request', async () => {
  const { tracing, spans } = start()
  const meta = Payload.of({ tracestate: 'of=another' })
  await tracing.layer((call) =>
    call.trace!.sending(A, (sent) => {
      sent.trace?.write(meta, 7)
      return done(sent)
    })(call),
  )(callOf())
  const [client] = spans
  const { traceId, spanId } = client!.spanContext()
  expect(JSON.parse(join(meta.parts()).toString())).toEqual({ traceparent: `00-${traceId}-${spanId}-01` })
  expect(client?.attributes['jsonrpc.request.id']).toBe('7')
})

test('sessions and connections to servers have their durations', async () => {
  const { tracing, durations } = start()
  vi.useFakeTimers({ toFake: ['performance'] })
  vi.advanceTimersByTime(10_000)
  let end = (): void => undefined
  tracing.sessionOpened({ revision: '2025-11-25', onEnd: (callback) => ((end = callback), () => undefined) })
  const closed = [Promise.withResolvers<Failure | undefined>(), Promise.withResolvers<Failure | undefined>()]
  for (const { promise } of closed)
    // Casts: what is read of a link and its options.
    tracing.linkOpened(
      { closed: promise, revision: '2025-11-25' } as Parameters<typeof tracing.linkOpened>[0],
      { key: 'a', url: new URL('http://a.test/mcp') } as Parameters<typeof tracing.linkOpened>[1],
    )
  vi.advanceTimersByTime(2_000)
  end()
  closed[0]?.resolve(undefined)
  closed[1]?.resolve(new Failure('lost', 'gone'))
  await Promise.all(closed.map(({ promise }) => promise))
  const link = {
    'mcp.protocol.version': '2025-11-25',
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'server.address': 'a.test',
    'server.port': 80,
    'trunkline.server': 'a',
  }
  expect(durations).toEqual([
    ['server session', 2, { 'mcp.protocol.version': '2025-11-25' }],
    ['client session', 2, link],
    ['client session', 2, { ...link, 'error.type': 'lost' }],
  ])
})

test('names, ids and messages of megabytes take no memory of the queue of spans', async () => {
  const { tracing, spans } = start()
  const long = 'x'.repeat(4_000_000)
  const answer = tracing.layer((call) =>
    call.trace!.sending(A, () => Promise.reject(new ServerError(-32000, long, Payload.of({}))))(call),
  )
  const call = callOf({ target: long, responseChannel: { hostId: `"${long}"`, transport: 'tcp' } })
  await expect(answer(call)).rejects.toThrow()
  expect(spans).toHaveLength(2)
  for (const { name, status, attributes } of spans) expect(JSON.stringify([name, status, attributes]).length).toBeLessThan(10_000)
  expect(spans[0]?.name).toBe(`tools/call ${'x'.repeat(1_024)}`)
})

test('B277 a method that a bridge relays, of any length, takes no memory of the queue of spans, and makes no series of its own', async () => {
  const { tracing, spans, durations } = start()
  const answer = tracing.layer((call) => call.trace!.sending(A, done)(call))
  await answer(callOf({ method: 'x'.repeat(4_000_000), target: undefined }))
  await answer(callOf({ method: 'acme/reindex', target: undefined }))
  expect(spans.map(({ name, attributes }) => [name.length, String(attributes['mcp.method.name']).length])).toEqual([
    [1_024, 1_024],
    [1_024, 1_024],
    [12, 12],
    [12, 12],
  ])
  expect(durations.map(([, , attributes]) => attributes['mcp.method.name'])).toEqual(Array(4).fill('_OTHER'))
})

test('T-14 a secret in the URI of a resource, or in a name, leaves on neither side', async () => {
  const { tracing, spans } = start()
  const read = tracing.layer((call) => call.trace!.sending(A, done)(call))
  await read(callOf({ method: 'resources/read', target: 'postgres://me:hush@db/table' }))
  await read(callOf({ target: 'a__hush' }))
  expect(spans).toHaveLength(4)
  expect(JSON.stringify(spans.map(({ name, attributes }) => [name, attributes]))).not.toContain('hush')
  expect(spans[0]?.attributes['mcp.resource.uri']).toBe('postgres://me:***@db/table')
})
