/**
 * The two ways to a collector: OTLP over HTTP (protobuf) and over gRPC. Each is loaded where it is configured. An export that fails is
 * told once a minute, and costs the spans in it: nothing else waits for a collector.
 */
import { ExportResultCode } from '@opentelemetry/core'
import type { ExportResult } from '@opentelemetry/core'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { asError } from '../values/as-error.ts'
import type { TracingOptions } from './options.ts'

export interface Exporters {
  readonly spans: SpanExporter
  /** Made when it is asked for. */
  readonly metrics: () => PushMetricExporter
}

type Target = Pick<TracingOptions, 'endpoint' | 'protocol' | 'headers' | 'timeoutMs'>

/** `failed` is told of every export that did not reach the collector. */
export const loadExporters = async (target: Target, failed: (error: unknown) => void): Promise<Exporters> => {
  const { spans, metrics } = await (target.protocol === 'grpc' ? loadGrpc(target) : loadHttp(target))
  return { spans: reporting(spans, failed), metrics: () => reporting(metrics(), failed) }
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

/** As OTEL_EXPORTER_OTLP_ENDPOINT is read: the signal's path is added to the one given. */
const below = (endpoint: URL, path: string): string => {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`
  return url.href
}

/** The same exporter, whose failures are told; what it throws is one, too. */
const reporting = <E extends SpanExporter | PushMetricExporter>(exporter: E, failed: (error: unknown) => void): E => {
  type Export = (items: unknown, done: (result: ExportResult) => void) => void
  // Cast: both kinds are called alike.
  const own = (exporter.export as Export).bind(exporter)
  const tell: Export = (items, done) => {
    const answered = (result: ExportResult): void => {
      if (result.code !== ExportResultCode.SUCCESS) failed(result.error)
      done(result)
    }
    try {
      own(items, answered)
    } catch (error) {
      answered({ code: ExportResultCode.FAILED, error: asError(error) })
    }
  }
  return Object.assign(exporter, { export: tell })
}
