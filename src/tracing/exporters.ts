/**
 * Exporters for OTLP over HTTP (protobuf) and over gRPC. Only the configured one is loaded. A failed export is reported, and its spans are
 * dropped: nothing waits for a collector.
 */
import { ExportResultCode } from '@opentelemetry/core'
import type { ExportResult } from '@opentelemetry/core'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { asError } from '../values/as-error.ts'
import type { TracingOptions } from './options.ts'

export interface Exporters {
  readonly spans: SpanExporter
  /** Created on request. */
  readonly metrics: () => PushMetricExporter
}

type Target = Pick<TracingOptions, 'endpoint' | 'protocol' | 'headers' | 'timeoutMs'>

/** Loads the configured exporters. `failed` is called for every failed export. */
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

/** Appends the path of a signal to the endpoint's path, as for OTEL_EXPORTER_OTLP_ENDPOINT. */
const below = (endpoint: URL, path: string): string => {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`
  return url.href
}

/** Makes an exporter report its failures, also those that it throws. */
const reporting = <E extends SpanExporter | PushMetricExporter>(exporter: E, failed: (error: unknown) => void): E => {
  type Export = (items: unknown, done: (result: ExportResult) => void) => void
  // Cast: both kinds have the same form of `export`.
  const original = (exporter.export as Export).bind(exporter)
  const reported: Export = (items, done) => {
    const answered = (result: ExportResult): void => {
      if (result.code !== ExportResultCode.SUCCESS) failed(result.error)
      done(result)
    }
    try {
      original(items, answered)
    } catch (error) {
      answered({ code: ExportResultCode.FAILED, error: asError(error) })
    }
  }
  return Object.assign(exporter, { export: reported })
}
