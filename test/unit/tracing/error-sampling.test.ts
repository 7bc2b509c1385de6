/** Calls that failed are sent, be they sampled or not; others as the sampler says. */
import { SpanStatusCode } from '@opentelemetry/api'
import type { ReadableSpan, Span } from '@opentelemetry/sdk-trace'
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { beforeEach, expect, test } from 'vitest'
import { ErrorSampling } from '../../../src/tracing/error-sampling.ts'

interface Facts {
  readonly name: string
  readonly isSampled?: boolean
  readonly hasFailed?: boolean
  /** Of which span of this process it is a part. */
  readonly parent?: string
  /** Of which span of a host. */
  readonly remote?: string
}

const span = ({ name, isSampled = false, hasFailed = false, parent, remote }: Facts): Span & ReadableSpan => {
  const spanId = parent ?? remote
  const spanContext = { traceId: 't', spanId: name, traceFlags: isSampled ? 1 : 2 }
  // Cast: what is looked at.
  return {
    name,
    status: { code: hasFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    spanContext: () => spanContext,
    ...(spanId !== undefined && { parentSpanContext: { traceId: 't', spanId, traceFlags: 0, isRemote: remote !== undefined } }),
  } as unknown as Span & ReadableSpan
}

let sent: string[]
let started: string[]
let calls: string[]
let sampling: ErrorSampling
beforeEach(() => {
  ;[sent, started, calls] = [[], [], []]
  sampling = new ErrorSampling({
    onStart: (one) => void started.push((one as unknown as ReadableSpan).name),
    onEnd: (one) => void sent.push(`${one.name} ${one.spanContext().traceFlags}`),
    forceFlush: async () => void calls.push('flush'),
    shutdown: async () => void calls.push('shutdown'),
  })
})
const start = (...facts: Facts[]): void => {
  for (const one of facts) sampling.onStart(span(one), ROOT_CONTEXT)
}
const end = (...facts: Facts[]): void => {
  for (const one of facts) sampling.onEnd(span(one))
}

const CALL: Facts = { name: 'call' }
const HOP: Facts = { name: 'hop', parent: 'call' }

test('what is sampled is sent as it ends', () => {
  start({ ...CALL, isSampled: true }, { ...HOP, isSampled: true })
  expect(started).toEqual(['call', 'hop'])
  end({ ...HOP, isSampled: true })
  expect(sent).toEqual(['hop 1'])
  end({ ...CALL, isSampled: true })
  expect(sent).toEqual(['hop 1', 'call 1'])
})

test('a call that is not sampled and goes well is not sent', () => {
  start(CALL, HOP)
  end(HOP, CALL)
  expect([started, sent]).toEqual([['call', 'hop'], []])
})

test.each([
  ['the call itself', CALL, false, true],
  ['a hop of it', CALL, true, false],
  ['a call that is part of the trace of a host', { name: 'call', remote: 'host' }, false, true],
  ['a hop of a call that is part of the trace of a host', { name: 'call', remote: 'host' }, true, false],
])('all of a call is sent, and says that it is sampled, where %s failed', (_, call, hopFailed, callFailed) => {
  start(call, HOP)
  end({ ...HOP, hasFailed: hopFailed })
  expect(sent).toEqual([])
  end({ ...call, hasFailed: callFailed })
  expect(sent).toEqual(['hop 3', 'call 3'])
  // All else is the span's own; nothing is sent twice.
  end({ ...call, hasFailed: true })
  expect(sent).toEqual(['hop 3', 'call 3', 'call 3'])
})

test('a hop that ends after its call is sent where it failed', () => {
  start(CALL, HOP)
  end(CALL, HOP, { ...HOP, name: 'late', hasFailed: true })
  expect(sent).toEqual(['late 3'])
})

test('what is kept belongs to its own call', () => {
  start(CALL, { name: 'other' })
  end(HOP, { ...HOP, name: 'hop of other', parent: 'other' }, { name: 'other', hasFailed: true })
  expect(sent).toEqual(['hop of other 3', 'other 3'])
})

test('at the end nothing is kept any more', async () => {
  start(CALL)
  end(HOP)
  await sampling.forceFlush()
  await sampling.shutdown()
  end({ ...CALL, hasFailed: true })
  expect([calls, sent]).toEqual([['flush', 'shutdown'], ['call 3']])
})
