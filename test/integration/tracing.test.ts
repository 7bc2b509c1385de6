/** Calls are spans of OpenTelemetry, and their durations metrics (`telemetry.otlp`); a collector never disturbs a call. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Configuration } from '../../src/config/options.ts'
import { DEFAULT_TRACING } from '../../src/tracing/options.ts'
import { startCollector } from '../support/collector.ts'
import type { CollectedSpan, Collector, Mood } from '../support/collector.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const collectors: Collector[] = []
afterEach(async () => {
  await Promise.all(collectors.splice(0).map((collector) => collector[Symbol.asyncDispose]()))
})

type Options = Partial<NonNullable<Configuration['tracing']>>

const collect = async (protocol: 'http/protobuf' | 'grpc' = 'http/protobuf'): Promise<Collector> => {
  const collector = await startCollector(protocol)
  collectors.push(collector)
  return collector
}
const tracingTo = (url: string, options: Options = {}): NonNullable<Configuration['tracing']> => ({
  ...DEFAULT_TRACING,
  endpoint: new URL(url),
  delayMs: 20,
  metricsIntervalMs: 100,
  timeoutMs: 1_000,
  ...options,
})
const traced = (url: string, setup: GatewaySetup, options: Options = {}): Promise<TestGateway> =>
  startGateway({ ...setup, tracing: tracingTo(url, options) })

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const traceparent = (flags = '01', trace = TRACE, span = PARENT): string => `00-${trace}-${span}-${flags}`
const ofKind = (collector: Collector, kind: CollectedSpan['kind']): Promise<CollectedSpan> =>
  collector.spans.until((span) => span.kind === kind && span.attributes['mcp.method.name'] === 'tools/call')

describe.each(everyTransport)('a call of a host over $name', ({ connect, era }) => {
  test.each(everyFakeKind)('B020 to a %s server is a SERVER span and a CLIENT span of the trace of the host', async (kind) => {
    const collector = await collect()
    await using gateway = await traced(collector.url, { servers: { a: fake.of({ kind, tools: ['echo'] }) } })
    await using host = await connect(gateway)
    const meta = { traceparent: traceparent(), tracestate: 'vendor=1,other=2', baggage: 'user=7' }
    await host.call('tools/call', { name: 'a__echo', _meta: meta }, { id: 'seven', meta })
    const [server, client] = await Promise.all([ofKind(collector, 'SPAN_KIND_SERVER'), ofKind(collector, 'SPAN_KIND_CLIENT')])
    expect(server).toMatchObject({
      name: 'tools/call a__echo',
      traceId: TRACE,
      parentSpanId: PARENT,
      traceState: 'vendor=1,other=2',
      resource: { 'service.name': 'trunkline' },
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'a__echo',
        'jsonrpc.request.id': 'seven',
        'mcp.protocol.version': era === 'modern' ? '2026-07-28' : '2025-11-25',
      },
    })
    expect(client).toMatchObject({
      name: 'tools/call echo',
      traceId: TRACE,
      parentSpanId: server.spanId,
      attributes: {
        'gen_ai.tool.name': 'echo',
        'trunkline.server': 'a',
        'network.transport': kind.endsWith('stdio') ? 'pipe' : 'tcp',
        'jsonrpc.request.id': expect.stringMatching(/^\d+$/) as unknown,
      },
    })
    const { message } = await gateway.fake('a').until('tools/call')
    expect(metaOf(message)).toMatchObject({ ...meta, traceparent: traceparent('01', TRACE, client.spanId) })
    expect(server.status.code).toBe('STATUS_CODE_UNSET')
  })
})

test.each(everyFakeKind)(
  'a host without traces begins one: a %s server is told of it, and of no state of another',
  async (kind) => {
    const collector = await collect()
    await using gateway = await traced(collector.url, { servers: { a: fake.of({ kind, tools: ['echo'] }) } })
    await using host = await modernHttp.connect(gateway)
    const meta = { traceparent: 'not-a-context', tracestate: 'of=nothing', 'com.example/x': 1 }
    await host.call('tools/call', { name: 'a__echo' }, { meta })
    const client = await ofKind(collector, 'SPAN_KIND_CLIENT')
    const sent = metaOf((await gateway.fake('a').until('tools/call')).message)
    expect(sent['traceparent']).toBe(traceparent('01', client.traceId, client.spanId))
    expect(sent).not.toHaveProperty('tracestate')
    expect(sent).toHaveProperty(['com.example/x'], 1)
    const server = await ofKind(collector, 'SPAN_KIND_SERVER')
    expect([server.parentSpanId, server.traceId]).toEqual(['', client.traceId])
  },
)

test('the trace context of the HTTP request is a link, not the parent', async () => {
  const collector = await collect()
  await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } })
  const ambient = { traceId: '11111111111111111111111111111111', spanId: '2222222222222222' }
  const headers = { traceparent: traceparent('01', ambient.traceId, ambient.spanId) }
  for (const { connect } of [modernHttp, legacyHttp]) {
    await using host = await connect(gateway)
    await host.call('tools/call', { name: 'a__echo' }, { headers })
    const span = await ofKind(collector, 'SPAN_KIND_SERVER')
    expect(span).toMatchObject({ parentSpanId: '', links: [ambient] })
    expect(span.traceId).not.toBe(ambient.traceId)
    collector.spans.clear()
  }
})

test('what baggage says reaches no server of trusted: false, whether traces are kept or not', async () => {
  const collector = await collect()
  for (const tracing of [tracingTo(collector.url), undefined]) {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({ kind: 'modern http', tools: ['x'] }),
        b: fake.of({ kind: 'legacy stdio', tools: ['x'] }),
        c: fake.offering('x'),
      },
      options: { a: { trusted: false }, b: { trusted: false } },
      tracing,
    })
    await using host = await modernHttp.connect(gateway)
    const meta = { traceparent: traceparent(), baggage: 'user=7' }
    for (const key of ['a', 'b', 'c']) {
      await host.call('tools/call', { name: `${key}__x` }, { meta })
      const sent = metaOf((await gateway.fake(key).until('tools/call')).message)
      expect(sent['baggage']).toBe(key === 'c' ? 'user=7' : undefined)
      expect(sent).toHaveProperty('traceparent')
    }
  }
})

test('ends of calls are errors by their class: a tool, a code, a failure of ours', async () => {
  const collector = await collect()
  await using gateway = await traced(collector.url, {
    servers: { a: fake.offering('tool', 'code', 'gone') },
    secrets: ['hush-hush'],
  })
  gateway.fake('a').on('tools/call', (turn) => {
    if (turn.params['name'] === 'tool') return { content: [], isError: true }
    if (turn.params['name'] === 'code') turn.fail(-5, 'no hush-hush')
    else turn.response?.destroy()
    return undefined
  })
  await using host = await modernHttp.connect(gateway)
  for (const name of ['a__tool', 'a__code', 'a__gone', 'z__none']) await host.call('tools/call', { name }).catch(() => undefined)
  const errorOf = async (name: string, kind: CollectedSpan['kind']): Promise<CollectedSpan> =>
    collector.spans.until(({ attributes, kind: is }) => is === kind && attributes['gen_ai.tool.name'] === name)
  expect(await errorOf('a__tool', 'SPAN_KIND_SERVER')).toMatchObject({
    attributes: { 'error.type': 'tool_error' },
    status: { code: 'STATUS_CODE_ERROR' },
  })
  for (const [name, kind] of [
    ['a__code', 'SPAN_KIND_SERVER'],
    ['code', 'SPAN_KIND_CLIENT'],
  ] as const)
    expect(await errorOf(name, kind)).toMatchObject({
      attributes: { 'error.type': '-5', 'rpc.response.status_code': '-5' },
      status: { code: 'STATUS_CODE_ERROR', message: 'no ***' },
    })
  expect((await errorOf('a__gone', 'SPAN_KIND_SERVER')).attributes['error.type']).toMatch(/^(lost|unreachable)$/)
  expect(await errorOf('z__none', 'SPAN_KIND_SERVER')).toMatchObject({ attributes: { 'error.type': '-32602' } })
})

test('questions to a legacy host are CLIENT spans of the call, and the host is told so', async () => {
  const collector = await collect()
  await using gateway = await traced(collector.url, { servers: { a: fake.of({ kind: 'legacy stdio', tools: ['ask'] }) } })
  gateway.fake('a').on('tools/call', async (turn) => {
    await turn.ask('elicitation/create', { message: 'name?', requestedSchema: { type: 'object', properties: {} } })
    return { content: [] }
  })
  await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} } })
  let told: Record<string, unknown> = {}
  host.answer('elicitation/create', (params) => {
    told = (params['_meta'] ?? {}) as typeof told
    return { action: 'accept', content: {} }
  })
  await host.call('tools/call', { name: 'a__ask', _meta: { traceparent: traceparent() } })
  const server = await ofKind(collector, 'SPAN_KIND_SERVER')
  const asked = await collector.spans.until(({ name }) => name === 'elicitation/create')
  expect(asked).toMatchObject({ kind: 'SPAN_KIND_CLIENT', traceId: TRACE, parentSpanId: server.spanId })
  expect(told['traceparent']).toBe(traceparent('01', TRACE, asked.spanId))
})

describe('sampling', () => {
  test('a host that does not keep its trace is not overruled, and servers are told so', async () => {
    const collector = await collect()
    await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } })
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__echo' }, { meta: { traceparent: traceparent('00') } })
    expect(metaOf((await gateway.fake('a').until('tools/call')).message)['traceparent']).toMatch(
      new RegExp(`^00-${TRACE}-.*-00$`),
    )
    await host.call('tools/call', { name: 'a__echo' }, { meta: { traceparent: traceparent('01', 'f'.repeat(32)) } })
    await ofKind(collector, 'SPAN_KIND_SERVER')
    expect(collector.spans.entries.map(({ traceId }) => traceId)).not.toContain(TRACE)
  })

  test('by error: of a rate of 0 the spans of calls that fail are sent all the same, both of them', async () => {
    const collector = await collect()
    await using gateway = await traced(collector.url, { servers: { a: fake.offering('good', 'bad') } }, { rate: 0 })
    gateway.fake('a').on('tools/call', (turn) => ({ content: [], isError: turn.params['name'] === 'bad' }))
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__good' })
    await host.call('tools/call', { name: 'a__bad' })
    const [server, client] = await Promise.all([ofKind(collector, 'SPAN_KIND_SERVER'), ofKind(collector, 'SPAN_KIND_CLIENT')])
    expect([server.name, client.name, client.parentSpanId]).toEqual(['tools/call a__bad', 'tools/call bad', server.spanId])
    expect(collector.spans.entries).toHaveLength(2)
  })

  test('errors: false leaves them out as well', async () => {
    const collector = await collect()
    await using gateway = await traced(collector.url, { servers: { a: fake.offering('bad') } }, { rate: 0, errors: false })
    gateway.fake('a').on('tools/call', () => ({ content: [], isError: true }))
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__bad' })
    await gateway.running.stop()
    expect(collector.spans.entries).toEqual([])
  })
})

test('arguments and results are attributes only where that is configured, and without secrets', async () => {
  for (const captureArguments of [false, true]) {
    const collector = await collect()
    const setup = { servers: { a: fake.offering('echo') }, secrets: ['hush-hush'] }
    await using gateway = await traced(collector.url, setup, { captureArguments })
    gateway.fake('a').on('tools/call', () => ({ content: [{ type: 'text', text: 'said hush-hush' }] }))
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__echo', arguments: { word: 'hush-hush' } })
    const { attributes } = await ofKind(collector, 'SPAN_KIND_CLIENT')
    expect(attributes['gen_ai.tool.call.arguments']).toBe(captureArguments ? '{"word":"***"}' : undefined)
    if (captureArguments) expect(attributes['gen_ai.tool.call.result']).toContain('said ***')
    else expect(attributes).not.toHaveProperty('gen_ai.tool.call.result')
  }
})

test('log lines about a call name its trace', async () => {
  const collector = await collect()
  await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } })
  for (const { connect } of everyTransport) {
    await using host = await connect(gateway)
    const meta = { traceparent: traceparent() }
    await host.call('tools/call', { name: 'z__none', _meta: meta }, { meta }).catch(() => undefined)
    await gateway.log.until(({ text, facts }) => text === 'request failed' && facts['trace_id'] === TRACE)
    gateway.log.clear()
  }
})

describe.each(['http/protobuf', 'grpc'] as const)('over %s', (protocol) => {
  test('spans and the four histograms arrive, with the headers that are configured', async () => {
    const collector = await collect(protocol)
    {
      await using gateway = await traced(
        collector.url,
        { servers: { a: fake.offering('echo') } },
        { protocol, headers: { 'x-key': 'k1' }, metricsIntervalMs: 60_000 },
      )
      await using host = await legacyHttp.connect(gateway)
      await host.call('tools/call', { name: 'a__echo' })
      await host.call('tools/call', { name: `a__made-up-${Math.random()}` }).catch(() => undefined)
    }
    expect(collector.spans.entries.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['tools/call a__echo', 'tools/call echo']),
    )
    expect(collector.exports.entries.every((headers) => headers['x-key'] === 'k1')).toBe(true)
    const points = (name: string) => collector.points.entries.filter((point) => point.name === name)
    for (const name of ['server.operation', 'client.operation', 'server.session', 'client.session'])
      expect(points(`mcp.${name}.duration`)).toContainEqual(
        expect.objectContaining({ unit: 's', bounds: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300] }),
      )
    const tools = points('mcp.server.operation.duration').map(({ attributes }) => attributes['gen_ai.tool.name'])
    expect(new Set(tools)).toEqual(new Set(['a__echo', undefined]))
  })

  test.each(['is slow', 'refuses', 'answers garbage', 'cuts'] satisfies Mood[])(
    'a collector that %s disturbs no call, and the end of the gateway little',
    async (mood) => {
      const collector = await collect(protocol)
      collector.mood = mood
      await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } }, { protocol, timeoutMs: 200 })
      await using host = await modernHttp.connect(gateway)
      for (let n = 0; n < 20; n++) expect(await host.call('tools/call', { name: 'a__echo' })).toHaveProperty('content')
      await collector.exports.until(() => true)
      expect(await host.call('tools/call', { name: 'a__echo' })).toHaveProperty('content')
      await gateway.running.stop()
    },
  )

  test('spans and metrics that a collector rejects are reported with its reason, once', async () => {
    const collector = await collect(protocol)
    collector.mood = 'rejects some'
    await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } }, { protocol })
    await using host = await modernHttp.connect(gateway)
    for (const signal of ['traces', 'metrics']) {
      await host.call('tools/call', { name: 'a__echo' })
      const { facts } = await gateway.log.until(
        ({ level, text }) => level === 'warn' && text.startsWith(`some ${signal} were rejected`),
      )
      expect(facts).toMatchObject({ rejected: 3, reason: 'too old' })
    }
    await gateway.running.stop()
    expect(gateway.log.entries.filter(({ text }) => text.includes('were rejected'))).toHaveLength(2)
    expect(gateway.log.entries.filter(({ text }) => text.includes('do not reach'))).toEqual([])
  })

  test('spans beyond telemetry.otlp.max_queued are counted as a reached limit, and logged once', async () => {
    const collector = await collect(protocol)
    collector.mood = 'is slow'
    const options = { protocol, maxQueued: 4, delayMs: 60_000, timeoutMs: 60_000 }
    await using gateway = await traced(collector.url, { servers: { a: fake.offering('echo') } }, options)
    await using host = await modernHttp.connect(gateway)
    // Four spans are sent and not answered, and four wait.
    for (let n = 0; n < 4; n++) await host.call('tools/call', { name: 'a__echo' })
    const reached = (): number =>
      gateway.running.limits.all.find(({ option }) => option === 'telemetry.otlp.max_queued')?.count ?? 0
    expect(reached()).toBe(0)
    for (let n = 0; n < 3; n++) await host.call('tools/call', { name: 'a__echo' })
    expect(reached()).toBe(6)
    expect(gateway.log.entries.filter(({ text }) => text === 'telemetry.otlp.max_queued reached')).toHaveLength(1)
  })

  test('a collector that is away disturbs no call, is told of once, and is found when it is back', async () => {
    const before = await startCollector(protocol)
    await before[Symbol.asyncDispose]()
    const port = Number(new URL(before.url).port)
    await using gateway = await traced(before.url, { servers: { a: fake.offering('echo') } }, { protocol, timeoutMs: 200 })
    await using host = await modernHttp.connect(gateway)
    for (let n = 0; n < 5; n++) await host.call('tools/call', { name: 'a__echo' })
    for (const signal of ['traces', 'metrics'])
      await gateway.log.until(({ level, text }) => level === 'warn' && text.startsWith(`${signal} do not reach the collector`))
    const collector = await startCollector(protocol, port)
    collectors.push(collector)
    while (collector.spans.entries.length === 0) {
      await host.call('tools/call', { name: 'a__echo' })
      await Promise.race([collector.spans.until(() => true), new Promise((resolve) => setTimeout(resolve, 50))])
    }
    for (const signal of ['traces', 'metrics'])
      await gateway.log.until(({ level, text }) => level === 'info' && text === `${signal} reach the collector again`)
    expect(gateway.log.entries.filter(({ text }) => text.includes('do not reach the collector'))).toHaveLength(2)
    expect(gateway.log.entries.filter(({ text }) => text.includes('reach the collector again'))).toHaveLength(2)
  })
})

test('a reload begins traces and ends them', async () => {
  const collector = await collect()
  await using gateway = await startGateway({ servers: { a: fake.offering('echo') } })
  await using host = await modernHttp.connect(gateway)
  const { configuration } = gateway.running
  await host.call('tools/call', { name: 'a__echo' })
  await gateway.running.apply({ ...configuration, tracing: tracingTo(collector.url) }, new Set())
  await host.call('tools/call', { name: 'a__echo' }, { id: 'traced' })
  await gateway.running.apply(configuration, new Set())
  await host.call('tools/call', { name: 'a__echo' })
  await gateway.running.stop()
  const calls = collector.spans.entries.filter(({ kind }) => kind === 'SPAN_KIND_SERVER')
  expect(calls.map(({ attributes }) => attributes['jsonrpc.request.id'])).toEqual(['traced'])
  expect(metaOf(gateway.fake('a').all('tools/call').at(-1)?.message)).not.toHaveProperty('traceparent')
})

test('a call of a host at a bridge is traced as well, and keeps what else its _meta says', async () => {
  const collector = await collect()
  await using gateway = await traced(collector.url, { servers: { a: fake.of({ kind: 'legacy http', tools: ['echo'] }) } })
  await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
  await host.call('tools/call', { name: 'echo' }, { meta: { traceparent: traceparent(), 'com.example/x': 'y' } })
  const client = await ofKind(collector, 'SPAN_KIND_CLIENT')
  const sent = metaOf((await gateway.fake('a').until('tools/call')).message)
  expect(sent).toMatchObject({ traceparent: traceparent('01', TRACE, client.spanId), 'com.example/x': 'y' })
  expect(sent).not.toHaveProperty([KEY.version])
})
