/**
 * Traces of calls, and their durations as metrics, over OTLP. A call is a SERVER span. Each request to a server for this call, and each
 * server request to a legacy host, is a CLIENT span below it.
 *
 *     host's span ─► SERVER tools/call gh__find ─┬─► CLIENT tools/call find ─► server's span
 *       (_meta)        └╌╌ link: HTTP request    └─► CLIENT elicitation/create ─► host's span
 *
 * Only this module uses OpenTelemetry. It is loaded if `telemetry.otlp` names a collector. Nothing is registered globally.
 */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { Attributes, Histogram, Link as SpanLink, Span, SpanContext, Tracer } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  AlwaysOnSampler,
  createAlwaysRecordSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Sampler } from '@opentelemetry/sdk-trace'
import type { ServerOptions } from '../downstream/options.ts'
import type { Link } from '../era/server/link.ts'
import type { Answer, Call, Handler, HostSession, Layer, Outcome, Question, Scope } from '../rpc/call.ts'
import { withoutSecrets } from '../observe/capture/body.ts'
import { endOfError, endOfOutcome, endOfStream } from '../observe/call-end.ts'
import type { CallRecord } from '../rpc/record.ts'
import type { TracedServer, TracePoint } from '../rpc/call.ts'
import { byteLength, join } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import { cutText, hostAttributes, peerAttributes, serverAttributes, spanName } from './attributes.ts'
import { childContext, contextOf, formatTraceparent, parsed, remoteContext, writeContext } from './context.ts'
import { codeText, endAttributes, spanEndOf } from './span-end.ts'
import type { SpanEnd } from './span-end.ts'
import type { DeliveryTarget } from './delivery.ts'
import { ErrorSampling } from './error-sampling.ts'
import { loadExporters } from './exporters.ts'
import { makeHistograms, metricAttributes } from './histograms.ts'
import type { Histograms } from './histograms.ts'
import type { TracingOptions } from './options.ts'
import { SpanQueue } from './span-queue.ts'
import { within } from '../time/within.ts'

export interface TracingSource {
  readonly log: DeliveryTarget['log']
  /** Counts and logs that a limit was reached. */
  readonly hit: (option: string) => void
  readonly version: string
  /** `service.instance.id` of this process. */
  readonly instance: string
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** Removes secrets from text, or from JSON text. */
  readonly hide: (text: string) => string
  readonly hideJson: (json: string) => string
}

/** Larger arguments and results are omitted. */
const MAX_CAPTURED_BYTES = 64 * 1024
/** Time limit of the last export. */
const SHUTDOWN_MS = 2_000

/** Starts tracing. Rejects if the packages of OpenTelemetry are not installed. */
export const startTracing = async (options: TracingOptions, source: TracingSource): Promise<Tracing> => {
  const exporters = await loadExporters(options, source.log)
  const resource = resourceFromAttributes({
    'service.name': options.serviceName,
    'service.version': source.version,
    'service.instance.id': source.instance,
    ...options.attributes,
  })
  const queue = new SpanQueue(exporters.spans, options, () => source.hit('telemetry.otlp.max_queued'))
  const traces = new TracerProvider({
    resource,
    sampler: samplerOf(options),
    spanProcessors: [options.errors ? new ErrorSampling(queue) : queue],
  })
  const metrics = options.metrics
    ? new MeterProvider({
        resource,
        readers: [
          new PeriodicExportingMetricReader({
            exporter: exporters.metrics(),
            exportIntervalMillis: options.metricsIntervalMs,
            exportTimeoutMillis: Math.min(options.timeoutMs, options.metricsIntervalMs),
          }),
        ],
      })
    : undefined
  const tracer = traces.getTracer('trunkline', source.version)
  const histograms = metrics && makeHistograms(metrics.getMeter('trunkline', source.version))
  return new Tracing(options, source, tracer, histograms, async () => {
    await within(SHUTDOWN_MS, Promise.allSettled([traces.shutdown(), metrics?.shutdown()]))
  })
}

