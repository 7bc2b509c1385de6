/**
 * Exporters for OTLP over HTTP (protobuf) and over gRPC. Only the configured one is loaded. A failed export is reported, and its spans are
 * dropped: nothing waits for a collector.
 */
import { ExportResultCode } from '@opentelemetry/core'
import type { ExportResult } from '@opentelemetry/core'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { asError } from '../values/as-error.ts'
import { Delivery } from './delivery.ts'
import type { DeliveryTarget } from './delivery.ts'
import type { TracingOptions } from './options.ts'

export interface Exporters {
  readonly spans: SpanExporter
  /** Created on request. */
  readonly metrics: () => PushMetricExporter
}

type Target = Pick<TracingOptions, 'endpoint' | 'protocol' | 'headers' | 'timeoutMs'>

/** Loads the configured exporters, which report the end of every export to the log. */
export const loadExporters = async (target: Target, log: DeliveryTarget['log']): Promise<Exporters> => {
  const to = { log, endpoint: target.endpoint.origin }
  const { spans, metrics } = await (target.protocol === 'grpc' ? loadGrpc(target) : loadHttp(target))
  return {
    spans: reporting(spans, new Delivery('traces', to)),
    metrics: () => reporting(metrics(), new Delivery('metrics', to)),
  }
}

const loadHttp = async ({ endpoint, headers, timeoutMs }: Target): Promise<Exporters> => {
  const [{ OTLPTraceExporter }, { OTLPMetricExporter }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/exporter-metrics-otlp-proto'),
  ])
  const at = (path: string) => ({ url: below(endpoint, path), headers: { ...headers }, timeoutMillis: timeoutMs })
  return { spans: new OTLPTraceExporter(at('v1/traces')), metrics: () => new OTLPMetricExporter(at('v1/metrics')) }
}

const loadGrpc = async ({ endpoint, headers, timeoutMs }: Target): Promise<Exporters> => {
  const [{ OTLPTraceExporter }, { OTLPMetricExporter }, { Metadata }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@opentelemetry/exporter-metrics-otlp-grpc'),
    import('@grpc/grpc-js'),
  ])
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  const to = { url: endpoint.origin, metadata, timeoutMillis: timeoutMs }
  return { spans: new OTLPTraceExporter(to), metrics: () => new OTLPMetricExporter(to) }
}

/** Appends the path of a signal to the endpoint's path, as for OTEL_EXPORTER_OTLP_ENDPOINT. */
const below = (endpoint: URL, path: string): string => {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`
  return url.href
}

/** Makes an exporter report its ends, also the errors that it throws. */
const reporting = <E extends SpanExporter | PushMetricExporter>(exporter: E, delivery: Delivery): E => {
  type Export = (items: unknown, done: (result: ExportResult) => void) => void
  // Cast: both kinds have the same form of `export`.
  const original = (exporter.export as Export).bind(exporter)
  const reported: Export = (items, done) => {
    const answered = (result: ExportResult): void => {
      if (result.code === ExportResultCode.SUCCESS) delivery.succeeded()
      else delivery.failed(result.error)
      done(result)
    }
    try {
      original(items, answered)
    } catch (error) {
      answered({ code: ExportResultCode.FAILED, error: asError(error) })
    }
  }
  reportRejected(exporter, delivery)
  return Object.assign(exporter, { export: reported })
}

interface OtlpResponse {
  readonly partialSuccess?: {
    readonly rejectedSpans?: number | string
    readonly rejectedDataPoints?: number | string
    readonly errorMessage?: string
  }
}

/** Replaces the handler of responses: that of the SDK writes what was rejected to the global logger of OpenTelemetry only (0319). */
const reportRejected = (exporter: object, delivery: Delivery): void => {
  // Cast: a private field, whose value has been the same in all releases. Without it, rejections are not reported.
  const { _delegate: delegate } = exporter as { _delegate?: { _responseHandler?: unknown } }
  if (delegate?._responseHandler === undefined) return
  delegate._responseHandler = {
    handleResponse: (response?: OtlpResponse): void => {
      const { rejectedSpans, rejectedDataPoints, errorMessage = '' } = response?.partialSuccess ?? {}
      const rejected = Number(rejectedSpans ?? rejectedDataPoints ?? 0)
      if (rejected > 0) delivery.rejected(rejected, errorMessage)
    },
  }
}
