/**
 * Sends the spans of failed calls even if they are not sampled: unsampled spans are kept until their call has ended. They are exported as
 * sampled, since exporters and collectors drop them otherwise, although servers received them as not sampled.
 */
import { SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import type { Context } from '@opentelemetry/api'
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace'

export class ErrorSampling implements SpanProcessor {
  readonly #inner: SpanProcessor
  /** Ended unsampled spans of calls in flight, by the call's span id. */
  readonly #kept = new Map<string, ReadableSpan[]>()

  constructor(inner: SpanProcessor) {
    this.#inner = inner
  }

  onStart(span: Span, parent: Context): void {
    this.#inner.onStart(span, parent)
    if (isUnsampled(span) && isOfCall(span)) this.#kept.set(span.spanContext().spanId, [])
  }

  onEnd(span: ReadableSpan): void {
    if (!isUnsampled(span)) return this.#inner.onEnd(span)
    if (!isOfCall(span)) {
      const kept = this.#kept.get(span.parentSpanContext?.spanId ?? '')
      if (kept !== undefined) kept.push(span)
      // The call has ended already, such as one that waited for a person.
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

const isUnsampled = (span: Pick<ReadableSpan, 'spanContext'>): boolean =>
  (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0

/** Whether a span is of a host's call: the first span of the trace in this process. */
const isOfCall = ({ parentSpanContext }: Pick<ReadableSpan, 'parentSpanContext'>): boolean =>
  parentSpanContext === undefined || parentSpanContext.isRemote === true

const hasFailed = ({ status }: ReadableSpan): boolean => status.code === SpanStatusCode.ERROR

const asSampled = (span: ReadableSpan): ReadableSpan => {
  const context = { ...span.spanContext(), traceFlags: span.spanContext().traceFlags | TraceFlags.SAMPLED }
  // Cast: all other members are inherited from the span.
  return Object.create(span, { spanContext: { value: () => context } }) as ReadableSpan
}
