/** Trace contexts in `_meta`: what is read of a host's, and what a server gets; and which attributes metrics have. */
import { expect, test } from 'vitest'
import type { CallEnd } from '../../../src/observe/call-end.ts'
import { formatTraceparent, parsed, remoteContext, writeContext } from '../../../src/tracing/context.ts'
import { metricAttributes } from '../../../src/tracing/histograms.ts'
import { endAttributes, spanEndOf } from '../../../src/tracing/span-end.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
const PARENT = `00-${traceId}-${spanId}-01`

test('a parent is read with its state; without a valid parent there is none, whatever the state', () => {
  const context = remoteContext(Payload.of({ traceparent: PARENT, tracestate: 'a=1,b=2' }))
  expect(context).toMatchObject({ traceId, spanId, traceFlags: 1, isRemote: true })
  expect(context?.traceState?.serialize()).toBe('a=1,b=2')
  expect(remoteContext(Payload.of({ traceparent: PARENT }))).toEqual({ traceId, spanId, traceFlags: 1, isRemote: true })
  for (const meta of [undefined, {}, { tracestate: 'a=1' }, { traceparent: 'x', tracestate: 'a=1' }, { traceparent: 1 }])
    expect(remoteContext(meta && Payload.of(meta))).toBeUndefined()
  expect([parsed(undefined), parsed('x')]).toEqual([undefined, undefined])
})

test('a state of megabytes takes no memory of the queue of spans', () => {
  const stateOf = (tracestate: string) => remoteContext(Payload.of({ traceparent: PARENT, tracestate }))?.traceState
  expect(stateOf(`a=${'x'.repeat(200)}`)?.get('a')).toHaveLength(200)
  expect(stateOf(`a=1,${'b'.repeat(4_000_000)}`)).toBeUndefined()
})

test.each([
  [0, '00'],
  [1, '01'],
  [3, '01'],
  [2, '00'],
])('of the flags %i only whether the trace is kept is told: %s', (traceFlags, flags) => {
  expect(formatTraceparent({ traceId, spanId, traceFlags })).toBe(`00-${traceId}-${spanId}-${flags}`)
})

test('a state is left out where the trace began here', () => {
  const written = (isOwn: boolean): unknown => {
    const meta = Payload.of({ traceparent: 'old', tracestate: 'a=1', x: 1 })
    writeContext(meta, { traceId, spanId, traceFlags: 1 }, isOwn)
    return JSON.parse(join(meta.parts()).toString())
  }
  expect([written(true), written(false)]).toEqual([
    { traceparent: PARENT, x: 1 },
    { traceparent: PARENT, tracestate: 'a=1', x: 1 },
  ])
})

test.each<[CallEnd, object]>([
  [{ outcome: 'ok' }, {}],
  [{ outcome: 'streamed' }, {}],
  [{ outcome: 'input_required' }, {}],
  [{ outcome: 'tool_error' }, { 'error.type': 'tool_error' }],
  [{ outcome: 'cancelled' }, { 'error.type': 'cancelled' }],
  [{ outcome: 'failed' }, { 'error.type': '_OTHER' }],
  [{ outcome: 'failed', kind: 'timeout' }, { 'error.type': 'timeout' }],
  [
    { outcome: 'error', code: -5 },
    { 'error.type': '-5', 'rpc.response.status_code': '-5' },
  ],
  [
    { outcome: 'error', code: 0 },
    { 'error.type': '0', 'rpc.response.status_code': '0' },
  ],
])('the end %j has the attributes %j', (end, attributes) => {
  expect(endAttributes(spanEndOf(end))).toEqual(attributes)
})

test('the reason of an end is kept for the span', () => {
  expect(spanEndOf({ outcome: 'error', code: -5, detail: 'no' })).toEqual({ error: '-5', code: '-5', message: 'no' })
  expect(spanEndOf({ outcome: 'failed', kind: 'lost', detail: 'gone' })).toEqual({ error: 'lost', message: 'gone' })
})

test('metrics have no attribute of many values, and no name that a caller made up', () => {
  const kept = { 'mcp.method.name': 'tools/call', 'trunkline.server': 'a' }
  const names = { 'gen_ai.tool.name': 'a__x', 'gen_ai.prompt.name': 'a__y' }
  const dropped = {
    'jsonrpc.request.id': '1',
    'mcp.session.id': 's',
    'mcp.resource.uri': 'file:///a',
    'trunkline.ref': 1,
    'gen_ai.tool.call.arguments': '{}',
    'gen_ai.tool.call.result': '{}',
  }
  expect(metricAttributes({ ...kept, ...names, ...dropped }, true)).toEqual({ ...kept, ...names })
  expect(metricAttributes({ ...kept, ...names, ...dropped }, false)).toEqual(kept)
})
