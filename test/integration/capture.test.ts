/** What is captured of calls between hosts and servers of every transport, and that nothing of it exists where calls are not watched. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import type { CallDetail } from '../../src/observe/capture/captured.ts'
import type { Observer } from '../../src/observe/observer.ts'
import { createGateway } from '../../src/index.ts'
import { StreamedResult } from '../../src/wire/result/streamed-result.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const OPERATOR = { principal: 'local', isOperator: true }

/** The ids of the calls that are open, newest first. */
const openIn = (observer: Observer): readonly number[] =>
  observer.page(OPERATOR, ({ state }) => state === 'open', 9).calls.map(({ id }) => id)

/** A gateway that keeps both sides of every call. */
const startWatched = async (setup: GatewaySetup): Promise<TestGateway> => {
  const gateway = await startGateway(setup)
  gateway.running.watchCalls()
  gateway.running.observer.keepWhole()
  return gateway
}

/** The newest call of a tool. */
const callOf = ({ running: { observer } }: TestGateway): CallDetail => {
  const { calls } = observer.page(OPERATOR, ({ method }) => method === 'tools/call', 1)
  const detail = observer.find(calls[0]?.id ?? 0, OPERATOR)
  if (detail === undefined) throw new Error('no call is kept')
  return detail
}

describe.each(everyTransport)('a call of a host over $name', ({ connect, era }) => {
  test.each(everyFakeKind)('to a %s server has both sides as they were on the wire', async (kind) => {
    await using gateway = await startWatched({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using host = await connect(gateway)
    await host.call('tools/call', { name: 'a__x', arguments: { text: 'from the host' } })
    const detail = callOf(gateway)
    const [hop] = detail.hops
    expect(detail).toMatchObject({ outcome: 'ok', era, name: 'a__x', server: 'a', original: 'x', lanes: 1 })
    expect(hop).toMatchObject({ kind: 'call', end: 'result', era: kind.startsWith('modern') ? 'modern' : 'legacy' })
    expect(hop?.transport).toBe(kind.endsWith('stdio') ? 'pipe' : kind.endsWith('sse') ? 'sse' : 'http')
    const parsed = [detail.request, hop?.request, hop?.response, detail.response].map(
      (body) => JSON.parse(body?.text ?? 'null') as { params?: { name: string; arguments: object }; result?: object },
    )
    expect(parsed[0]?.params).toMatchObject({ name: 'a__x', arguments: { text: 'from the host' } })
    expect(parsed[1]?.params).toMatchObject({ name: 'x', arguments: { text: 'from the host' } })
    expect(parsed[2]).toHaveProperty('result.content')
    expect(parsed[3]).toHaveProperty('result.content')
    expect(detail.diff?.request.map(({ path }) => path.join('.'))).toContain('params.name')
  })
})

test.each(everyTransport)(
  'a request of a host over $name that is refused before it is a call is captured and counted',
  async ({ connect, era }) => {
    await using gateway = await startWatched({ servers: { a: fake.offering('x') } })
    await using host = await connect(gateway)
    await expect(host.call('prompts/invent', {})).rejects.toMatchObject({ code: -32601 })
    const { observer } = gateway.running
    const [row] = observer.page(OPERATOR, ({ method }) => method === 'prompts/invent', 9).calls
    expect(row).toMatchObject({ era, outcome: 'refused', server: null, error: { code: -32601 } })
    expect(row?.host).toMatch(/./)
    expect(observer.find(row?.id ?? 0, OPERATOR)?.request?.text).toContain('prompts/invent')
    const refused = observer.metrics.families
      .flatMap(({ samples }) => [...samples])
      .filter(({ labels }) => labels['outcome'] === 'refused')
    expect(refused).toMatchObject([{ labels: { method: 'other', era }, value: 1 }])
  },
)

test('the round of a modern server that asks, to a legacy host: two lanes, and the time in which a person thought', async () => {
  let turn = 0
  const elicitation = {
    method: 'elicitation/create',
    params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
  }
  await using gateway = await startWatched({
    servers: {
      a: fake.of({
        kind: 'modern http',
        tools: ['x'],
        on: {
          'tools/call': () =>
            turn++ === 0
              ? { resultType: 'input_required', inputRequests: { sure: elicitation }, requestState: 's' }
              : { content: [{ type: 'text', text: 'done' }] },
        },
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
  host.answer('elicitation/create', () => ({ action: 'accept', content: {} }))
  await host.call('tools/call', { name: 'a__x', arguments: {} })
  const detail = callOf(gateway)
  expect(detail).toMatchObject({ outcome: 'ok', lanes: 2, asks: [{ method: 'elicitation/create' }] })
  expect(detail.hops.map(({ kind, end }) => [kind, end])).toEqual([
    ['call', 'result'],
    ['round', 'result'],
  ])
  expect(detail.hops[0]?.response?.text).toContain('input_required')
  expect(detail.hops[1]?.request?.text).toContain('"accept"')
  const [asked] = detail.asks
  expect(asked?.to).toBeGreaterThanOrEqual(asked?.from ?? Infinity)
  expect(detail.ms.host).toBeGreaterThan(0)
})

test('of a result of 100 MB that passes on while it comes the head and the tail are kept, and no more memory', async () => {
  const MIB = 1024 * 1024
  await using gateway = await startWatched({
    servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) },
    options: { a: { limits: { maxMessageBytes: 128 * MIB } } },
  })
  const piece = Buffer.alloc(MIB, 'x')
  gateway.fake('a').intercept = (_request, response, body) => {
    if (!body.includes('"tools/call"')) return false
    const { id } = JSON.parse(body) as { id: number }
    const head = `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"first `
    const tail = ' last"}]}}'
    const length = head.length + 100 * MIB + tail.length
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': String(length) })
    const write = async (): Promise<void> => {
      response.write(head)
      for (let at = 0; at < 100; at++) if (!response.write(piece)) await once(response, 'drain')
      response.end(tail)
    }
    void write()
    return true
  }
  const params = {
    name: 'a__x',
    arguments: {},
    _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
  }
  const asked = request(gateway.url, {
    method: 'POST',
    agent: false,
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'a__x',
    },
  }).end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let received = 0
  answer.on('data', (chunk: Buffer) => (received += chunk.length))
  await once(answer, 'end')
  expect(received).toBeGreaterThan(100 * MIB)
  const { hops, bytesOut } = callOf(gateway)
  const response = hops[0]?.response
  expect(bytesOut).toBeGreaterThan(100 * MIB)
  expect(response).toMatchObject({ streamed: true, head: expect.stringContaining('"text":"first xxx') as string })
  expect(response?.tail).toMatch(/xxx last"\}\]\}\}$/)
  expect(response?.text).toBeUndefined()
  expect(gateway.running.observer.keptBytes).toBeLessThan(256 * 1024)
})

describe('while calls are not watched', () => {
  test('no call is recorded, no layer is in its way, and no result is tapped', async () => {
    const tapped = vi.spyOn(StreamedResult.prototype, 'tap')
    await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
    const { running } = gateway
    const begun = vi.spyOn(running.observer, 'begin')
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x', arguments: {} })
    expect(running.context.observer).toBeUndefined()
    const stop = running.watchCalls()
    expect(running.context.observer).toBe(running.observer)
    await host.call('tools/call', { name: 'a__x', arguments: {} })
    expect([begun.mock.calls.length, running.observer.keptCalls]).toEqual([1, 1])
    stop()
    expect(running.context.observer).toBeUndefined()
    await host.call('tools/call', { name: 'a__x', arguments: {} })
    expect([begun.mock.calls.length, running.observer.keptCalls, openIn(running.observer)]).toEqual([1, 1, []])
    expect(tapped).not.toHaveBeenCalled()
    tapped.mockRestore()
  })

  test('a call carries nothing to write into', async () => {
    const records: unknown[] = []
    const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
    await using gateway = await createGateway({
      configuration: { servers: {} },
      listen: false,
      log: silent,
      layers: [
        (inner) => (call) => {
          records.push((call as { record?: unknown }).record)
          return inner(call)
        },
      ],
    })
    await gateway.call('nothing').catch(() => undefined)
    expect(records).toEqual([undefined])
  })
})