const samplerOf = ({ rate, errors }: TracingOptions): Sampler => {
  const root = rate >= 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(rate)
  const sampler = new ParentBasedSampler({ root })
  return errors ? createAlwaysRecordSampler(sampler) : sampler
}

export class Tracing implements AsyncDisposable {
  readonly #options: TracingOptions
  readonly #source: TracingSource
  readonly #tracer: Tracer
  readonly #histograms: Histograms | undefined
  readonly #end: () => Promise<void>

  constructor(
    options: TracingOptions,
    source: TracingSource,
    tracer: Tracer,
    histograms: Histograms | undefined,
    end: () => Promise<void>,
  ) {
    this.#options = options
    this.#source = source
    this.#tracer = tracer
    this.#histograms = histograms
    this.#end = end
  }

  /** Traces calls of hosts, each as a SERVER span. */
  readonly layer: Layer = (inner) => (call) => this.#serve(inner, call)

  /** Measures the duration of a legacy session. */
  readonly sessionOpened = (session: Pick<HostSession, 'onEnd'> & { readonly revision: string }): void => {
    const startedMs = performance.now()
    session.onEnd(() => {
      const { revision } = session
      this.#histograms?.serverSession.record((performance.now() - startedMs) / 1_000, { 'mcp.protocol.version': revision })
    })
  }

