/** Where traces and their metrics are sent, as options (`telemetry.otlp`). */
import type { z } from 'zod'
import { DEFAULT_TRACING } from '../../tracing/options.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import type { otlpSchema } from '../schema/otlp-schema.ts'
import { child, scalars } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'
import { fill } from './fill.ts'

const NAMES = {
  protocol: 'protocol',
  headers: 'headers',
  traces: 'rate',
  errors: 'errors',
  metrics: 'metrics',
  metrics_interval: 'metricsIntervalMs',
  delay: 'delayMs',
  timeout: 'timeoutMs',
  max_queued: 'maxQueued',
  capture_arguments: 'captureArguments',
  service_name: 'serviceName',
  attributes: 'attributes',
} as const satisfies Record<string, keyof TracingOptions>

/** `undefined`: nothing is traced. */
export const buildTracing = (otlp: z.output<typeof otlpSchema> | undefined): TracingOptions | undefined => {
  const endpoint = otlp?.endpoint
  if (endpoint === undefined || endpoint === 'none') return undefined
  return fill<TracingOptions, typeof NAMES>(NAMES, { ...DEFAULT_TRACING, endpoint }, otlp)
}

/** Values of the headers that a collector is sent. */
export const secretsOfTracing = (telemetry: Tree | undefined): string[] =>
  scalars(child(child(telemetry, 'otlp'), 'headers')).map(({ value }) => String(value ?? ''))
