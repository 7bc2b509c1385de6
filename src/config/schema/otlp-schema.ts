/** `telemetry.otlp`: where traces and their metrics are sent, and how many. */
import { z } from 'zod'
import { DEFAULT_TRACING } from '../../tracing/options.ts'
import { choice, countField, durationField, field, filledText, flag, headerValue, kind, parsePlainUrl, share } from './kinds.ts'

const D = DEFAULT_TRACING

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
  protocol: field(choice('http/protobuf', 'grpc'), 'Protocol of the collector; the usual ports are 4318 and 4317.', D.protocol),
  headers: field(z.record(z.string(), headerValue), 'Sent with every export, such as a credential.'),
  traces: field(
    share,
    'Share of the traces started here that are sampled. A trace started by a host is sampled if the host samples it.',
    D.rate,
  ),
  errors: field(flag, 'Spans of failed calls are always sent.', D.errors),
  metrics: field(flag, 'The four histograms of the MCP conventions are sent, too.', D.metrics),
  metrics_interval: durationField('Interval of metrics.', D.metricsIntervalMs),
  delay: durationField('Delay before a batch of spans is sent.', D.delayMs),
  timeout: durationField('Time for one export, including its retries.', D.timeoutMs),
  max_queued: countField('Queued spans; more are dropped.', D.maxQueued),
  capture_arguments: field(
    flag,
    'Spans contain the arguments and results of tools, without secrets of the configuration; up to 64 KiB each.',
    D.captureArguments,
  ),
  service_name: field(filledText, '`service.name` of the resource.', D.serviceName),
  attributes: field(
    z.record(z.string(), filledText),
    'Further attributes of the resource: `deployment.environment.name: staging`.',
  ),
})