  /** Measures the duration of a connection to a server. */
  readonly linkOpened = (link: Link, { key, url }: ServerOptions): void => {
    const startedMs = performance.now()
    void link.closed.then((failure) =>
      this.#histograms?.clientSession.record((performance.now() - startedMs) / 1_000, {
        'mcp.protocol.version': link.revision,
        ...peerAttributes(url),
        'trunkline.server': key,
        ...(failure !== undefined && { 'error.type': failure.kind }),
      }),
    )
  };

  /** Sends the remaining spans and metrics, for 2 s at most. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#end()
  }

  async #serve(inner: Handler, call: Call): Promise<Outcome> {
    const { ask, responseChannel } = call
    const parent = remoteContext(call.params.object('_meta'))
    const ambient = parsed(responseChannel?.ambient)
    const shown = this.#shown(call)
    const attributes = hostAttributes(shown, this.#source.toolsetOf(call.caller.scope))
    const record: CallRecord = call.record ?? {}
    const links = ambient === undefined ? [] : [{ context: ambient } satisfies SpanLink]
    const span = this.#tracer.startSpan(spanName(shown), { kind: SpanKind.SERVER, attributes, links }, contextOf(parent))
    const operation = this.#operation(call, span, this.#histograms?.serverOperation, attributes, () => record.isListed === true)
    if (responseChannel !== undefined) responseChannel.traceId = span.spanContext().traceId
    const point = new Point(this, span, parent === undefined)
    const traced = { ...call, record, trace: point, ask: ask && ((question: Question) => this.#ask(question, ask, span)) }
    return operation(() => inner(traced))
  }

  /** Traces a request to a server as a CLIENT span. `isOwn`: the trace began at this gateway. */
  send(call: Call, server: TracedServer, handler: Handler, parent: Span, isOwn: boolean): Promise<Outcome> {
    const shown = this.#shown(call)
    const attributes = serverAttributes(shown, server)
    const span = this.#tracer.startSpan(spanName(shown), { kind: SpanKind.CLIENT, attributes }, childContext(parent))
    const operation = this.#operation(
      call,
      span,
      this.#histograms?.clientOperation,
      attributes,
      () => call.record?.isListed === true,
    )
    return operation(() => handler({ ...call, trace: new Point(this, span, isOwn) }))
  }

  /**
   * The call with method and target for a span: not too long, since a bridge relays any method, and without secrets, since a URI of a server
   * may contain one (T-14).
   */
  #shown(call: Call): Call {
    const { method, target } = call
    return { ...call, method: cutText(method), ...(target !== undefined && { target: cutText(this.#source.hide(target)) }) }
  }

  /** Traces a server request to a legacy host. Its parent is the server's span if the request names one. */
  async #ask(question: Question, ask: NonNullable<Call['ask']>, call: Span): Promise<Answer> {
    const { method, params } = question
    const meta = params?.object('_meta')
    const parent = remoteContext(meta)
    const options = { kind: SpanKind.CLIENT, attributes: { 'mcp.method.name': method } }
    const span = this.#tracer.startSpan(method, options, parent === undefined ? childContext(call) : contextOf(parent))
    params?.setIn('_meta', 'traceparent', `"${formatTraceparent(span.spanContext())}"`)
    if (parent === undefined) meta?.delete('tracestate')
    let answer: Answer
    try {
      answer = await ask(question)
    } catch (error) {
      this.#finish(span, spanEndOf(endOfError(error, false, undefined)))
      throw error
    }
    if ('error' in answer) this.#finish(span, { error: codeText(answer.error.raw('code')) })
    else span.end()
    return answer
  }

  /** Returns how to run one request, whose end ends the span; a streamed result at its own end. */
  #operation(
    call: Call,
    span: Span,
    histogram: Histogram | undefined,
    attributes: Attributes,
    isKnown: () => boolean,
  ): (run: () => Promise<Outcome>) => Promise<Outcome> {
    const startedMs = performance.now()
    if (this.#options.captureArguments)
      this.#capture(span, 'gen_ai.tool.call.arguments', call, call.params.raw('arguments') ?? Buffer.alloc(0))
    const finish = (end: SpanEnd): void => {
      const extra = endAttributes(call.signal.aborted && end.error !== undefined ? { error: 'cancelled' } : end)
      this.#finish(span, end, extra)
      histogram?.record((performance.now() - startedMs) / 1_000, metricAttributes({ ...attributes, ...extra }, isKnown()))
    }
    return async (run) => {
      try {
        const outcome = await run()
        const { result } = outcome
        if (result instanceof StreamedResult) result.onOver((_, end) => finish(spanEndOf(endOfStream(result, end))))
        else {
          if (this.#options.captureArguments) this.#capture(span, 'gen_ai.tool.call.result', call, ...result.parts())
          finish(spanEndOf(endOfOutcome(call.method, false, outcome)))
        }
        return outcome
      } catch (error) {
        finish(spanEndOf(endOfError(error, false, undefined)))
        throw error
      }
    }
  }

  #finish(
    span: Span,
    { error, message }: SpanEnd,
    attributes: Attributes = error === undefined ? {} : { 'error.type': error },
  ): void {
    span.setAttributes(attributes)
    if (error !== undefined)
      span.setStatus({
        code: SpanStatusCode.ERROR,
        ...(message !== undefined && { message: cutText(this.#source.hide(message)) }),
      })
    span.end()
  }

  #capture(span: Span, name: string, { method }: Call, ...json: Uint8Array[]): void {
    const bytes = byteLength(json)
    if (method !== 'tools/call' || bytes === 0 || bytes > MAX_CAPTURED_BYTES || !span.isRecording()) return
    span.setAttribute(name, withoutSecrets(join(json).toString(), this.#source.hideJson))
  }
}

class Point implements TracePoint {
  readonly #tracing: Tracing
  readonly #span: Span
  readonly #context: SpanContext
  /** The trace began at this gateway. */
  readonly #isOwn: boolean

  constructor(tracing: Tracing, span: Span, isOwn: boolean) {
    this.#tracing = tracing
    this.#span = span
    this.#context = span.spanContext()
    this.#isOwn = isOwn
  }

  get traceId(): string {
    return this.#context.traceId
  }
  get spanId(): string {
    return this.#context.spanId
  }

  write(meta: JsonObject, id: number): void {
    this.#span.setAttribute('jsonrpc.request.id', String(id))
    writeContext(meta, this.#context, this.#isOwn)
  }

  sending(server: TracedServer, send: Handler): Handler {
    return (call) => this.#tracing.send(call, server, send, this.#span, this.#isOwn)
  }
}
