// A server with spans of its own: the trace context comes in `_meta`, as it does from any host that keeps traces.
import { context, propagation, ROOT_CONTEXT, SpanKind } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'

propagation.setGlobalPropagator(new W3CTraceContextPropagator())
const isTraced = (process.env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '') !== ''
const provider = new TracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'weather' }),
  spanProcessors: isTraced ? [new SimpleSpanProcessor({ exporter: new OTLPTraceExporter() })] : [],
})
const tracer = provider.getTracer('weather')

const server = new McpServer({ name: 'weather', version: '1' })
server.registerTool('forecast', { description: 'The weather of tomorrow' }, ({ _meta = {} }) => {
  const parent = propagation.extract(ROOT_CONTEXT, _meta)
  const span = tracer.startSpan('tools/call forecast', { kind: SpanKind.SERVER }, parent)
  return context.with(parent, () => {
    span.end()
    return { content: [{ type: 'text', text: 'rain' }] }
  })
})
await server.connect(new StdioServerTransport())
