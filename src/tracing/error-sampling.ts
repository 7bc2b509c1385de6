/**
 * Sends the spans of calls that failed, be they sampled or not: what the sampler left out is kept until its call has ended. The
 * surprise: such a span says on the wire that it is sampled, since exporters and collectors drop it otherwise; what servers were told
 * meanwhile is that it is not.
 */
import { SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import type { Context } from '@opentelemetry/api'
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace'

export class ErrorSampling implements SpanProcessor {
  readonly #inner: SpanProcessor
  /** Ended spans of calls under way that are not sampled, by the span of the call. */
  readonly #kept = new Map<string, ReadableSpan[]>()

  constructor(inner: SpanProcessor) {
    this.#inner = inner
  }

  onStart(span: Span, parent: Context): void {
    this.#inner.onStart(span, parent)
    if (isLeftOut(span) && isOfCall(span)) this.#kept.set(span.spanContext().spanId, [])
  }

  onEnd(span: ReadableSpan): void {
    if (!isLeftOut(span)) return this.#inner.onEnd(span)
    if (!isOfCall(span)) {
      const kept = this.#kept.get(span.parentSpanContext?.spanId ?? '')
      if (kept !== undefined) kept.push(span)
      // Its call has ended already: a person was asked meanwhile.
      else if (hasFailed(span)) this.#inner.onEnd(asSampled(span))
      return
    }
    const { spanId } = span.spanContext()
    const all = [...(this.#kept.get(spanId) ?? []), span]
    this.#kept.delete(spanId)
    if (all.some(hasFailed)) for (const one of all) this.#inner.onEnd(asSampled(one))
  }

  forceFlush(): Promise<void> {
    return this.#inner.forceFlush()
  }

  shutdown(): Promise<void> {
    this.#kept.clear()
    return this.#inner.shutdown()
  }
}

const isLeftOut = (span: Pick<ReadableSpan, 'spanContext'>): boolean => (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0

/** The span of a host's call: the first of the trace in this process. */
const isOfCall = ({ parentSpanContext }: Pick<ReadableSpan, 'parentSpanContext'>): boolean =>
  parentSpanContext === undefined || parentSpanContext.isRemote === true

const hasFailed = ({ status }: ReadableSpan): boolean => status.code === SpanStatusCode.ERROR

const asSampled = (span: ReadableSpan): ReadableSpan => {
  const context = { ...span.spanContext(), traceFlags: span.spanContext().traceFlags | TraceFlags.SAMPLED }
  // Cast: all else is the span's own.
  return Object.create(span, { spanContext: { value: () => context } }) as ReadableSpan
}
