/** `telemetry.otlp`: where traces and their metrics are sent, and how many. */
import { z } from 'zod'
import { DEFAULT_TRACING } from '../../tracing/options.ts'
import { choice, countField, durationField, field, filledText, flag, headerValue, kind, share } from './kinds.ts'

const D = DEFAULT_TRACING

/** A URL, or nothing where a variable is not set: nothing is sent then. */
const collectorUrl = kind(
  'a URL such as http://127.0.0.1:4318, or nothing',
  { type: 'string', pattern: '^(https?://.+)?$|\\$\\{' },
  (value): URL | 'none' | undefined => {
    if (value === '') return 'none'
    const url = typeof value === 'string' ? URL.parse(value) : null
    return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? url : undefined
  },
  'credentials belong in headers',
)

export const otlpSchema = z.strictObject({
  endpoint: field(
    collectorUrl,
    'The collector. `http/protobuf` adds `v1/traces` and `v1/metrics`. Empty, as of a variable that is not set: nothing is sent.',
  ),
  protocol: field(
    choice('http/protobuf', 'grpc'),
    'How it is spoken to; collectors usually listen on 4318 and 4317.',
    D.protocol,
  ),
  headers: field(z.record(z.string(), headerValue), 'Sent with every export, such as a credential.'),
  traces: field(
    share,
    'Share of the traces begun here that are kept. A trace that a host began is kept if the host keeps it.',
    D.rate,
  ),
  errors: field(flag, 'Spans of calls that fail are sent whatever `traces` says.', D.errors),
  metrics: field(flag, 'The four histograms of the MCP conventions are sent, too.', D.metrics),
  metrics_interval: durationField('How often.', D.metricsIntervalMs),
  delay: durationField('How long spans wait, so that many go at once.', D.delayMs),
  timeout: durationField('One export, with what is tried again.', D.timeoutMs),
  max_queued: countField('Spans that wait; more are dropped.', D.maxQueued),
  capture_arguments: field(
    flag,
    'Arguments and results of tools stand in their spans, without secrets of the configuration; up to 64 KiB each.',
    D.captureArguments,
  ),
  service_name: field(filledText, '`service.name` of the resource.', D.serviceName),
  attributes: field(
    z.record(z.string(), filledText),
    'Further attributes of the resource: `deployment.environment.name: staging`.',
  ),
})
