/** `telemetry.otlp`: where traces and their metrics are sent, and how many. */
import { z } from 'zod'
import { DEFAULT_TRACING } from '../../tracing/options.ts'
import { choice, field, fieldsOf, filledText, flag, headerValue, kind, parsePlainUrl, share } from './kinds.ts'

const T = fieldsOf(DEFAULT_TRACING)

/** A URL, or `none` for an empty text, such as that of an empty variable. */
const collectorUrl = kind(
  'a URL such as http://127.0.0.1:4318, or nothing',
  { type: 'string', pattern: '^(https?://.+)?$|\\$\\{' },
  (value): URL | 'none' | undefined => (value === '' ? 'none' : parsePlainUrl(value)),
  'credentials belong in headers',
)

export const otlpSchema = z.strictObject({
  endpoint: field(
    collectorUrl,
    'URL of the collector. `http/protobuf` adds `v1/traces` and `v1/metrics`. Empty, such as from an empty variable: nothing is sent.',
  ),
  protocol: T.of('protocol', choice('http/protobuf', 'grpc'), 'Protocol of the collector; the usual ports are 4318 and 4317.'),
  headers: field(z.record(z.string(), headerValue), 'Sent with every export, such as a credential.', undefined, 'headers'),
  traces: T.of(
    'rate',
    share,
    'Share of the traces started here that are sampled. A trace started by a host is sampled if the host samples it.',
  ),
  errors: T.of('errors', flag, 'Spans of failed calls are always sent.'),
  metrics: T.of('metrics', flag, 'The four histograms of the MCP conventions are sent, too.'),
  metrics_interval: T.duration('metricsIntervalMs', 'Interval of metrics.'),
  delay: T.duration('delayMs', 'Delay before a batch of spans is sent.'),
  timeout: T.duration('timeoutMs', 'Time for one export, including its retries.'),
  max_queued: T.count('maxQueued', 'Queued spans; more are dropped.'),
  capture_arguments: T.of(
    'captureArguments',
    flag,
    'Spans contain the arguments and results of tools, without secrets of the configuration; up to 64 KiB each.',
  ),
  service_name: T.of('serviceName', filledText, '`service.name` of the resource.'),
  attributes: field(
    z.record(z.string(), filledText),
    'Further attributes of the resource: `deployment.environment.name: staging`.',
    undefined,
    'attributes',
  ),
})
