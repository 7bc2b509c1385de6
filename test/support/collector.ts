/**
 * A collector of OpenTelemetry: OTLP over HTTP (protobuf) and over gRPC, decoded with the published protobuf definitions (as an older
 * release of the official packages ships them). It shares no code with the exporters.
 */
import { createServer as createHttp } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import type { Server } from 'node:net'
import { gunzipSync } from 'node:zlib'
import protos from 'otlp-protos/build/src/generated/root.js'
import { Journal } from './fakes/journal.ts'
import { listening } from './listening.ts'

export type Attributes = Readonly<Record<string, unknown>>

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty: the first of its trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly kind: 'SPAN_KIND_SERVER' | 'SPAN_KIND_CLIENT' | 'SPAN_KIND_INTERNAL'
  readonly traceState: string
  readonly attributes: Attributes
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly status: { readonly code?: string; readonly message?: string }
  readonly resource: Attributes
  readonly durationMs: number
}

export interface CollectedPoint {
  readonly name: string
  readonly unit: string
  readonly attributes: Attributes
  readonly count: number
  readonly bounds: readonly number[]
}

/** What a collector does with an export in place of taking it. */
export type Mood = 'takes' | 'rejects some' | 'is slow' | 'refuses' | 'answers garbage' | 'cuts'

export interface Collector extends AsyncDisposable {
  readonly url: string
  readonly spans: Journal<CollectedSpan>
  readonly points: Journal<CollectedPoint>
  /** Headers of every export. */
  readonly exports: Journal<IncomingHttpHeaders>
  mood: Mood
}

interface Decoder {
  decode(bytes: Uint8Array): unknown
  toObject(message: unknown, options: object): Record<string, never>
}
const { collector } = protos.opentelemetry.proto as {
  collector: { trace: { v1: { ExportTraceServiceRequest: Decoder } }; metrics: { v1: { ExportMetricsServiceRequest: Decoder } } }
}
const PLAIN = { enums: String, longs: String, bytes: Array, defaults: true }

interface Value {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}
type Hex = readonly number[]
interface Scoped<T> {
  readonly resource: { readonly attributes: readonly Value[] }
  readonly scopeSpans?: readonly { readonly spans: readonly T[] }[]
  readonly scopeMetrics?: readonly { readonly metrics: readonly T[] }[]
}
interface RawSpan extends Omit<CollectedSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'attributes' | 'links'> {
  readonly traceId: Hex
  readonly spanId: Hex
  readonly parentSpanId: Hex
  readonly attributes: readonly Value[]
  readonly links: readonly { readonly traceId: Hex; readonly spanId: Hex }[]
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}
interface RawMetric {
  readonly name: string
  readonly unit: string
  readonly histogram?: {
    readonly dataPoints: readonly {
      readonly attributes: readonly Value[]
      readonly count: string
      readonly explicitBounds: readonly number[]
    }[]
  }
}

/** Starts one on loopback. `port`: of one that was there before. */
export const startCollector = async (protocol: 'http/protobuf' | 'grpc', port = 0): Promise<Collector> => {
  const kept = {
    spans: new Journal<CollectedSpan>(),
    points: new Journal<CollectedPoint>(),
    exports: new Journal<IncomingHttpHeaders>(),
  }
  const own: { mood: Mood } = { mood: 'takes' }
  const server = protocol === 'grpc' ? serveGrpc(kept, own) : serveHttp(kept, own)
  return Object.assign(own, kept, await listening(server, port))
}

type Kept = Pick<Collector, 'spans' | 'points' | 'exports'>

const serveHttp = (kept: Kept, own: { mood: Mood }): Server =>
  createHttp((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      kept.exports.push(request.headers)
      if (own.mood === 'takes' || own.mood === 'rejects some') {
        const bytes = Buffer.concat(chunks)
        take(request.url ?? '', request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes, kept)
      }
      answerHttp(own.mood, response)
    })
  })

const answerHttp = (mood: Mood, response: ServerResponse): void => {
  if (mood === 'is slow') return
  if (mood === 'cuts') return void response.destroy()
  const status = mood === 'refuses' ? 503 : 200
  response.writeHead(status, { 'content-type': 'application/x-protobuf' })
  response.end(
    mood === 'answers garbage' ? '\u0000\u0007<html>not protobuf' : mood === 'rejects some' ? SOME_REJECTED : undefined,
  )
}

/** An `ExportTraceServiceResponse` whose `partial_success` has three rejected spans and the message `too old`; of metrics likewise. */
const SOME_REJECTED = Buffer.from([0x0a, 11, 0x08, 3, 0x12, 7, ...Buffer.from('too old')])

const serveGrpc = (kept: Kept, own: { mood: Mood }): Server => {
  const server = createHttp2()
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = []
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      kept.exports.push(headers)
      if (own.mood === 'is slow') return
      if (own.mood === 'cuts') return stream.session?.destroy()
      const body = Buffer.concat(chunks)
      if (own.mood === 'takes' || own.mood === 'rejects some')
        take(String(headers[':path']), body.subarray(5, 5 + body.readUInt32BE(1)), kept)
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': own.mood === 'refuses' ? '14' : '0' }))
      // One uncompressed message: empty, or nothing that can be read.
      if (own.mood === 'rejects some') stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, SOME_REJECTED.length]), SOME_REJECTED]))
      else stream.end(own.mood === 'answers garbage' ? Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]) : Buffer.alloc(5))
    })
  })
  return server
}

const take = (path: string, bytes: Buffer, { spans, points }: Kept): void => {
  const isTraces = /\/v1\/traces$|TraceService\/Export$/.test(path)
  const decoder = isTraces ? collector.trace.v1.ExportTraceServiceRequest : collector.metrics.v1.ExportMetricsServiceRequest
  const { resourceSpans = [], resourceMetrics = [] } = decoder.toObject(decoder.decode(bytes), PLAIN) as {
    resourceSpans?: readonly Scoped<RawSpan>[]
    resourceMetrics?: readonly Scoped<RawMetric>[]
  }
  for (const { resource, scopeSpans = [] } of resourceSpans)
    for (const span of scopeSpans.flatMap(({ spans }) => spans)) spans.push(readSpan(span, attributesOf(resource.attributes)))
  for (const metric of resourceMetrics.flatMap(({ scopeMetrics = [] }) => scopeMetrics.flatMap(({ metrics }) => metrics)))
    for (const { attributes, count, explicitBounds } of metric.histogram?.dataPoints ?? [])
      points.push({
        name: metric.name,
        unit: metric.unit,
        attributes: attributesOf(attributes),
        count: Number(count),
        bounds: explicitBounds,
      })
}

const readSpan = (span: RawSpan, resource: Attributes): CollectedSpan => ({
  traceId: hex(span.traceId),
  spanId: hex(span.spanId),
  parentSpanId: hex(span.parentSpanId),
  name: span.name,
  kind: span.kind,
  traceState: span.traceState,
  attributes: attributesOf(span.attributes),
  links: span.links.map(({ traceId, spanId }) => ({ traceId: hex(traceId), spanId: hex(spanId) })),
  status: span.status ?? {},
  resource,
  durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
})

const hex = (bytes: Hex): string => Buffer.from(bytes).toString('hex')

/** Integers are told as texts by the protobuf library, and are numbers here. */
const attributesOf = (values: readonly Value[]): Attributes =>
  Object.fromEntries(
    values.map(({ key, value }) => {
      const [[kind, content] = ['none', undefined]] = Object.entries(value)
      return [key, kind === 'intValue' ? Number(content) : content]
    }),
  )
