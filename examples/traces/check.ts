/** One call of a host that keeps traces: the spans of host, Trunkline and server are one tree at the collector. */
import { SpanKind } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { fileURLToPath } from 'node:url'
import { startCollector } from '../../test/support/collector.ts'
import { saw, startTrunkline } from '../run.ts'

/** In place of Jaeger, Tempo, an OpenTelemetry Collector: takes OTLP and shows what came. */
await using collector = await startCollector('http/protobuf')
const config = fileURLToPath(new URL('trunkline.yaml', import.meta.url))
await using trunkline = await startTrunkline(config, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })

const exporter = new OTLPTraceExporter({ url: `${collector.url}/v1/traces` })
const provider = new TracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'agent' }),
  spanProcessors: [new SimpleSpanProcessor({ exporter })],
})
const span = provider.getTracer('agent').startSpan('execute_tool forecast', { kind: SpanKind.CLIENT })
const { traceId, spanId } = span.spanContext()

const host = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
await host.connect(new StreamableHTTPClientTransport(trunkline.url))
const _meta = { traceparent: `00-${traceId}-${spanId}-01` }
await host.callTool({ name: 'weather__forecast', arguments: {}, _meta })
span.end()
await provider.forceFlush()
await host.close()
await trunkline.stop()

const tree = [
  ['agent', 'execute_tool forecast'],
  ['trunkline', 'tools/call weather__forecast'],
  ['trunkline', 'tools/call forecast'],
  ['weather', 'tools/call forecast'],
] as const
let parent = ''
for (const [service, name] of tree) {
  const found = collector.spans.entries.find(
    (one) => one.resource['service.name'] === service && one.name === name && one.parentSpanId === parent,
  )
  saw(`${service}: ${name}`, found?.traceId === traceId)
  parent = found?.spanId ?? 'none'
}
const durations = collector.points.entries.filter(({ name }) => name === 'mcp.server.operation.duration')
saw('the duration of the call is in its histogram', durations.length > 0)
