/** The spans that wait for their export. Those that find the queue full are dropped and counted. */
import { TraceFlags } from '@opentelemetry/api'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace'
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import type { TracingOptions } from './options.ts'

type QueueOptions = Pick<TracingOptions, 'delayMs' | 'timeoutMs' | 'maxQueued'>

export class SpanQueue implements SpanProcessor {
  readonly #batches: SpanProcessor
  readonly #maxQueued: number
  readonly #dropped: () => void
  #queued = 0

  /** `dropped` is called for each dropped span. */
  constructor(exporter: SpanExporter, { delayMs, timeoutMs, maxQueued }: QueueOptions, dropped: () => void) {
    this.#maxQueued = maxQueued
    this.#dropped = dropped
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => {
          this.#queued -= spans.length
          exporter.export(spans, done)
        },
        shutdown: () => exporter.shutdown(),
      },
      scheduledDelayMillis: delayMs,
      exportTimeoutMillis: timeoutMs,
      maxQueueSize: maxQueued,
      maxExportBatchSize: Math.min(512, maxQueued),
    })
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return
    if (this.#queued >= this.#maxQueued) return this.#dropped()
    this.#queued++
    this.#batches.onEnd(span)
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush()
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown()
  }
}
